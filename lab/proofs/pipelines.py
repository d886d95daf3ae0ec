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

from golden.formats import CONVERSIONS
from golden.rounding import MODE_BITS
from hdl.catalogue import UNITS, Kind
from hdl.converter import DEPTHS, FloatConverter
from hdl.cores.conversion import Convert
from hdl.cores.conversion_plan import ConversionPlan
from lab.netlists.netlist import Instance, Netlist
from lab.netlists.yosys import SEQUENTIAL, netlist_of
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import bits, both, either, equal, inverse, refute, slice_of

__all__ = ["QUIET", "conversions", "following", "pipeline_proofs"]

#: A cycle without reset.
QUIET = {"rst": "#b0", "clk": "#b0"}
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


def following(
    netlist: Netlist, cycles: int, prefix: str, first: Instance, given: list[dict[str, str]]
) -> list[Instance]:
    """Return the cycles that follow a first one, with their inputs."""
    instances = [first]
    for cycle in range(cycles):
        ports = {name: term for name, term in (QUIET | given[cycle]).items() if name in netlist.inputs}
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
    now = unit.instance("top", given=QUIET)
    # The same state, flushed; and flushed after one cycle. A flushed unit is empty, so one more cycle is looked at.
    same = unit.instance("before", given=QUIET | flushing, held=_shared(unit, now))
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
    emptied = unit.instance("emptied", given=QUIET | flushing, held=reset.registers)
    drained = [emptied, *following(unit, stages, "emptied", emptied, [flushing] * stages)]
    text += reset.text + "".join(cycle.text for cycle in drained)
    claims += [inverse(holds(cycle, "o__valid")) for cycle in drained]
    return text + refute(both(*claims))


def _shared(unit: Netlist, instance: Instance) -> dict[int, str]:
    """Return the registers of an instance as they are, for another instance."""
    return {number: f"|{instance.prefix}#{number}|" for number in unit.following}
