"""Chains of fused steps and whole reductions on float64 arrays (NUMERICS sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.arrays.conversion import convert
from golden.arrays.counting import Tally
from golden.arrays.randomness import random_words
from golden.arrays.rounding import PLAIN, Flags, Float64, RoundingChoice, codes_to_float64, float64_to_codes
from golden.arrays.steps import fused_step, step_flags
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.kernels.library import warn_of_slowness
from golden.philox import FINAL_CONVERSION, FIRST_PROMOTION
from golden.reduction import Reduction
from golden.rounding import ReductionRounding, Rounding

__all__ = ["Chain", "last_rounding", "reduce_codes"]

Codes = NDArray[Any]
Marks = NDArray[np.bool_]

# Roughly: to nearest even, in another mode, with random bits.
_SECONDS_PER_STEP, _SECONDS_IN_MODE, _SECONDS_OF_CHANCE = 1.5e-8, 1.5e-7, 3e-7


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

    `index` numbers the results among those of their call, which are all of it unless given.
    """

    shape: tuple[int, ...]
    with_flags: bool
    rounding: ReductionRounding = field(default_factory=ReductionRounding)
    tally: Tally | None = None
    index: NDArray[np.uint64] | None = None
    flags: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.flags = np.zeros(self.shape, np.uint8)
        self._draws = random_words(self.shape, self.rounding, self.index) if self.rounding.is_random else None

    def choice(self, mode: Rounding, step: int) -> RoundingChoice:
        """Return how the step of this number is rounded."""
        if mode is Rounding.NEAREST_EVEN:
            return PLAIN
        if mode is not Rounding.STOCHASTIC or self._draws is None:
            return RoundingChoice(mode)
        return RoundingChoice(mode, False, self._draws(step), self.rounding.random_bits)

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
        total, mode = np.broadcast_to(initial, self.shape), self.rounding.rounding
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


def reduce_codes(
    a: Codes,
    b: Codes,
    shape: tuple[int, ...],
    *,
    operand: FloatFormat,
    plan: Reduction,
    start: Codes | None,
    out: FloatFormat | None,
    with_flags: bool,
    rounding: ReductionRounding,
    tally: Tally | None = None,
    index: NDArray[np.uint64] | None = None,
) -> tuple[Codes, Flags]:
    """Reduce over axis 0 of `a` and `b`, whose other axes broadcast to `shape`; return codes and their flags.

    `tally` counts the steps; `index` is that of `Chain`.
    """
    if start is None:
        start = np.zeros((), code_dtype(plan.outer))
    chain = Chain(shape, with_flags, rounding, tally, index)
    length = a.shape[0]
    warn_of_slowness(length * prod(shape) * _seconds_per_step(rounding))
    if length == 0:
        codes = np.broadcast_to(start, shape).copy()
    else:
        with np.errstate(all="ignore"):
            x, y = codes_to_float64(a, operand), codes_to_float64(b, operand)
            marks = operand.is_signalling(a), operand.is_signalling(b), plan.outer.is_signalling(start)
            signalling = Signalling(*marks) if with_flags or tally is not None else None
            begin = codes_to_float64(start, plan.outer)
            total = chain.reduce(length, lambda k: (x[k], y[k]), plan, begin, signalling)
            codes = float64_to_codes(total, plan.outer)
    # Also into the outer format itself: the initial value that an empty reduction gives may be any NaN.
    if out is not None:
        codes, raised = convert(codes, plan.outer, out, return_flags=True, **last_rounding(codes.shape, rounding))
        chain.flags = chain.flags | raised
    return codes[()], chain.flags[()]


def last_rounding(shape: tuple[int, ...], rounding: ReductionRounding) -> dict[str, Any]:
    """Return what the conversion of results into `out` is given."""
    options: dict[str, Any] = {"rounding": rounding.out_rounding}
    if rounding.out_rounding is Rounding.STOCHASTIC:
        words = random_words(shape, rounding)(FINAL_CONVERSION)
        options |= {"random": words, "random_bits": rounding.random_bits}
    return options


def _seconds_per_step(rounding: ReductionRounding) -> float:
    if rounding.rounding is Rounding.STOCHASTIC:
        return _SECONDS_OF_CHANCE
    return _SECONDS_PER_STEP if rounding.rounding is Rounding.NEAREST_EVEN else _SECONDS_IN_MODE
