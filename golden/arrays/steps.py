"""One fused step on float64 arrays: the exact sum rounded to odd, then once into the accumulator's format."""

from __future__ import annotations

import numpy as np

from golden.arrays.rounding import Flags, Float64, round_float64, rounding_flags
from golden.flags import Flag
from golden.formats import FloatFormat

__all__ = ["add_rounded_to_odd", "fused_step", "step_flags"]


def add_rounded_to_odd(x: Float64, y: Float64) -> Float64:
    """Return ``x + y`` rounded to odd: of the two neighbours of an inexact sum, the one whose last bit is 1.

    A sum rounded to odd at 53 bits still tells on which side of any shorter midpoint the exact sum lies. Without this
    step, an exact-midpoint product plus a tiny accumulator, which needs more than 53 bits, would be rounded twice.
    """
    total = np.asarray(x + y)
    # Knuth's TwoSum: the rounding error of the host's addition, exactly.
    back = total - x
    error = (x - (total - back)) + (y - back)
    bits = total.view(np.int64)
    even_and_inexact = (error != 0) & (bits & 1 == 0) & np.isfinite(total)
    # One ulp towards the error: up in magnitude where error and sum have the same sign.
    step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
    return np.where(even_and_inexact, bits + step, bits).view(np.float64)


def fused_step(a: Float64, b: Float64, acc: Float64, accumulator: FloatFormat) -> tuple[Float64, Float64]:
    """Return ``round(a * b + acc)`` and the exact sum rounded to odd, from which the flags are read.

    The product of two factors of up to 24 bits is exact in float64. Call it inside ``np.errstate(all="ignore")``.
    """
    exact = add_rounded_to_odd(a * b, acc)
    return round_float64(exact, accumulator), exact


def step_flags(
    a: Float64, b: Float64, acc: Float64, exact: Float64, rounded: Float64, accumulator: FloatFormat
) -> Flags:
    """Return the flags of a step, but for signalling NaNs, which only the codes of the operands show."""
    infinity_times_zero = (np.isinf(a) & (b == 0)) | ((a == 0) & np.isinf(b))
    brought_nan = np.isnan(a) | np.isnan(b) | np.isnan(acc)
    invalid = infinity_times_zero | (np.isnan(rounded) & ~brought_nan)
    return rounding_flags(exact, rounded, accumulator) | invalid.astype(np.uint8) * np.uint8(Flag.INVALID)
