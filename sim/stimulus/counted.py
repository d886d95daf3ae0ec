"""The scenarios of units with counters: golden's counts of all that is driven, and clears in the middle of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from golden import FP32, FloatFormat, encode
from golden.exact_steps import Kind, Place, counted, reduced
from golden.rounding import ReductionRounding
from sim.counts import COUNTERS, as_numbers
from sim.port import Port
from sim.scenario import Scenario
from sim.stimulus.mac import MacMaker
from sim.stimulus.order import Beat, Beats
from sim.stimulus.reductions import NO_ERROR, Chain, Segment
from sim.stimulus.resets import EPISODES, cut_off
from sim.stimulus.rows import Row
from sim.stimulus.schedule import interleave
from sim.stimulus.vector import VectorMaker

__all__ = ["CountingMaker", "CountingVectorMaker", "counting_scenarios", "counts_of_segment"]

#: In which cycles the counters are cleared: often, twice in a row, and again and again.
_CLEARS = np.isin(np.arange(97), [3, 10, 11, 29, 50, 51, 52, 53, 80])
#: Cycles beyond its latency after which a unit surely ends steps.
_BUSY = 4


def counting_scenarios(
    component: Any, port: Port, seed: int, unit: str, effort: float
) -> tuple[list[Scenario], set[str], list[str]]:
    """Return the scenarios, the coverage bins that must not be empty, and the names of the operand formats."""
    kind = CountingVectorMaker if hasattr(component, "lanes") else CountingMaker
    maker = kind(getattr(component, "unit", component), port, seed, unit, effort)
    return maker.scenarios(), maker.required(), [fmt.name for fmt in maker.operands]


def counts_of_segment(segment: Segment, operand: FloatFormat) -> list[int]:
    """Return what the steps of a segment are to add to the counters, by golden's exact reference.

    A segment without products is driven as one that changes nothing. Of one that is given up, the products of its last
    chunk are counted unless that was full, but no promotion of it.
    """
    if segment.error != NO_ERROR:
        return [0] * len(COUNTERS)
    a, b = segment.a or [operand.sign_mask], segment.b or [operand.one]
    plan, steps = reduced(
        a,
        b,
        Place(ReductionRounding(), 0),
        operand=operand,
        level=segment.level,
        chunk=segment.chunk or None,
        initial=segment.initial,
    )
    is_open = not plan.is_chain and not segment.last and (not segment.chunk or len(a) % segment.chunk != 0)
    assert not is_open or steps[-1].kind is Kind.PROMOTION
    return as_numbers(counted(steps[:-1] if is_open else steps))


class CountingMaker(MacMaker):
    """Makes the scenarios of one unit.

    The control and the steps are those of other units, which have more stimulus. These are about what is counted: every
    event at every level, refusals and reductions given up, and clears and resets in the middle of work.
    """

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        made = [
            self.make("counted_events", self.counted_events),
            self.make("continuations", self.continuations),
            self.make("refusals", self.refusals, policy="random"),
            *self.control(),
        ]
        # Over a bus the same unit is looked at, and the bus.
        if self.port.counters == "ports":
            made += [*self.all_steps(), self.make("chunk_edges", self.chunk_edges), *self.streams()]
        for scenario in made:
            if scenario.name.startswith("stream") or scenario.name == "counted_events":
                scenario.clears = _CLEARS
        return made

    def control(self) -> list[Scenario]:
        """Return the scenario of resets while a step ends in almost every cycle.

        Every other episode runs to its end: what came before the reset must not be counted there.
        """
        self.start("resets_while_counting")
        kinds = [self.kinds[at % len(self.kinds)] for at in range(EPISODES)]
        drawn = [[[self.segment(*kind, 9, chunk=self.default_chunk)] for _ in range(16)] for kind in kinds]
        self.complete("resets_while_counting", every := [chain for chains in drawn for chain in chains])
        completed, beats, starts = iter(every), list[Beat](), []
        for chains in drawn:
            starts.append(len(beats))
            episode = [next(completed) for _ in chains]
            beats += interleave(episode, self.mac.registers, self.rng, "rotation", self.paired)
        scenario = cut_off(self.to_scenario("resets_while_counting", beats), starts, self.rng)
        earliest = int(self.mac.latency) + _BUSY
        scenario.episodes[:, 2] = self.rng.integers(earliest, earliest + 30, EPISODES)
        scenario.episodes[1::2, 2] = 0
        return [scenario]

    def counted_events(self) -> list[Chain]:
        """Reduce what raises every event, in a product and in a promotion, several times in a row."""
        chains: list[Chain] = []
        for index, level in self.kinds:
            for a, b, chunk in event_reductions(self.operands[index], level):
                chains += [[Segment(index, level, a * times, b * times, chunk=chunk)] for times in (1, 3)]
        return chains

    def to_scenario(self, name: str, beats: Beats) -> Scenario:
        """Return the scenario that drives these products and expects golden's counts of their segments."""
        scenario = super().to_scenario(name, beats)
        scenario.counts = np.zeros((len(beats), len(COUNTERS)), np.int64)
        seen: set[int] = set()
        for at, (segment, _) in enumerate(beats):
            if id(segment) in seen:
                continue
            seen.add(id(segment))
            for one in self.parts(segment):
                numbers = counts_of_segment(one, self.operands[min(one.format, len(self.operands) - 1)])
                scenario.counts[at] += numbers
                self.bins += _met(self.operands, one, numbers)
        return scenario

    def parts(self, segment: Segment) -> Iterable[Segment]:
        """Return the reductions that go on in a segment."""
        return (segment,)

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required = {"counters/cleared_while_counting"} if self.port.counters == "ports" else set()
        for index, level in self.kinds:
            operand = self.operands[index]
            required |= {f"{operand}/level_{level}/counted/{name}" for name in countable(operand, level)}
        return required


class CountingVectorMaker(CountingMaker, VectorMaker):
    """Makes the scenarios of one unit with several lanes, which are counted together."""

    def parts(self, segment: Segment) -> Iterable[Segment]:
        """Return the reductions of all lanes."""
        assert isinstance(segment, Row)
        return segment.elements


def countable(operand: FloatFormat, level: int) -> set[str]:
    """Return which counters a reduction of these operands can move."""
    names = {f"products.{event}" for event in ("steps", "inexact", "invalid", "swamped")}
    if level or 2 * operand.emax >= FP32.emax:
        names.add("products.overflow")
    if level or 2 * (operand.emin - operand.fraction_bits) < FP32.emin - FP32.fraction_bits:
        names.add("products.underflow")
    if level:
        names |= {f"promotions.{event}" for event in ("steps", "inexact", "invalid", "swamped")}
        # A sum of two numbers of a format is never inexact where it is tiny.
        names |= {"promotions.overflow"} if level == 2 or operand.emax >= FP32.emax else set()
    return names


def event_reductions(operand: FloatFormat, level: int) -> Iterable[tuple[list[int], list[int], int]]:
    """Yield factors and chunk lengths that raise, together, every event of `countable`."""
    one, sign = operand.one, operand.sign_mask
    largest, least, odd = operand.max_finite, operand.min_subnormal, operand.one | 1
    chunks = (0, 1) if level else (0,)
    for chunk in chunks:
        # Overflow, and an infinity less itself; 0 times infinity; what is lost beside a large number.
        yield [largest, largest], [largest, largest], chunk
        yield [largest, largest], [one, one], chunk
        yield [operand.inf, operand.inf | sign], [one, one], chunk
        yield [0, one], [operand.inf, one], chunk
        yield [one, least, least | sign], [one, one, one], chunk
        yield [one, least, least | sign], [one, least, least], chunk
        # Less than an ulp below a power of two, and more than its half: two codes below.
        places = (operand if level else FP32).fraction_bits + 1
        factors = [
            int(encode(value, operand)) for value in (-1.875 * 2.0 ** -(places // 2), 2.0 ** -(places - places // 2))
        ]
        yield [one, factors[0]], [one, factors[1]], chunk
        # Inexact, and tiny: the odd subnormal times almost 1.
        yield [odd, odd], [odd, odd], chunk
        yield [operand.min_normal | 1, operand.min_normal | 1], [operand.min_normal | 1, odd], chunk


def _met(operands: tuple[FloatFormat, ...], segment: Segment, numbers: list[int]) -> Counter[str]:
    head = f"{operands[min(segment.format, len(operands) - 1)]}/level_{segment.level}/counted"
    return Counter({f"{head}/{name}": number for name, number in zip(COUNTERS, numbers, strict=True) if number})
