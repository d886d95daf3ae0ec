"""The scenarios of units with counters: golden's counts of all that is driven, and clears in the middle of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from golden import FloatFormat, Reduction, Rounding
from golden.exact_steps import Kind, Place, counted, reduced
from golden.philox import FIRST_PROMOTION
from sim.counts import COUNTERS, as_numbers
from sim.scenario import Scenario
from sim.stimulus.counted_events import countable, event_reductions
from sim.stimulus.mac import MacMaker
from sim.stimulus.order import Beat, Beats
from sim.stimulus.reductions import NO_ERROR, Chain, Segment
from sim.stimulus.resets import EPISODES, cut_off
from sim.stimulus.schedule import interleave

__all__ = ["CountingMaker", "counts_of_segment"]

#: The cycles in which the counters are cleared: often, twice in a row, and several times in a row.
_CLEARS = np.isin(np.arange(97), [3, 10, 11, 29, 50, 51, 52, 53, 80])
#: Cycles beyond its latency after which a unit surely ends steps.
_BUSY = 4


class _Brought(Place):
    """The place of a result whose products bring modes and random numbers; a promotion takes them from the last one."""

    def __init__(self, reduction: Reduction, segment: Segment, random_bits: int) -> None:
        super().__init__(reduction)
        self._segment, self._random_bits = segment, random_bits

    def of_step(self, step: int) -> dict[str, Any]:
        """Return the mode and random number of a step."""
        segment, k, random = self._segment, step, self._segment.random
        if step >= FIRST_PROMOTION:
            length = len(segment.a)
            k = min((step - FIRST_PROMOTION + 1) * (segment.chunk or length), length) - 1
            random = segment.random_promotion
        mode = Rounding(segment.modes[k])
        if mode is not Rounding.STOCHASTIC:
            return {"rounding": mode}
        return {"rounding": mode, "random": random[k], "random_bits": self._random_bits}


def counts_of_segment(
    segment: Segment, operand: FloatFormat, inner: FloatFormat | None = None, random_bits: int = 0
) -> list[int]:
    """Return the counts that the steps of a segment must add, by golden's exact reference.

    A segment without products is driven as a product that changes nothing. If a segment is abandoned, the products of
    its last chunk are counted unless the chunk was full, but not its promotion.

    Parameters
    ----------
    segment : Segment
        Its products have modes, or all are rounded to nearest.
    operand : FloatFormat
    inner : FloatFormat, optional
        The format to which operands are widened.
    random_bits : int
        Bits of the random numbers of its products.
    """
    if segment.error != NO_ERROR:
        return [0] * len(COUNTERS)
    a, b = segment.a or [operand.sign_mask], segment.b or [operand.one]
    plan = Reduction.for_level(segment.level, operand, chunk=segment.chunk or None, inner=inner or operand)
    plan = replace(plan, operand=operand)
    place = _Brought(plan, segment, random_bits) if segment.modes else Place(plan)
    steps = reduced(a, b, place, segment.initial)
    is_open = not plan.is_chain and not segment.last and (not segment.chunk or len(a) % segment.chunk != 0)
    assert not is_open or steps[-1].kind is Kind.PROMOTION
    return as_numbers(counted(steps[:-1] if is_open else steps))


class CountingMaker(MacMaker):
    """Makes the scenarios of one unit.

    The control and the steps are tested more thoroughly in other units. These scenarios test the counters: every event
    at every level, refusals and abandoned reductions, and clears and resets in the middle of work.
    """

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        made = [
            self.make("counted_events", self.counted_events),
            self.make("continuations", self.continuations),
            self.make("refusals", self.refusals, policy="random"),
            *self.control(),
        ]
        # With a bus, the unit is the same, and the scenarios test the bus.
        if self.port.counters == "ports":
            made += [*self.all_steps(), self.make("chunk_edges", self.chunk_edges), *self.streams()]
        for scenario in made:
            if scenario.name.startswith("stream") or scenario.name == "counted_events":
                scenario.clears = _CLEARS
        return made

    def control(self) -> list[Scenario]:
        """Return the scenario of resets while a step ends in almost every cycle.

        Every other episode runs to its end: steps before the reset must not be counted there.
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
        """Raise every event in every mode, in a product and in a promotion, several times in a row."""
        chains: list[Chain] = []
        for index, level in self.kinds:
            for a, b, chunk in event_reductions(self.operands[index], level, self.inner):
                for times in (1, 3):
                    segment = Segment(index, level, a * times, b * times, chunk=chunk)
                    chains += [[one] for one in self.in_each_mode(segment)]
        return chains

    def to_scenario(self, name: str, beats: Beats) -> Scenario:
        """Return a scenario of these products with golden's counts of their segments."""
        scenario = super().to_scenario(name, beats)
        scenario.counts = np.zeros((len(beats), len(COUNTERS)), np.int64)
        seen: set[int] = set()
        for at, (segment, _) in enumerate(beats):
            if id(segment) in seen:
                continue
            seen.add(id(segment))
            for one in self.parts(segment):
                operand = self.operands[min(one.format, len(self.operands) - 1)]
                numbers = counts_of_segment(one, operand, self.inner, self.random_bits)
                scenario.counts[at] += numbers
                self.bins += _met(self.operands, one, numbers)
        return scenario

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required = {"counters/cleared_while_counting"} if self.port.counters == "ports" else set()
        for index, level in self.kinds:
            operand = self.operands[index]
            heads = self.heads(f"{operand}/level_{level}")
            required |= {f"{head}/counted/{name}" for head in heads for name in countable(operand, level, self.inner)}
        return required | self.required_besides_counts()


def _met(operands: tuple[FloatFormat, ...], segment: Segment, numbers: list[int]) -> Counter[str]:
    """Return the counter bins of a segment; none if it is refused or its products differ in their modes."""
    head = f"{operands[min(segment.format, len(operands) - 1)]}/level_{segment.level}"
    if segment.modes:
        if segment.error != NO_ERROR or len(set(segment.modes)) > 1:
            return Counter()
        head = f"{head}/{Rounding(segment.modes[0])}"
    return Counter({f"{head}/counted/{name}": number for name, number in zip(COUNTERS, numbers, strict=True) if number})
