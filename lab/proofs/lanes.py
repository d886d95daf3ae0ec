"""Proofs about the lane of the multiply-accumulate unit: it is the fused step, however many ranks it has.

A lane does not keep numbers as codes: their fields stand apart, the classes beside them. So there are three things:

- without ranks, given codes in its own form, it is `FusedStep`, with the result in this form again;
- with its ranks it does the same, later: from any state, an operation that enters in one cycle has the same result.
  This suffices, because nothing in a lane ever stands still;
- if a result comes back as an operand, the next step reads it as the value of its code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import CBFLOAT16, FloatFormat
from golden.rounding import Rounding
from hdl.catalogue import Kind, released
from hdl.cores.words import select_width
from hdl.mac.counters import events_layout
from hdl.mac.lane import Lane, class_layout, number_layout, operand_layout
from hdl.mac.parameters import DEPTHS, MacParameters
from lab.netlists.netlist import Instance
from lab.netlists.yosys import EVERTED_LANE, SEQUENTIAL_LANE, netlist_of
from lab.proofs.pipelines import following
from lab.proofs.proof import BITWUZLA, Z3_CADICAL, Proof
from lab.proofs.terms import both, equal, refute

__all__ = ["LaneAlone", "lane_pipeline", "lane_proofs", "no_ranks"]

_OWN = CBFLOAT16
_QUIET = {"rst": "#b0", "clk": "#b0"}


@dataclass(frozen=True, kw_only=True)
class _NoRanks(MacParameters):
    """Parameters of a lane that is all gates."""

    @property
    def ranks(self) -> tuple[str, ...]:
        """None."""
        return ()


class LaneAlone(wiring.Component):
    """A lane with its signals as ports, and with the formats of the operations behind its ranks.

    Parameters
    ----------
    parameters : MacParameters

    Ports
    -----
    a, b, stored, stored_class, clears : in
    number, result, result_class, code, promoted, events : out
        As of `hdl.mac.lane.Lane`; the last one only with counters.
    format_0, accumulator_format_0, rounding_0, random_0, ... : in
        Of the operation after this number of ranks, as far as it has them.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        formats = parameters.formats
        operand, number = operand_layout(formats), number_layout(formats)
        its_class = class_layout(with_flags=parameters.flags)
        self.positions = range(len(parameters.operation_ranks) + 1)
        choices = {
            "format": select_width(len(formats.operands)),
            "accumulator_format": select_width(len(formats.accumulators)),
            **{name: field.width for name, field in formats.controls},
        }
        super().__init__(
            {
                "a": In(operand),
                "b": In(operand),
                "stored": In(number),
                "stored_class": In(its_class),
                "clears": In(1),
                "number": Out(number),
                "result": Out(number),
                "result_class": Out(its_class),
                "code": Out(formats.accumulator_width),
                "promoted": Out(operand),
                **({"events": Out(events_layout())} if parameters.counters else {}),
                **{f"{name}_{at}": In(width) for name, width in choices.items() for at in self.positions},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = lane = Lane(self.parameters)
        for at in self.positions:
            m.d.comb += [
                lane.steps[at].format.eq(getattr(self, f"format_{at}")),
                lane.steps[at].accumulator_format.eq(getattr(self, f"accumulator_format_{at}")),
                *(
                    lane.steps[at][name].eq(getattr(self, f"{name}_{at}"))
                    for name in self.parameters.formats.controls.members
                ),
            ]
        inputs = ("a", "b", "stored", "stored_class", "clears")
        m.d.comb += [getattr(lane, name).eq(getattr(self, name)) for name in inputs]
        outputs = ["number", "result", "result_class", "code", "promoted"]
        outputs += ["events"] if self.parameters.counters else []
        m.d.comb += [getattr(self, name).eq(getattr(lane, name)) for name in outputs]
        return m


def no_ranks(operands: tuple[FloatFormat, ...], **given: Any) -> MacParameters:
    """Return the parameters of a lane that is all gates."""
    return _NoRanks(operands=operands, stages=1, **given)


def lane_proofs() -> Iterator[Proof]:
    """Yield the proofs of the lanes of one format and of several, at every depth."""
    for operands in dict.fromkeys(tuple(unit.arguments["operands"]) for unit in released(Kind.MAC)):
        named = " ".join(map(str, operands)) if len(operands) == 1 else "configurable"
        recommended = MacParameters(operands=operands).stages
        for stages in DEPTHS:
            for engine in (BITWUZLA, Z3_CADICAL) if stages == recommended else (BITWUZLA,):
                yield Proof(
                    f"lane/pipeline/{named}/stages_{stages}",
                    "lane: pipeline",
                    f"{named}, {stages} stage{'s' * (stages > 1)}",
                    "lane without ranks",
                    engine,
                    partial(lane_pipeline, operands, stages),
                    timeout=300,
                    fast=engine == BITWUZLA and stages in (1, recommended),
                )
    for stages in DEPTHS:
        claim, title = f"lane/pipeline/modes/stages_{stages}", f"{_OWN}, every mode, {stages} stage{'s' * (stages > 1)}"
        build = partial(lane_pipeline, (_OWN,), stages, roundings=tuple(Rounding))
        fast = stages == MacParameters(operands=(_OWN,)).stages
        yield Proof(claim, "lane: pipeline", title, "lane without ranks", BITWUZLA, build, 300, fast=fast)
        claim, title = claim.replace("modes", "counters"), title.replace("every mode", "with counters")
        build = partial(lane_pipeline, (_OWN,), stages, counters=True)
        yield Proof(claim, "lane: pipeline", title, "lane without ranks", BITWUZLA, build, 300, fast=fast)


def lane_pipeline(operands: tuple[FloatFormat, ...], stages: int, folder: Path, **given: Any) -> str:
    """Return a formula with a solution if a lane with ranks gives another result than the lane without.

    The multiplier, with the ranks that it has inside, is left out: see `lab.proofs.primitives.primitive_proofs`.
    """
    parameters = MacParameters(operands=operands, stages=stages, **given)
    unit = netlist_of(LaneAlone(parameters), folder, SEQUENTIAL_LANE)
    core = netlist_of(LaneAlone(no_ranks(operands, **given)), folder, EVERTED_LANE)
    gates = core.instance("core", given={name: term for name, term in _QUIET.items() if name in core.inputs})
    last = len(parameters.operation_ranks)
    cycles: list[dict[str, str]] = [dict(_QUIET) for _ in range(last + 2)]
    # Everything else that enters is of other operations, and may be anything.
    cycles[0] |= {name: gates.port(name) for name in ("a", "b")}
    cycles[parameters.position("read")]["stored"] = gates.port("stored")
    cycles[parameters.position("align")]["stored_class"] = gates.port("stored_class")
    cycles[last]["clears"] = gates.port("clears")
    multiplies = parameters.position("operands")
    multiplied = multiplies + sum(step in parameters.ranks for step in ("operands", "product"))
    # Where a rank follows the multiplier, the product has the name of that rank.
    (product,) = (name for name in unit.inputs if name.startswith("lane.multiplier."))
    cycles[multiplied][product] = gates.port("lane.multiplier.o")
    for at in range(last + 1):
        for name in ("format", "accumulator_format", *parameters.formats.controls.members):
            cycles[at][f"{name}_{at}"] = gates.port(f"{name}_0")
    first = unit.instance("at0", given={name: term for name, term in cycles[0].items() if name in unit.inputs})
    units = [first, *following(unit, last + 1, "later", first, cycles[1:])]
    text = gates.text + "".join(instance.text for instance in units)

    def same(instance: Instance, *names: str) -> list[str]:
        return [equal(instance.port(name), gates.port(name)) for name in names]

    claims = same(units[multiplies], "lane.multiplier.a", "lane.multiplier.b")
    claims += same(units[last - 1], "number") + same(units[last], "result", "result_class", "promoted")
    claims += same(units[last], "events") if parameters.counters else []
    claims += same(units[last + ("pack" in parameters.ranks)], "code")
    return text + refute(both(*claims))
