"""Proofs about the SIMD multiply-accumulate unit around its lanes: it reduces correctly for any function of a step.

As in `lab.proofs.control`, the lanes are left out, and their results are uninterpreted functions: one family for each
lane, so that the proof notices a number in the wrong lane.

It is a bounded proof. The unit starts in any state at all, and is reset in the first cycle. Then a given number of
cycles brings any beats, stalls and refusals of results, and any changes of the port ``chunk`` (unless a rank holds
beats before their issue). The proof shows:

- every result that leaves is the next one of its row in `VectorModel`, from a beat that has come. Refusals keep an
  order among themselves.
- part 1 of a result of level 1 leaves directly after part 0.
- a unit that has been left alone for long enough has given all results, and accepts every beat.

The premise is the unit's rule for its user: a beat continues only values of its level, in its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from amaranth import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.inner import OPERAND
from hdl.mac.lane import class_layout, number_layout, operand_layout
from hdl.mac.parameters import WORD_WIDTH
from hdl.vector.ports import vector_beat_layout, vector_result_layout
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import netlist_of_verilog
from lab.proofs.control import MODES, TINY
from lab.proofs.left_out import OpenVectorMac, pass_on
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, define, either, equal, field_of, inverse, refute
from lab.proofs.vector_model import PARTS, VectorModel

__all__ = ["Size", "VectorControlAlone", "formula", "vector_control_proofs"]

_LANE_INPUTS = ("a", "b", "stored", "stored_class")
_LANE_OUTPUTS = ("number", "result", "result_class", "code", "promoted")


class VectorControlAlone(wiring.Component):
    """A SIMD multiply-accumulate unit whose lanes are left out.

    Ports
    -----
    i, o, chunk
        As of `VectorMac`.
    a_0, b_0, stored_0, stored_class_0 and so on : out
        The inputs of the lanes.
    controls_0 and so on : out
        How the lanes must round the operation at rank ``normalise``; only on a unit with several modes.
    accumulator_format : out
        An input of all lanes, which comes with ``a`` and ``b``.
    number_0, result_0, result_class_0, code_0, promoted_0 and so on : in
        The outputs of the lanes.
    """

    def __init__(self, unit_type: type[OpenVectorMac] = OpenVectorMac, **given: Any) -> None:
        self.unit = unit = unit_type(**given)
        parameters = unit.parameters
        ports: dict[str, Any] = {
            "i": In(stream.Signature(vector_beat_layout(parameters))),
            "o": Out(stream.Signature(vector_result_layout(parameters))),
            "chunk": In(parameters.chunk_bits),
            "accumulator_format": Out(1),
        }
        its_class = class_layout(with_flags=parameters.flags)
        for lane in range(parameters.lanes):
            formats = parameters.of_lane(lane).formats
            operand, number = operand_layout(formats), number_layout(formats)
            shapes = {"a": operand, "b": operand, "stored": number, "stored_class": its_class}
            ports |= {f"{name}_{lane}": Out(shapes[name]) for name in _LANE_INPUTS}
            shapes = {"number": number, "result": number, "result_class": its_class, "promoted": operand}
            shapes |= {"code": formats.accumulator_width}
            ports |= {f"{name}_{lane}": In(shapes[name]) for name in _LANE_OUTPUTS}
            ports |= {f"controls_{lane}": Out(formats.controls.size)} if formats.controls.size else {}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        for number, lane in unit.lane_parts.items():
            m.d.comb += [getattr(self, f"{name}_{number}").eq(getattr(lane, name)) for name in _LANE_INPUTS]
            outputs = {name: getattr(self, f"{name}_{number}") for name in _LANE_OUTPUTS}
            code = outputs["code"]
            outputs["code"] = Mux(unit.control.packed.wide, code, code[:WORD_WIDTH])
            m.d.comb += [lane.given(name).eq(value) for name, value in outputs.items()]
            if controls := unit.parameters.formats.controls.members:
                rounded = lane.steps[unit.parameters.position("normalise") - unit.parameters.operand_delay]
                m.d.comb += getattr(self, f"controls_{number}").eq(Cat(rounded[name] for name in controls))
        m.d.comb += [
            self.accumulator_format.eq(unit.lane_parts[0].steps[0].accumulator_format),
            *pass_on(self, unit),
        ]
        return m


class Size(NamedTuple):
    """The size of a unit, and the length of the bounded proof.

    Parameters
    ----------
    lanes, stages, rows : int
    beats, apart : int
        How many beats may enter, one every `apart` cycles; until then, results may be refused in any cycle.
    refusing, drain : int
        Further cycles in which every result is refused, so that the queue fills up; cycles until all must have left.
    """

    lanes: int
    stages: int
    rows: int
    beats: int
    apart: int = 1
    refusing: int = 0
    drain: int = 20

    @property
    def slug(self) -> str:
        """Part of an id that distinguishes it from the others."""
        refusing = "_refusing" if self.refusing else ""
        return f"lanes_{self.lanes}/stages_{self.stages}/beats_{self.beats}{refusing}"

    def __str__(self) -> str:
        cycles = self.beats * self.apart + self.refusing + self.drain
        apart = f" {self.apart} cycles apart" if self.apart > 1 else ""
        refused = f", {self.refusing} of them refusing" if self.refusing else ""
        return f"{self.lanes} lanes, {self.stages} stages, {self.beats} beats{apart} in {cycles} cycles{refused}"


#: The last one is as deep as a unit of one operand format is unless told otherwise: a row is free again after 7 cycles.
_SIZES = (
    Size(2, 1, 4, beats=3),
    Size(2, 1, 4, beats=5, drain=24),
    Size(2, 1, 4, beats=5, refusing=10, drain=13),
    Size(4, 1, 4, beats=3),
    Size(2, 3, 8, beats=4, drain=26),
    Size(2, 11, 16, beats=3, apart=7, drain=44),
)
#: Of units whose beats bring a mode, and random numbers.
_MODE_SIZES = (_SIZES[0], _SIZES[3])


def vector_control_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of a few widths and depths; a second engine decides the smallest one in time."""
    for size in _SIZES:
        for engine in (BITWUZLA, Z3_CADICAL) if size is _SIZES[0] else (BITWUZLA,):
            fast = engine == BITWUZLA and size is _SIZES[0]
            build = partial(_build, size)
            yield Proof(
                f"vector/bounded/{size.slug}",
                "vector: control",
                str(size),
                "sequential model",
                engine,
                build,
                timeout=900,
                fast=fast,
            )

    for size in _MODE_SIZES:
        title, claim = f"{size}, with a choice of modes", f"vector/modes/{size.slug}"
        build = partial(_build, size, **MODES)
        yield Proof(claim, "vector: control", title, "sequential model", BITWUZLA, build, timeout=900)


def _build(size: Size, folder: Path, **given: Any) -> str:
    component = VectorControlAlone(
        lanes=size.lanes,
        operands=(TINY,),
        inner=OPERAND,
        registers=size.rows,
        chunk_bits=2,
        stages=size.stages,
        **given,
    )
    return formula(component, netlist_of_verilog(component, folder), size)


def formula(component: VectorControlAlone, netlist: Netlist, size: Size) -> str:
    """Return a formula with a solution if a unit's results differ from the model's."""
    parameters = component.unit.parameters
    model = VectorModel(parameters)
    given: dict[str, str] = {"clk": "#b0", "rst": "#b0"}
    if parameters.has_input_rank:
        # The unit holds a beat for an unknown time before it reads the port.
        given["chunk"] = "chunk"
    phases = ([given] + [given | {"i__valid": "#b0"}] * (size.apart - 1)) * size.beats
    phases += [given | {"i__valid": "#b0", "o__ready": "#b0"}] * size.refusing
    phases += [given | {"i__valid": "#b0", "o__ready": "#b1"}] * size.drain
    before = netlist.instance("before", given={"clk": "#b0", "rst": "#b1"})
    text = model.declarations + f"(declare-const chunk (_ BitVec {parameters.chunk_bits}))\n" + before.text
    # Without a reset in the middle of work, an unused register holds +0.
    unused = both(before.initial, equal(before.port("i__valid"), "#b0"))
    text += f"(declare-const is_unused Bool)\n(assert {either(inverse('is_unused'), unused)})\n"
    instances: list[Instance] = []
    for cycle, connected in enumerate(phases):
        held = instances[-1].registers if instances else before.registers
        instances.append(netlist.instance(f"t{cycle}", given=connected, held=held))
        text += instances[-1].text
    text += _lanes(model, instances)
    for unit in instances[: size.beats * size.apart : size.apart]:
        beat = _beat(unit.port("i__payload"), vector_beat_layout(parameters))
        text += model.accept(_moves(unit, "i"), beat, unit.port("chunk"))
    text += f"(assert {both(*(f'legal_{cycle}' for cycle in range(size.beats)))})\n"
    claimed, claims = _claims(model, instances, size.apart, vector_result_layout(parameters))
    return text + claimed + refute(both(*claims))


def _moves(unit: Instance, name: str) -> str:
    """Tell whether something goes through a stream."""
    return both(*(equal(unit.port(f"{name}__{end}"), "#b1") for end in ("valid", "ready")))


def _beat(payload: str, layout: data.StructLayout) -> dict[str, str]:
    """Return the fields of a beat, each lane's operands apart."""
    shared, of_lanes = ("level", "register", "first", "last", "rounding"), ("a", "b", "random", "random_promotion")
    beat = {name: field_of(payload, layout, name) for name in shared if name in layout.members}
    for name in (name for name in of_lanes if name in layout.members):
        codes, word = layout[name].shape, field_of(payload, layout, name)
        beat |= {f"{name}_{lane}": field_of(word, codes, lane) for lane in range(codes.length)}
    return beat


def _lanes(model: VectorModel, instances: list[Instance]) -> str:
    """Assert the lanes' outputs, from their inputs some cycles before."""
    parameters = model.parameters
    depth, delay = len(parameters.lane_ranks), parameters.operand_delay
    rounds_at, number_read, class_read = (parameters.position(at) - delay for at in ("normalise", "read", "align"))
    # Cycles from the operands to the value at a port.
    delays = {
        "number": depth - 1,
        "result": depth,
        "result_class": depth,
        "promoted": depth,
        "code": depth + ("pack" in parameters.ranks),
    }
    text = ""
    for lane, step in enumerate(model.steps):
        for cycle in range(len(instances) - (max(class_read, rounds_at) if step.controls.size else class_read)):
            a, b = (instances[cycle].port(f"{name}_{lane}") for name in ("a", "b"))
            stored = instances[cycle + number_read].port(f"stored_{lane}")
            stored_class = instances[cycle + class_read].port(f"stored_class_{lane}")
            controls = instances[cycle + rounds_at].port(f"controls_{lane}") if step.controls.size else ""
            wide, given = instances[cycle].port("accumulator_format"), f"given_{lane}_{cycle}"
            text += define(given, step.sort, step.step(a, b, stored, stored_class, wide, controls))
            for port, after in delays.items():
                if cycle + after < len(instances):
                    wanted = step.lane_output(port, given, wide)
                    text += f"(assert {equal(instances[cycle + after].port(f'{port}_{lane}'), wanted)})\n"
    return text


def _claims(
    model: VectorModel, instances: list[Instance], apart: int, answer: data.StructLayout
) -> tuple[str, list[str]]:
    """Define which result leaves in every cycle; claim that it is right, and that in the end there are all."""
    text, claims = "", []
    left = {(beat, part): "false" for beat in range(model.beats) for part in PARTS}
    for cycle, unit in enumerate(instances):
        payload, leaves = unit.port("o__payload"), _moves(unit, "o")
        is_refusal = inverse(equal(field_of(payload, answer, "error"), bits(0, 2)))
        # At most one result has given its first part only. Then its second part must leave next.
        waiting = {beat: both(f"gives_{beat}_1", left[beat, 0], inverse(left[beat, 1])) for beat in range(model.beats)}
        text += define(f"waits_{cycle}", "Bool", either(*waiting.values()))
        ahead = [f"waits_{cycle}"]
        expected = []
        for beat in range(min(-(-cycle // apart), model.beats)):
            its_row = equal(field_of(payload, answer, "register"), f"register_{beat}")
            is_open = both(f"gives_{beat}_0", inverse(left[beat, 0]), its_row, equal(f"refused_{beat}", is_refusal))
            open_name = f"open_{beat}_{cycle}"
            text += define(open_name, "Bool", is_open)
            is_next = both(leaves, open_name, inverse(either(*ahead)))
            ahead.append(open_name)
            for part, condition in zip(PARTS, (is_next, both(leaves, waiting[beat])), strict=True):
                name = f"leaves_{beat}_{part}_{cycle}"
                text += define(name, "Bool", condition)
                expected.append(both(name, equal(payload, f"answer_{beat}_{part}")))
                text += define(f"left_{beat}_{part}_{cycle}", "Bool", either(left[beat, part], name))
                left[beat, part] = f"left_{beat}_{part}_{cycle}"
        claims.append(either(inverse(leaves), *expected))
    claims += [either(inverse(f"gives_{beat}_{part}"), done) for (beat, part), done in left.items()]
    return text, [*claims, equal(instances[-1].port("i__ready"), "#b1")]
