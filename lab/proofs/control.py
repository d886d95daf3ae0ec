"""Proofs about the multiply-accumulate unit around its lane: it reduces correctly, whichever function a step computes.

The lane is left out. Its result is an *uninterpreted function* of its inputs: the proof knows only that equal inputs
give equal results. So the proofs about issue, hazards, chunks, promotions, registers and the queue of results hold for
every arithmetic, and for the lane's.

It is a bounded proof, of shallow units; `lab.proofs.along_model` has the proofs for every depth. The unit starts in any
state at all, and is reset in the first cycle. Then a given number of cycles brings any beats, changes of the port
``chunk``, stalls and refusals of results. Every result that leaves equals the next one of its register in `Model`
below, and no others leave. A unit that has been left alone for long enough has given them all.

The premise is the unit's rule for its user: a beat continues only values of its level, in its register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.mac.counters import counting_ports, events_layout
from hdl.mac.inner import OPERAND
from hdl.mac.lane import class_layout, number_layout, operand_layout
from hdl.mac.ports import product_beat_layout, result_beat_layout
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import netlist_of_verilog
from lab.proofs.left_out import OpenMac, pass_on
from lab.proofs.model import REGISTERS, Model
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, field_of, inverse, refute
from lab.proofs.unknown_step import UnknownStep

__all__ = ["MODES", "ControlAlone", "control_proofs", "formula"]

#: As small as can be: nothing is computed in it here. The units of these proofs accumulate in it: ``inner`` says so.
TINY = FloatFormat("1-2-1", 2, 1)
_LANE_INPUTS = ("a", "b", "stored", "stored_class")
_LANE_OUTPUTS = ("number", "result", "result_class", "code", "promoted")


class ControlAlone(wiring.Component):
    """A multiply-accumulate unit whose lane is left out.

    Ports
    -----
    i, o, chunk
        As of `MultiplyAccumulate`.
    a, b, stored, stored_class, accumulator_format : out
        The lane's inputs; the last one comes with `a` and `b`.
    controls : out
        How the lane must round the operation at rank ``normalise``; only on a unit with several modes.
    number, result, result_class, code, promoted : in
        The lane's outputs.
    events : in; counts, clear_counts : out, in
        Events that the lane has raised; the counters. Only on a unit with counters.
    """

    def __init__(self, **given: Any) -> None:
        self.unit = unit = OpenMac(**given)
        parameters = unit.parameters
        operand, number = operand_layout(parameters.formats), number_layout(parameters.formats)
        its_class = class_layout(with_flags=parameters.flags)
        super().__init__(
            {
                "i": In(stream.Signature(product_beat_layout(parameters))),
                "o": Out(stream.Signature(result_beat_layout(parameters))),
                "chunk": In(parameters.chunk_bits),
                "a": Out(operand),
                "b": Out(operand),
                "stored": Out(number),
                "stored_class": Out(its_class),
                "accumulator_format": Out(1),
                **({"controls": Out(controls.size)} if (controls := parameters.formats.controls).size else {}),
                "number": In(number),
                "result": In(number),
                "result_class": In(its_class),
                "code": In(parameters.formats.accumulator_width),
                "promoted": In(operand),
                **({"events": In(events_layout()), **counting_ports(counters=True)} if parameters.counters else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = unit = self.unit
        lane = unit.accumulator.lane
        m.d.comb += [getattr(self, name).eq(getattr(lane, name)) for name in _LANE_INPUTS]
        m.d.comb += self.accumulator_format.eq(lane.steps[0].accumulator_format)
        m.d.comb += [lane.given(name).eq(getattr(self, name)) for name in _LANE_OUTPUTS]
        rounded = lane.steps[unit.parameters.position("normalise")]
        if controls := unit.parameters.formats.controls.members:
            m.d.comb += self.controls.eq(Cat(rounded[name] for name in controls))
        m.d.comb += pass_on(self, unit)
        if unit.parameters.counters:
            m.d.comb += [lane.events.eq(self.events), self.counts.eq(unit.counts)]
            m.d.comb += unit.clear_counts.eq(self.clear_counts)
        return m


#: Depth of the unit; cycles in which beats may enter; cycles until all results must have left.
_SIZES = ((1, 6, 12), (3, 6, 14))
#: Products bring one of these modes, or another that is refused, and random numbers.
MODES: dict[str, Any] = {"roundings": (Rounding.NEAREST_EVEN, Rounding.UP, Rounding.STOCHASTIC), "random_bits": 1}


def control_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of a few depths."""
    for size in _SIZES:
        stages, beats, drain = size
        name = f"{stages} stages, {beats} beats in {beats + drain} cycles"
        for engine in (BITWUZLA, Z3_CADICAL):
            build = partial(_build, *size)
            fast = engine == BITWUZLA and size == _SIZES[1]
            claim = f"control/bounded/stages_{stages}"
            yield Proof(claim, "mac: control", name, "sequential model", engine, build, timeout=900, fast=fast)
        title, claim = f"{name}, with a choice of modes", f"control/modes/stages_{stages}"
        build = partial(_build, *size, **MODES)
        fast = size == _SIZES[1]
        yield Proof(claim, "mac: control", title, "sequential model", BITWUZLA, build, timeout=900, fast=fast)


def _build(stages: int, cycles: int, drain: int, folder: Path, **given: Any) -> str:
    given = {"operands": (TINY,), "inner": OPERAND, "registers": 2, "chunk_bits": 2, "stages": stages} | given
    component = ControlAlone(**given)
    return formula(component, netlist_of_verilog(component, folder), cycles, drain)


#: Takes the model, every cycle, the number of cycles in which beats may enter, and a result's layout; returns claims.
Claims = Callable[[Model, list[Instance], int, data.StructLayout], list[str]]


def formula(component: ControlAlone, netlist: Netlist, cycles: int, drain: int, claims: Claims | None = None) -> str:
    """Return a formula with a solution if a unit gives anything but the model's results.

    In `cycles` cycles beats may enter; in the next `drain` cycles none does, and all results are taken.
    """
    parameters = component.unit.parameters
    beat, answer = product_beat_layout(parameters), result_beat_layout(parameters)
    unknown = UnknownStep(parameters)
    model = Model(unknown)
    given: dict[str, str] = {"clk": "#b0", "rst": "#b0"}
    given |= {"clear_counts": "#b0"} if parameters.counters else {}
    draining = given | {"i__valid": "#b0", "o__ready": "#b1"}
    before = netlist.instance("before", given={"clk": "#b0", "rst": "#b1"})
    text = unknown.declarations + before.text
    instances: list[Instance] = []
    for cycle in range(cycles + drain):
        held = instances[-1].registers if instances else before.registers
        instances.append(netlist.instance(f"t{cycle}", given=given if cycle < cycles else draining, held=held))
        text += instances[-1].text
    text += _lane(unknown, component, instances)

    for cycle, unit in enumerate(instances[:cycles]):
        takes = both(equal(unit.port("i__valid"), "#b1"), equal(unit.port("i__ready"), "#b1"))
        fields = {name: field_of(unit.port("i__payload"), beat, name) for name, part in beat if part.width}
        text += model.accept(cycle, takes, fields, unit.port("chunk"))
    text += f"(assert {both(*(f'legal_{cycle}' for cycle in range(cycles)))})\n"
    return text + refute(both(*(claims or _claims)(model, instances, cycles, answer)))


def _lane(unknown: UnknownStep, component: ControlAlone, instances: list[Instance]) -> str:
    """Assert the lane's results from its inputs some cycles before."""
    parameters = component.unit.parameters
    last, pack = len(parameters.operation_ranks), "pack" in parameters.ranks
    text = ""
    for cycle, unit in enumerate(instances):
        places = {"stored": cycle + parameters.position("read"), "stored_class": cycle + parameters.position("align")}
        rounds_at = cycle + parameters.position("normalise")
        if max(*places.values(), rounds_at) >= len(instances):
            break
        term = unknown.step(
            unit.port("a"),
            unit.port("b"),
            instances[places["stored"]].port("stored"),
            instances[places["stored_class"]].port("stored_class"),
            unit.port("accumulator_format"),
            instances[rounds_at].port("controls") if unknown.controls.size else "",
        )
        text += f"(define-fun given_{cycle} () {unknown.sort} {term})\n"
        wide = unit.port("accumulator_format")
        for at, ports in (
            (cycle + last - 1, ("number",)),
            (cycle + last, ("result", "result_class", "promoted")),
            (cycle + last + pack, ("code",)),
            (cycle + last, ("events",) if parameters.counters else ()),
        ):
            if at < len(instances):
                for port in ports:
                    wanted = unknown.lane_output(port, f"given_{cycle}", wide)
                    text += f"(assert {equal(instances[at].port(port), wanted)})\n"
    return text


def _claims(model: Model, instances: list[Instance], beats: int, answer: data.StructLayout) -> list[str]:
    """Return the claims that every result is the next one of its register, refusals apart, and that none is missing."""
    claims = []
    counts = {(register, refused): bits(0, 5) for register in REGISTERS for refused in (0, 1)}
    for unit in instances:
        leaves = both(equal(unit.port("o__valid"), "#b1"), equal(unit.port("o__ready"), "#b1"))
        payload = unit.port("o__payload")
        is_sound = equal(field_of(payload, answer, "error"), bits(0, 2))
        for (register, refused), count in list(counts.items()):
            is_its = equal(field_of(payload, answer, "register"), bits(register, 1))
            leaves_it = both(leaves, is_its, inverse(is_sound) if refused else is_sound)
            expected = [
                both(
                    f"gives_{cycle}_{register}_{refused}",
                    equal(model.number_at(cycle, register, refused), count),
                    equal(payload, f"answer_{cycle}"),
                )
                for cycle in range(beats)
            ]
            claims.append(either(inverse(leaves_it), *expected))
            counts[register, refused] = f"(bvadd {count} (ite {leaves_it} {bits(1, 5)} {bits(0, 5)}))"
    claims += [equal(count, model.number_at_end(*key)) for key, count in counts.items()]
    return claims
