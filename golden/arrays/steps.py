"""One fused step on float64 arrays: the exact sum rounded to odd, then once into the accumulator's format."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from golden.arrays.rounding import PLAIN, Flags, Float64, RoundingChoice, round_float64, rounding_flags
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.rounding import Rounding

__all__ = ["add_rounded_to_odd", "fused_step", "step_flags"]


def _sum_and_error(x: Float64, y: Float64) -> tuple[Float64, Float64]:
    """Return the host's sum, to nearest, and its rounding error, exactly (Knuth's TwoSum)."""
    total = np.asarray(x + y)
    back = total - x
    return total, (x - (total - back)) + (y - back)


def add_rounded_to_odd(x: Float64, y: Float64) -> Float64:
    """Return ``x + y`` rounded to odd: of the two neighbours of an inexact sum, the one whose last bit is 1.

    A sum rounded to odd at 53 bits still tells on which side of any shorter midpoint the exact sum lies. Without this
    step, an exact-midpoint product plus a tiny accumulator, which needs more than 53 bits, would be rounded twice.
    """
    return _to_odd(*_sum_and_error(x, y))


def _to_odd(total: Float64, error: Float64) -> Float64:
    bits = total.view(np.int64)
    even_and_inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    # One ulp towards the error: up in magnitude where error and sum have the same sign.
    step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
    return np.where(even_and_inexact, bits + step, bits).view(np.float64)


def fused_step(
    a: Float64, b: Float64, acc: Float64, accumulator: FloatFormat, choice: RoundingChoice = PLAIN
) -> tuple[Float64, Float64, RoundingChoice]:
    """Return ``round(a * b + acc)``; the exact sum rounded to odd, and the choice, from which the flags are read.

    The product of two factors of up to 24 bits is exact in float64. Call it inside ``np.errstate(all="ignore")``.
    """
    product = a * b
    total, error = _sum_and_error(product, acc)
    if choice.rounding is Rounding.DOWN:  # a sum of 0 is negative; the host is right for two zeros
        total = np.where((total == 0) & (np.signbit(product) != np.signbit(acc)), -0.0, total)
    if choice.rounding is Rounding.STOCHASTIC:
        choice = replace(choice, parts=(total, error))
    exact = _to_odd(total, error)
    return round_float64(exact, accumulator, choice), exact, choice


def step_flags(
    a: Float64,
    b: Float64,
    acc: Float64,
    exact: Float64,
    rounded: Float64,
    accumulator: FloatFormat,
    choice: RoundingChoice = PLAIN,
) -> Flags:
    """Return the flags of a step, but for signalling NaNs, which only the codes of the operands show."""
    infinity_times_zero = (np.isinf(a) & (b == 0)) | ((a == 0) & np.isinf(b))
    brought_nan = np.isnan(a) | np.isnan(b) | np.isnan(acc)
    invalid = infinity_times_zero | (np.isnan(rounded) & ~brought_nan)
    return rounding_flags(exact, rounded, accumulator, choice) | invalid.astype(np.uint8) * np.uint8(Flag.INVALID)
