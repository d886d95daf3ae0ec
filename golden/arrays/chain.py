"""Chains of fused steps and whole reductions on float64 arrays (NUMERICS sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from golden.arrays.counting import Tally
from golden.arrays.randomness import random_words
from golden.arrays.rounding import PLAIN, Flags, Float64, RoundingChoice
from golden.arrays.steps import fused_step, step_flags
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.philox import FIRST_PROMOTION
from golden.reduction import Reduction
from golden.rounding import Randomness, Rounding

__all__ = ["Chain", "Marks", "Signalling"]

Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Signalling:
    """Where the factors of a reduction, along axis 0, and its initial values are signalling NaNs."""

    a: Marks
    b: Marks
    start: Marks

    def of_step(self, k: int, *, starts: bool = False) -> Marks:
        """Return where a factor of product k is one, or the initial value if the step `starts` from that."""
        marks = self.a[k] | self.b[k]
        return marks | self.start if starts else marks


@dataclass
class Chain:
    """A chain of steps for each result; it collects their flags and counts on request.

    Parameters
    ----------
    shape : tuple of int
        Of the results.
    with_flags : bool
    tally : Tally, optional
        Counts the steps.
    random : Randomness, optional
        Random bits of stochastic roundings.
    index : uint64 array, optional
        Numbers of the results in their call, which has no others unless given.
    flushes : bool
        Whether results that are subnormal become zeros; the operands of a step are values as they count.
    """

    shape: tuple[int, ...]
    with_flags: bool
    tally: Tally | None = None
    random: Randomness | None = None
    index: NDArray[np.uint64] | None = None
    flushes: bool = False
    flags: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.flags = np.zeros(self.shape, np.uint8)
        self._draws = None if self.random is None else random_words(self.shape, self.random, self.index)

    def choice(self, mode: Rounding, step: int) -> RoundingChoice:
        """Return how the step of this number is rounded."""
        if mode is Rounding.NEAREST_EVEN and not self.flushes:
            return PLAIN
        if mode is not Rounding.STOCHASTIC or self._draws is None or self.random is None:
            return RoundingChoice(mode, flushes=self.flushes)
        return RoundingChoice(mode, False, self._draws(step), self.random.random_bits, flushes=self.flushes)

    def step(
        self,
        a: Float64,
        b: Float64,
        acc: Float64,
        accumulator: FloatFormat,
        choice: RoundingChoice,
        *,
        signalling: Marks | None = None,
        is_promotion: bool = False,
    ) -> Float64:
        """Return ``round(a * b + acc)``; `signalling` tells where one of the three is a signalling NaN."""
        rounded, exact, choice = fused_step(a, b, acc, accumulator, choice)
        if self.with_flags or self.tally is not None:
            flags = step_flags(a, b, acc, exact, rounded, accumulator, choice)
            if signalling is not None:
                flags = flags | signalling.astype(np.uint8) * np.uint8(Flag.INVALID)
            self.flags = self.flags | flags
            if self.tally is not None:
                self.tally.add(flags, a * b, acc, rounded, is_promotion=is_promotion)
        return rounded

    def note_signalling(self, signalling: Marks) -> None:
        """Raise invalid where an operand is a signalling NaN."""
        self.flags = self.flags | signalling.astype(np.uint8) * np.uint8(Flag.INVALID)

    def reduce(
        self,
        length: int,
        pair: Callable[[int], tuple[Float64, Float64]],
        plan: Reduction,
        initial: Float64,
        signalling: Signalling | None,
    ) -> Float64:
        """Run the reduction of `length` pairs ``a[k], b[k]``; k is never re-ordered (NUMERICS section 5)."""
        total, mode = np.broadcast_to(initial, self.shape), plan.rounding
        if plan.is_chain:
            for k in range(length):
                marks = None if signalling is None else signalling.of_step(k, starts=k == 0)
                total = self.step(*pair(k), total, plan.outer, self.choice(mode, k), signalling=marks)
            return total
        one = np.ones(self.shape)
        chunk = plan.chunk or max(length, 1)
        for number, start in enumerate(range(0, length, chunk)):
            partial = np.zeros(self.shape)
            for k in range(start, min(start + chunk, length)):
                marks = None if signalling is None else signalling.of_step(k)
                partial = self.step(*pair(k), partial, plan.inner, self.choice(mode, k), signalling=marks)
            marks = None if signalling is None or number else signalling.start
            choice = self.choice(mode, FIRST_PROMOTION + number)
            total = self.step(partial, one, total, plan.outer, choice, signalling=marks, is_promotion=True)
        return total
