"""Values and codes on the host: float32 from codes, exactly, and codes from float32, to nearest even.

The engine rounds float32 operands itself. Initial values, results, and operands of an engine without converters are
codes, which the host converts here. The driver shares no code with the golden model, because that model judges it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.formats import FP32, FloatFormat

__all__ = ["to_codes", "to_values"]

_SIGN, _FRACTION_BITS, _BIAS = np.uint32(1 << 31), 23, 127


@lru_cache(maxsize=8)
def _table(fmt: FloatFormat) -> NDArray[np.uint32]:
    """Return the float32 code of every code of a 16-bit format."""
    codes = np.arange(1 << fmt.width, dtype=np.int64)
    sign = codes >> (fmt.width - 1)
    exponent_field = codes >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1)
    fraction = codes & ((1 << fmt.fraction_bits) - 1)
    is_subnormal, is_special = exponent_field == 0, exponent_field == (1 << fmt.exponent_bits) - 1
    # Small integers times powers of two: float64 holds them, and their float32 values, exactly.
    significand = np.where(is_subnormal, fraction, fraction + (1 << fmt.fraction_bits)).astype(np.float64)
    exponent = np.where(is_subnormal, 1, exponent_field) - fmt.bias - fmt.fraction_bits
    found = np.ldexp(significand, np.where(is_special, 0, exponent)).astype(np.float32).view(np.uint32)
    found = np.where(is_special, np.where(fraction == 0, FP32.inf, FP32.nan), found)
    signs = np.where(is_special & (fraction != 0), 0, sign << 31)
    return (found.astype(np.int64) | signs).astype(np.uint32)


def to_values(codes: NDArray[Any], fmt: FloatFormat) -> NDArray[np.float32]:
    """Return the float32 values of codes; every NaN is the canonical one."""
    if fmt == FP32:
        words = codes.astype(np.uint32)
        words[(words & ~_SIGN) > np.uint32(FP32.inf)] = FP32.nan
        return words.view(np.float32)
    return _table(fmt)[codes].view(np.float32)


def to_codes(values: NDArray[np.float32], fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of float32 values, rounded to nearest, ties to even; a NaN becomes the canonical one.

    Parameters
    ----------
    values : float32 array
    fmt : FloatFormat
        One with infinities, of 16 bits, or float32.
    """
    words = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    magnitude = (words & ~_SIGN).astype(np.int64)
    is_nan = magnitude > FP32.inf
    if fmt == FP32:
        return np.where(is_nan, np.uint32(FP32.nan), words)
    exponent_field = magnitude >> _FRACTION_BITS
    significand = (magnitude & ((1 << _FRACTION_BITS) - 1)) | np.where(exponent_field == 0, 0, 1 << _FRACTION_BITS)
    exponent = np.maximum(exponent_field, 1) - _BIAS + fmt.bias  # as an exponent field of the format
    # Bits below the last place: those that the format has fewer, and more where the result is subnormal.
    dropped = np.minimum(_FRACTION_BITS - fmt.fraction_bits + np.maximum(1 - exponent, 0), 40)
    kept = significand >> dropped
    rest, half = significand & ((np.int64(1) << dropped) - 1), np.int64(1) << (dropped - 1)
    kept += (rest > half) | ((rest == half) & (kept & 1 == 1))
    # A carry moves on into the exponent field by itself. The significand's top bit adds 1 to that field.
    code = kept + (np.maximum(exponent - 1, 0) << fmt.fraction_bits)
    code = np.where((exponent_field == 0xFF) | (code > fmt.inf), fmt.inf, code)
    code |= (words >> np.uint32(31)).astype(np.int64) << (fmt.width - 1)
    return np.where(is_nan, fmt.nan, code).astype(np.uint16)
