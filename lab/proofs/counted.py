"""Proofs that a unit counts the steps that it takes, for any results and events of a step.

As in `lab.proofs.control` the lane is left out; its results, and here its events too, are uninterpreted functions of
its inputs. For any beats, refusals of results and changes of the port ``chunk`` in a given number of cycles, the
counters end at the counts of the sequential model. For each event, that model counts the accepted products that raised
it, and the promotions that raised it for the chunks that they ended. A refused product does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from amaranth.lib import data

from golden.flags import EVENTS
from hdl.mac.counters import COUNTER_BITS, KINDS, counts_layout
from hdl.mac.inner import OPERAND
from hdl.mac.ports import product_beat_layout
from lab.netlists.netlist import Instance
from lab.netlists.yosys import netlist_of_verilog
from lab.proofs.control import TINY, ControlAlone, formula
from lab.proofs.model import REGISTERS, Model
from lab.proofs.proof import BITWUZLA, Proof
from lab.proofs.terms import bits, both, equal, field_of, inverse, slice_of

__all__ = ["counted_proofs"]

#: Depth of the unit; cycles in which beats may enter; cycles until all steps must have been counted.
_SIZES = ((1, 4, 12), (3, 4, 14))


def counted_proofs() -> Iterator[Proof]:
    """Yield the proofs of units of a few depths."""
    for stages, beats, drain in _SIZES:
        title = f"{stages} stage{'s' * (stages > 1)}, {beats} beats in {beats + drain} cycles"
        build = partial(_build, stages, beats, drain)
        claim, fast = f"control/counted/stages_{stages}", stages == 3
        yield Proof(claim, "mac: counted", title, "sequential model", BITWUZLA, build, timeout=900, fast=fast)


def _build(stages: int, beats: int, drain: int, folder: Path) -> str:
    given = {"operands": (TINY,), "inner": OPERAND, "registers": 2, "chunk_bits": 2, "stages": stages}
    component = ControlAlone(**given, counters=True)
    beat = product_beat_layout(component.unit.parameters)
    claims = partial(_claims, beat)
    return formula(component, netlist_of_verilog(component, folder), beats, drain, claims)


def _claims(
    beat: data.StructLayout, model: Model, instances: list[Instance], beats: int, answer: data.StructLayout
) -> list[str]:
    """Return that in the end every counter has counted the steps of the model."""
    layout, counts = counts_layout(), instances[-1].port("counts")
    claims = []
    for kind in KINDS:
        for name, _ in layout[kind].shape:
            total = bits(0, COUNTER_BITS)
            for cycle, unit in enumerate(instances[:beats]):
                is_chain = equal(field_of(unit.port("i__payload"), beat, "level"), bits(0, 2))
                for register in REGISTERS:
                    met = _is_met(model, kind, name, f"{register}_{cycle}", is_chain)
                    total = f"(bvadd {total} (ite {met} {bits(1, COUNTER_BITS)} {bits(0, COUNTER_BITS)}))"
            low = layout[kind].offset + layout[kind].shape[name].offset
            claims.append(equal(slice_of(counts, low + COUNTER_BITS - 1, low), total))
    return claims


def _is_met(model: Model, kind: str, name: str, at: str, is_chain: str) -> str:
    """Tell whether a beat's product, or the promotion that it causes, was taken and raised an event."""
    if kind == "products":
        taken = [f"sound_{at}"]
        value = f"(ite {is_chain} chain_{at} chunk_{at})"
    else:
        taken = [f"counts_{at}", f"ends_{at}"]
        value = f"promotion_{at}"
    if name == "steps":
        return both(*taken)
    place = EVENTS.index(name)
    raised = slice_of(model.unknown.events_of(value), place, place)
    return both(*taken, inverse(equal(raised, "#b0")))
