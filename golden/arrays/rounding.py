"""Rounding of float64 arrays into a format, and codes to and from float64.

The rule is NUMERICS section 2; the method is float64's own: adding and subtracting a power of two whose last place is
the lowest kept digit makes the host round there, to nearest, ties to even, subnormals included.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.flags import Flag
from golden.formats import FloatFormat

__all__ = ["codes_to_float64", "float64_to_codes", "round_float64", "rounding_flags"]

Float64 = NDArray[np.float64]
Flags = NDArray[np.uint8]

_FRACTION = 52  # stored fraction bits of float64
_BIAS = 1023
_FIELD = np.uint64(0x7FF << _FRACTION)
# Magnitudes reach 2^256 (a product of two fp32 values); the cap keeps the power of two below from overflowing.
_FIELD_CAP = np.uint64(_BIAS + 300 << _FRACTION)


def _round_at_precision(x: Float64, fmt: FloatFormat, lowest_exponent: int) -> Float64:
    """Round to the precision of the format, keeping no digit below that of 2**lowest_exponent's ulp."""
    field = np.bitwise_and(np.asarray(x).view(np.uint64), _FIELD)
    field = np.clip(field, np.uint64(_BIAS + lowest_exponent << _FRACTION), _FIELD_CAP)
    # float64's last place at 2^52 ulps is one ulp: the sum below is rounded exactly there.
    shifter = np.asarray(field + np.uint64(_FRACTION - fmt.fraction_bits << _FRACTION)).view(np.float64)
    return np.copysign(np.abs(x) + shifter - shifter, x)


def round_float64(x: Float64, fmt: FloatFormat) -> Float64:
    """Round to the nearest value of the format, ties to even; overflow gives infinity, and a zero keeps its sign.

    Parameters
    ----------
    x : float64 array
        Exact values, or sums rounded to odd (53 bits hold two more than any format's precision, so that the second
        rounding is that of the exact sum).

    Returns
    -------
    float64 array
        Values of the format; NaN stays NaN.
    """
    rounded = _round_at_precision(x, fmt, fmt.emin)
    limit = (2 - 2.0**-fmt.fraction_bits) * 2.0**fmt.emax
    return np.where(np.abs(rounded) > limit, np.copysign(np.inf, x), rounded)


def rounding_flags(x: Float64, rounded: Float64, fmt: FloatFormat) -> Flags:
    """Return the flags of ``round_float64(x, fmt)``: inexact, underflow (tiny after rounding), overflow."""
    finite = np.isfinite(x)
    inexact = finite & (x != rounded)
    flags = inexact.astype(np.uint8) * np.uint8(Flag.INEXACT)
    flags = flags | (finite & np.isinf(rounded)).astype(np.uint8) * np.uint8(Flag.OVERFLOW)
    suspects = inexact & (np.abs(x) < 2.0**fmt.emin)
    if suspects.any():
        unbounded = _round_at_precision(np.where(suspects, x, 1.0), fmt, -400)
        flags = flags | (suspects & (np.abs(unbounded) < 2.0**fmt.emin)).astype(np.uint8) * np.uint8(Flag.UNDERFLOW)
    return flags


def float64_to_codes(values: Float64, fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of values that the format holds; every NaN becomes the canonical one."""
    magnitude = np.asarray(np.abs(values))
    # [field | fraction 52] -> [field | fraction_bits], then the bias is exchanged.
    bits = np.right_shift(magnitude.view(np.int64), _FRACTION - fmt.fraction_bits)
    normal = bits - ((_BIAS - fmt.bias) << fmt.fraction_bits)
    small = magnitude < 2.0**fmt.emin
    subnormal = (np.where(small, magnitude, 0.0) * 2.0 ** (fmt.fraction_bits - fmt.emin)).astype(np.int64)
    code = np.where(small, subnormal, normal)
    code = np.where(np.isinf(magnitude), fmt.inf, code)
    code = code | np.signbit(values) * np.int64(fmt.sign_mask)
    return np.where(np.isnan(values), fmt.nan, code).astype(code_dtype(fmt))


def _decode_by_fields(codes: NDArray[Any], fmt: FloatFormat) -> Float64:
    wide = codes.astype(np.int64)
    fraction = wide & ((1 << fmt.fraction_bits) - 1)
    exponent_field = (wide >> fmt.fraction_bits) & fmt.exponent_field_max
    significand = fraction + ((exponent_field > 0) << fmt.fraction_bits)
    exponent = np.maximum(exponent_field, 1) - fmt.bias - fmt.fraction_bits
    magnitude = np.ldexp(significand.astype(np.float64), exponent.astype(np.int32))
    magnitude = np.where(fmt.is_finite(wide), magnitude, np.where(fmt.is_nan(wide), np.nan, np.inf))
    return np.where((wide & fmt.sign_mask != 0) & ~np.isnan(magnitude), -magnitude, magnitude)


@lru_cache(maxsize=32)
def _decode_table(fmt: FloatFormat) -> Float64:
    table = _decode_by_fields(np.arange(1 << fmt.width), fmt)
    table.flags.writeable = False
    return table


def codes_to_float64(codes: NDArray[Any], fmt: FloatFormat) -> Float64:
    """Return the exact values of codes; every NaN becomes float64's quiet one."""
    if fmt.width <= 16:
        return _decode_table(fmt)[codes]
    return _decode_by_fields(codes, fmt)
