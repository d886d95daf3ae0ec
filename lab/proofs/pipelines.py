"""Proofs about units with registers: they compute what their combinational cores compute, for any timing of inputs.

A converter stands still while its result is refused. Flushing shows its content: the results that it gives while
nothing enters and all are taken. One cycle from any state, with any input, must change that list as it would a queue.
The first one leaves if it is taken, the conversion of an accepted code joins at the end, all others stay. So by
induction nothing is ever lost, doubled or reordered, and every result equals the core's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import CONVERSIONS
from golden.rounding import MODE_BITS
from hdl.catalogue import UNITS, Kind
from hdl.converter import DEPTHS, FloatConverter
from hdl.cores.conversion import Convert
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.copies import copied
from hdl.cores.multiplier import Multiplier
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import SEQUENTIAL, netlist_of
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, inverse, refute, slice_of

__all__ = ["conversions", "copy_proofs", "following", "pipeline_proofs", "primitive_proofs"]

_MODELS = {"ecp5": "mult18x18d.v", "nexus": "mult18x18.v"}
_RANKS = {
    (False, False): ("none",),
    (True, False): ("before",),
    (False, True): ("behind",),
    (True, True): ("before", "behind"),
}
_QUIET = {"rst": "#b0", "clk": "#b0"}
Joins = Callable[[str], tuple[Instance, str]]


def pipeline_proofs() -> Iterator[Proof]:
    """Yield the proofs of the stream units of conversion, at every depth; and of the catalogue's in several modes."""
    for source, destination in CONVERSIONS:
        given = {"source": source, "destination": destination}
        name = f"{source}_to_{destination}"
        yield from _at_every_depth(name, f"{source} to {destination}", given, (BITWUZLA, Z3_CADICAL))
    for unit in UNITS.values():
        if unit.kind.core is Kind.CONVERTER and len(unit.arguments.get("roundings", ())) > 1:
            given = {name: value for name, value in unit.arguments.items() if name != "stages"}
            # The catalogue's name but for the depth.
            formats = f"{given['source']}_to_{given['destination']}"
            name = f"{formats}/{unit.name.removeprefix(formats).strip('_')}"
            yield from _at_every_depth(name, unit.name, given, (BITWUZLA,))


def _at_every_depth(name: str, title: str, given: Mapping[str, Any], engines: Sequence[str]) -> Iterator[Proof]:
    for stages in DEPTHS:
        for engine in engines:
            yield Proof(
                f"stream/{name}/stages_{stages}",
                "converter: stream",
                f"{title}, {stages} stage{'s' * (stages > 1)}",
                "queue of the core's results",
                engine,
                partial(_stream, given, stages),
                timeout=120,
                fast=engine == BITWUZLA,
            )


def _stream(given: Mapping[str, Any], stages: int, folder: Path) -> str:
    component = FloatConverter(**given, stages=stages)
    return conversions(component, component.parameters.plan, stages, folder)


def conversions(component: FloatConverter, plan: ConversionPlan, stages: int, folder: Path) -> str:
    """Return a formula with a solution if a unit is no queue of `stages` places for the conversions of a plan."""
    unit = netlist_of(component, folder, SEQUENTIAL)
    options = {
        "roundings": plan.roundings,
        "overflow": plan.overflow,
        "random_bits": plan.random_bits,
        "flushes": plan.flushes,
    }
    core = netlist_of(Convert(plan.source, plan.destination, **options), folder)
    low, high = plan.source.width, unit.inputs["i__payload"] - 1

    def joins(payload: str) -> tuple[Instance, str]:
        if plan.is_plain:
            result = core.instance("core", given={"code": payload})
            # Without flags, if the unit has none.
            return result, slice_of(result.port("o"), unit.outputs["o__payload"] - 1, 0)
        controls = slice_of(payload, high, low)
        result = core.instance("core", given={"code": slice_of(payload, low - 1, 0), "controls": controls})
        mode = slice_of(controls, MODE_BITS - 1, 0)
        built = (equal(mode, bits(each.value, MODE_BITS)) for each in plan.roundings)
        return result, f"(concat (ite {either(*built)} #b0 #b1) {result.port('o')})"

    return stream_formula(unit, stages, joins)


def primitive_proofs() -> Iterator[Proof]:
    """Yield the proofs that the generic multiplier multiplies, and the ones of FPGAs' primitives, by their models."""
    for width in (8, 10, 11):
        for ranks in _RANKS:
            for engine in (BITWUZLA, Z3_CADICAL):
                yield Proof(
                    f"multiplier/width_{width}/ranks_{'_and_'.join(_RANKS[ranks])}",
                    "multiplier: MULT18X18D and MULT18X18",
                    f"{width} bits, {sum(ranks)} rank{'s' * (sum(ranks) != 1)} ({', '.join(_RANKS[ranks])})",
                    "bvmul",
                    engine,
                    partial(_primitive, width, ranks),
                    timeout=300,
                    fast=engine == BITWUZLA,
                )


def _primitive(width: int, ranks: tuple[bool, bool], folder: Path) -> str:
    """Return a formula with a solution if a multiplier, from any state, gives a wrong product after its ranks."""
    modelled = {kind: (Path(__file__).with_name(name),) for kind, name in _MODELS.items()}
    kinds: dict[str, tuple[Path, ...]] = {"generic": (), **modelled}
    text, products = "", []
    shared = f"(declare-const a (_ BitVec {width}))\n(declare-const b (_ BitVec {width}))\n"
    for kind, models in kinds.items():
        component = Multiplier(width, input_rank=ranks[0], output_rank=ranks[1], kind=kind)
        unit = netlist_of(component, folder, SEQUENTIAL, models)
        given = {name: term for name, term in (_QUIET | {"a": "a", "b": "b"}).items() if name in unit.inputs}
        first = unit.instance(kind, given=given)
        cycles = [first, *following(unit, sum(ranks), kind, first, [{}] * sum(ranks))]
        text += "".join(cycle.text for cycle in cycles)
        products.append(cycles[-1].port("o"))
    product = f"(bvmul {' '.join(f'((_ zero_extend {width}) {name})' for name in 'ab')})"
    return shared + text + refute(both(*(equal(each, product) for each in products)))


class _Copies(wiring.Component):
    """A register in the generic form and as the primitive of an ECP5, without reset and with it."""

    def __init__(self) -> None:
        super().__init__({"value": In(1), "o": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        forms = [(kind, resets) for resets in (False, True) for kind in ("generic", "ecp5")]
        m.d.comb += self.o.eq(
            Cat(copied(m, f"{kind}_{resets}", self.value, kind, resets=resets) for kind, resets in forms)
        )
        return m


def copy_proofs() -> Iterator[Proof]:
    """Yield the proofs that a copy of a register, as a primitive, is the generic register."""
    for engine in (BITWUZLA, Z3_CADICAL):
        title, mode, fast = "copies of registers: TRELLIS_FF", "from any state on", engine == BITWUZLA
        yield Proof("copies/ecp5", title, mode, "the register", engine, _copies, timeout=60, fast=fast)


def _copies(folder: Path) -> str:
    """Return a formula with a solution if a form does not hold the last cycle's value, or 0 where a reset clears it."""
    unit = netlist_of(_Copies(), folder, SEQUENTIAL, (Path(__file__).with_name("trellis_ff.v"),))
    given = {"value": "value", "rst": "rst", "clk": "#b0"}
    now = unit.instance("now", given=given)
    later = unit.instance("later", given=given, held=now.registers)
    o = later.port("o")
    cleared = "(ite (= rst #b1) #b0 value)"
    wanted = ("value", "value", cleared, cleared)
    same = both(*(equal(slice_of(o, place, place), bit) for place, bit in enumerate(wanted)))
    text = "".join(f"(declare-const {name} (_ BitVec 1))\n" for name in ("value", "rst"))
    return text + now.text + later.text + refute(same)


def following(
    netlist: Netlist, cycles: int, prefix: str, first: Instance, given: list[dict[str, str]]
) -> list[Instance]:
    """Return the cycles that follow a first one, with their inputs."""
    instances = [first]
    for cycle in range(cycles):
        ports = {name: term for name, term in (_QUIET | given[cycle]).items() if name in netlist.inputs}
        instances.append(netlist.instance(f"{prefix}{cycle}", given=ports, held=instances[-1].registers))
    return instances[1:]


def stream_formula(unit: Netlist, stages: int, joins: Joins) -> str:
    """Return a formula with a solution if one cycle of a stream unit does not change its content as a queue would.

    Parameters
    ----------
    unit : Netlist
    stages : int
    joins : function
        Takes the payload that enters; returns an instance of the core, and the payload that must leave.
    """
    flushing = {"i__valid": "#b0", "o__ready": "#b1"}
    now = unit.instance("top", given=_QUIET)
    # The same state, flushed; and flushed after one cycle. A flushed unit is empty, so one more cycle is looked at.
    same = unit.instance("before", given=_QUIET | flushing, held=_shared(unit, now))
    before = [same, *following(unit, stages, "before", same, [flushing] * stages)]
    after = following(unit, stages + 1, "after", now, [flushing] * (stages + 1))
    result, wanted = joins(now.port("i__payload"))
    text = now.text + now.shown + "".join(cycle.text for cycle in [*before, *after]) + result.text

    def holds(instance: Instance, port: str) -> str:
        return equal(instance.port(port), "#b1")

    def same_slot(one: Instance, other: Instance) -> str:
        payload = equal(one.port("o__payload"), other.port("o__payload"))
        return both(
            equal(one.port("o__valid"), other.port("o__valid")), either(inverse(holds(one, "o__valid")), payload)
        )

    enable = either(inverse(holds(now, "o__valid")), holds(now, "o__ready"))
    joined = both(
        equal(after[stages - 1].port("o__valid"), now.port("i__valid")),
        either(
            inverse(holds(now, "i__valid")),
            equal(after[stages - 1].port("o__payload"), wanted),
        ),
    )
    moved = both(*(same_slot(after[at], before[at + 1]) for at in range(stages - 1)), joined)
    stood = both(*(same_slot(after[at], before[at]) for at in range(stages)))
    empty = both(inverse(holds(before[stages], "o__valid")), inverse(holds(after[stages], "o__valid")))
    claims = [
        equal(holds(now, "i__ready"), enable),
        same_slot(now, before[0]),
        f"(ite {enable} {moved} {stood})",
        empty,
    ]
    # Reset empties it.
    reset = unit.instance("reset", given={"rst": "#b1", "clk": "#b0"})
    emptied = unit.instance("emptied", given=_QUIET | flushing, held=reset.registers)
    drained = [emptied, *following(unit, stages, "emptied", emptied, [flushing] * stages)]
    text += reset.text + "".join(cycle.text for cycle in drained)
    claims += [inverse(holds(cycle, "o__valid")) for cycle in drained]
    return text + refute(both(*claims))


def _shared(unit: Netlist, instance: Instance) -> dict[int, str]:
    """Return the registers of an instance as they are, for another instance."""
    return {number: f"|{instance.prefix}#{number}|" for number in unit.following}
