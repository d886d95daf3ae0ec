"""The scenarios of units whose products bring rounding modes, and of units with narrow operands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from golden import FP32, Flag, FloatFormat, Rounding, encode
from golden.rounding import MODE_BITS
from hdl.mac.parameters import WORD_WIDTH
from sim.scenario import Scenario
from sim.stimulus.control import port_changes, resets
from sim.stimulus.flushed import FLUSH, flushed_steps
from sim.stimulus.mac import MacMaker
from sim.stimulus.mac_coverage import accumulator_of
from sim.stimulus.order import Beats
from sim.stimulus.patterns import pattern
from sim.stimulus.reductions import NO_ERROR, UNSUPPORTED, Chain, Segment
from sim.stimulus.rounded_steps import beyond, rises, rows_of_steps, rows_of_widened_steps
from sim.stimulus.schedule import POLICIES, interleave
from sim.stimulus.step_operands import step_operands
from sim.stimulus.stepwise import predict_steps
from sim.stimulus.vector import VectorMaker

__all__ = ["RoundedMaker", "takes_modes_or_widens"]

#: Codes of the field ``rounding``.
_CODES = 1 << MODE_BITS
_STOCHASTIC = Rounding.STOCHASTIC.value
_RANDOM = ("random", "random_promotion")
_TURNS = 8


def takes_modes_or_widens(core: Any) -> bool:
    """Return whether a unit needs these scenarios, also for narrow operands that are not widened."""
    parameters = core.parameters
    is_narrow = any(fmt.width < WORD_WIDTH for fmt in parameters.operands)
    return not parameters.formats.is_nearest_even or parameters.widened is not None or is_narrow


class RoundedMaker(MacMaker):
    """Makes the scenarios of one unit.

    Other units have scenarios for the control around the lanes, except for the rank that widens. These test the mode
    and the random numbers of each product, and the steps that use them.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        parameters = self.mac.parameters
        self.inner: FloatFormat | None = parameters.widened
        self.modes = [mode.value for mode in parameters.formats.roundings]
        self.random_bits = int(parameters.random_bits)

    def format_names(self) -> list[str]:
        """Return the names of the operand formats; the last is the format they are widened to, or the narrowest.

        A failure line thus recognises a widened operand: it is narrower than the last format.
        """
        narrowest = min(self.operands, key=lambda fmt: fmt.width)
        last = self.inner or (narrowest if narrowest.width < self.operands[-1].width else None)
        return [fmt.name for fmt in (*self.operands, *([last] if last else []))]

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        few, many = 16 + int(100 * self.effort), 100 + int(2000 * self.effort)
        mixed = [self.make(f"mixed_{policy}", lambda: self.mixed(many), policy) for policy in POLICIES]
        for scenario in mixed:
            scenario.is_bulk = True
            scenario.offers, scenario.takes = pattern("random", self.rng), pattern("bursts", self.rng)
        sampled = self.make("mixed_sampled", lambda: self.mixed(few), "random")
        sampled.offers, sampled.takes = pattern("bursts", self.rng), pattern("random", self.rng)
        refusals = self.make("refusals", self.refusals, policy="random")
        refusals.is_bulk = True
        in_front = self.in_front() if self.inner else []
        return [*self.all_steps(), *mixed, sampled, refusals, *in_front, *self.lanes_apart()]

    def lanes_apart(self) -> list[Scenario]:
        """Let the random numbers of neighbouring lanes round their promotions in different directions, in fp32."""
        if not isinstance(self, VectorMaker):
            return []
        name = "lanes_apart"
        self.start(name)
        rows: list[Chain] = []
        alone: list[Chain] = []
        for index, level in self.kinds if _STOCHASTIC in self.modes else ():
            if level != 1 or self.random_bits < 2 or not self._quarter_of_an_ulp(index, 1, "promotion"):
                continue
            up, down = (one for one in self._edges(index, 1) if one.chunk == 1 and one.modes[-1] == _STOCHASTIC)
            for turn in range(_TURNS):
                pair = (up, down) if turn % 2 else (down, up)
                chains: list[Chain] = [[copy(pair[lane % 2])] for lane in range(self.elements(1))]
                made = self.row(chains, in_order=True)
                alone += [[element] for row in made for element in row.elements]
                rows.append([*made])
        if not rows:
            return []
        self.predict(alone)
        scenario = self.to_scenario(name, interleave(rows, self.mac.registers, self.rng, "rotation", self.paired))
        scenario.is_bulk = True
        return [scenario]

    def in_front(self) -> list[Scenario]:
        """Return scenarios of the rank that widens, which other units lack: pauses, pace, resets and the port."""
        made = [*self.streams(), *self.throughput(), *resets(self)]
        made += [port_changes(self)] if self.mac.parameters.has_chunks else []
        for scenario in made:
            scenario.is_bulk = True
        return made

    # -- rounding fields of products

    def brought(self, segment: Segment) -> None:
        """Draw the modes and random numbers of a segment's products, unless given."""
        if not segment.a:
            # The product that changes no sum, according to the unit's documents.
            operand = self.operands[segment.format if segment.format < len(self.operands) else 0]
            segment.modes = segment.modes or self._drawn_modes(1)
            is_down = segment.modes[0] == Rounding.DOWN.value
            segment.a = [0 if is_down or not operand.has_negative_zero else operand.sign_mask]
            segment.b = [operand.one]
        count = len(segment.a)
        segment.modes = segment.modes or self._drawn_modes(count)
        for name in _RANDOM:
            if not getattr(segment, name):
                setattr(segment, name, self._drawn_numbers(count))

    def _drawn_modes(self, count: int) -> list[int]:
        drawn: list[int] = self.rng.choice(self.modes, count).tolist()
        return drawn

    def _drawn_numbers(self, count: int) -> list[int]:
        top = (1 << self.random_bits) - 1
        drawn = self.rng.integers(0, top + 1, count)
        numbers: list[int] = np.where(self.rng.random(count) < 0.2, self.rng.choice([0, top], count), drawn).tolist()
        return numbers

    def complete(self, name: str, chains: list[Chain]) -> None:
        """Fill in rounding fields and expected answers of products; count the bins of steps."""
        for chain in chains:
            for segment in chain:
                self.brought(segment)
        super().complete(name, chains)
        for segment in itertools.chain(*chains) if name.startswith("steps") else ():
            for each in self.parts(segment):
                self.bins[self._met(each)] += 1

    def predict(self, chains: list[Chain]) -> None:
        """Fill in golden's results, step by step."""
        predict_steps(chains, self.operands, self.inner, self.random_bits, self.subnormals)

    def further_columns(self, beats: Beats) -> dict[str, Any]:
        """Return the rounding fields of the products, if the unit has any."""
        names = {"rounding": "modes", "random": "random", "random_promotion": "random_promotion"}
        return {
            field: np.array([self.brought_with(segment, name, k) for segment, k in beats], object)
            for field, name in names.items()
            if self.port.request.widths.get(field)
        }

    def in_each_mode(self, segment: Segment) -> list[Segment]:
        """Return a segment in every mode; stochastically with the least random numbers and with the largest."""
        top, count = (1 << self.random_bits) - 1, len(segment.a)
        made = []
        for mode in self.modes:
            for number in (0, top) if mode == _STOCHASTIC else (0,):
                drawn = [number] * count
                made.append(replace(segment, modes=[mode] * count, random=drawn, random_promotion=drawn))
        return made

    def heads(self, kind: str) -> list[str]:
        """Return one prefix for every mode."""
        return [f"{kind}/{Rounding(mode)}" for mode in self.modes]

    # -- steps

    def accumulator(self, index: int, level: int) -> FloatFormat:
        """Return the format in which products are accumulated."""
        return FP32 if level == 0 else self.inner or self.operands[index]

    def steps(self) -> list[Chain]:
        """Return reductions of two products: one makes an accumulator, the other is added to it in every mode."""
        chains: list[Chain] = []
        exact = self.modes[0]
        for index, level in self.kinds:
            operand = self.operands[index]
            rows = [*(rows_of_widened_steps(operand, self.rng) if self.inner else rows_of_steps(operand, level))]
            if self.subnormals == FLUSH and not self.inner:
                steps = flushed_steps(operand, self.accumulator(index, level))
                columns = (part.astype(np.int64).tolist() for part in (steps.c, steps.d, steps.a, steps.b))
                rows += zip(*columns, strict=True)
            for (c, d, a, b), mode in ((row, mode) for row in rows for mode in self.modes):
                for number in (0, -1) if mode == _STOCHASTIC else (0,):
                    random = [number % (1 << self.random_bits)] * 2
                    chains.append([Segment(index, level, [c, a], [d, b], chunk=0, modes=[exact, mode], random=random)])
            if not self.inner:
                groups = step_operands(operand, self.accumulator(index, level), self.rng, 8 + int(80 * self.effort))
                for steps in groups.values():
                    columns = (part.astype(np.int64).tolist() for part in (steps.c, steps.d, steps.a, steps.b))
                    chains += [
                        [Segment(index, level, [c, a], [d, b], chunk=0)] for c, d, a, b in zip(*columns, strict=True)
                    ]
            chains += [[segment] for segment in self._edges(index, level)]
            if level == 2 and not self.inner:
                chains += self._kept_finite(index)
        self.rng.shuffle(chains)
        return chains

    def _edges(self, index: int, level: int) -> Iterator[Segment]:
        """Yield 1 plus a quarter of an ulp: in a step, and in a promotion; with the random numbers on either side."""
        operand, exact, top = self.operands[index], self.modes[0], 1 << self.random_bits
        for at in ("step", "promotion"):
            powers = self._quarter_of_an_ulp(index, level, at)
            if not powers:
                continue
            a, b = (int(encode(2.0**power, operand)) for power in powers)
            for mode in self.modes:
                numbers = [top - top // 4, top - top // 4 - 1] if mode == _STOCHASTIC and top >= 4 else [0]
                for number in numbers:
                    # The wrong number would round the other way.
                    own, other = [number] * 2, [top - 1 - number] * 2
                    random, promotion = (own, other) if at == "step" else (other, own)
                    yield Segment(
                        index, level, [operand.one, a], [operand.one, b], chunk=0 if at == "step" else 1,
                        modes=[exact, mode], random=random, random_promotion=promotion,
                    )  # fmt: skip

        # Subtract it from 1 or 4: the lowest place that a random number reaches, as the difference loses its top place.
        accumulator = self.accumulator(index, level)
        place = -(accumulator.precision + self.random_bits)
        if _STOCHASTIC in self.modes and place // 2 >= operand.emin:
            for sign, number, doubled in itertools.product((0, operand.sign_mask), (0, 1), (0, 2)):
                start = operand.one + (doubled << operand.fraction_bits) | sign
                factors = (place // 2 + doubled, place - place // 2)
                a, b = (int(encode(2.0**power, operand)) for power in factors)
                yield Segment(
                    index, level, [start, a | sign ^ operand.sign_mask], [operand.one, b], chunk=0,
                    modes=[exact, _STOCHASTIC], random=[number] * 2,
                )  # fmt: skip

    def _quarter_of_an_ulp(self, index: int, level: int, at: str) -> list[int]:
        """Return the exponents of factors that make a quarter of an ulp of 1; none if no product is that small."""
        operand, inner = self.operands[index], self.inner or self.operands[index]
        accumulator = self.accumulator(index, level) if at == "step" else FP32 if level == 1 else inner
        left = -(accumulator.precision + 1) // 2
        powers = [left, -(accumulator.precision + 1) - left]
        is_lost = at == "promotion" and (not level or sum(powers) < inner.emin)
        return [] if is_lost or min(powers) < operand.emin else powers

    def _kept_finite(self, index: int) -> Iterator[Chain]:
        """Yield sums that are too large and stay finite, read again: from an even register, then from an odd one."""
        operand = self.operands[index]
        largest, minus = operand.max_finite, operand.sign_mask
        for mode, sign in itertools.product(self.modes, (0, minus)):
            if beyond(operand, Rounding(mode), int(sign > 0)) == "largest":
                a, b = [largest | sign, largest | sign ^ minus], [largest, operand.one]
                modes = [mode, self.modes[0]]
                yield [Segment(index, 2, a, b, chunk=0, odd=odd, modes=list(modes)) for odd in (False, True)]

    def _met(self, segment: Segment) -> str:
        """Return the bin of a reduction of two products: the outcome of the second one's step, or of its promotion."""
        level, outer = segment.level, accumulator_of(0, FP32)
        if level == 2:
            outer = self.inner or self.operands[segment.format]
        head = f"{self.operands[segment.format]}/level_{level}/{Rounding(segment.modes[-1])}"
        where = "promotion" if segment.chunk == 1 else "step"
        sign = "-" if segment.result & outer.sign_mask else "+"
        flags = Flag(segment.flags)
        if flags & Flag.OVERFLOW:
            kind = "infinity" if outer.is_inf(segment.result) else "largest"
            return f"{head}/{where}/overflow_to_{kind}{sign}"
        if flags & Flag.INVALID:
            return f"{head}/{where}/invalid"
        if flags & Flag.UNDERFLOW:
            return f"{head}/{where}/underflow{sign}"
        if flags & Flag.INEXACT:
            return f"{head}/{where}/inexact{self._direction(segment, outer, where)}"
        is_zero = not segment.result & (outer.sign_mask - 1)
        return f"{head}/{where}/{f'zero{sign}' if is_zero else 'exact'}"

    def _direction(self, segment: Segment, outer: FloatFormat, where: str) -> str:
        """Return the rounding direction of 1 plus a quarter of an ulp."""
        rounded_in = outer if where == "promotion" else self.accumulator(segment.format, segment.level)
        ulp = 1 << outer.fraction_bits - rounded_in.fraction_bits
        return {outer.one: "_from_1", outer.one + ulp: "_to_more_than_1"}.get(segment.result, "")

    def required(self) -> set[str]:
        """Return the bins that must not be empty."""
        required = {f"refused/{code}" for code in range(_CODES)} if len(self.modes) > 1 else set()
        required -= {f"refused/{code}" for code in self.modes}
        for index, level in self.kinds:
            operand, accumulator = self.operands[index], self.accumulator(index, level)
            lowest = 2 * (operand.emin - operand.fraction_bits)
            for code in self.modes:
                mode = Rounding(code)
                head = f"{operand}/level_{level}/{mode}/step"
                required |= {f"{head}/exact", f"{head}/zero{'-' if mode is Rounding.DOWN else '+'}"}
                if operand.has_inf:
                    required |= {f"{head}/invalid"}
                if self.inner:
                    continue
                for sign, name in ((0, "+"), (1, "-")):
                    if 2 * operand.emax >= accumulator.emax:
                        required.add(f"{head}/overflow_to_{beyond(accumulator, mode, sign)}{name}")
                    if self.subnormals == FLUSH:
                        is_reached = accumulator == operand or 2 * operand.emin < accumulator.emin
                    else:
                        is_reached = lowest < accumulator.emin - accumulator.fraction_bits
                    # A partial sum of -0 joins the total of +0, which stays +0 except in the mode down.
                    is_lost = sign and level and self.subnormals == FLUSH and mode is not Rounding.DOWN
                    if is_reached and not is_lost:
                        required.add(f"{head}/underflow{name}")
                for where in ("step", "promotion"):
                    if not self._quarter_of_an_ulp(index, level, where):
                        continue
                    ends = (
                        ("_from_1", "_to_more_than_1")
                        if code == _STOCHASTIC
                        else (("_from_1", "_to_more_than_1")[rises(accumulator, mode)],)
                    )
                    required |= {f"{operand}/level_{level}/{mode}/{where}/inexact{end}" for end in ends}
        return required

    def required_besides_counts(self) -> set[str]:
        """Return the bins of steps, if all steps are driven, and the bins of refusals."""
        rounded = RoundedMaker.required(self)
        return rounded if self.port.counters == "ports" else {one for one in rounded if one.startswith("refused/")}

    # -- refusals

    def refusals(self) -> list[Chain]:
        """Put products between others that are refused for their level, their format, or their mode."""
        chains = super().refusals()
        for code in set(range(_CODES)) - set(self.modes) if len(self.modes) > 1 else ():
            for index, level in self.kinds * 3:
                refused = self.segment(index, level, 1, error=UNSUPPORTED)
                refused.modes = [code]
                refused.first, refused.last = bool(self.rng.integers(2)), bool(self.rng.integers(2))
                chains.append([refused])
                self.bins[f"refused/{code}"] += 1
        self.rng.shuffle(chains)
        assert all(segment.a for chain in chains for segment in chain if segment.error != NO_ERROR)
        return chains
