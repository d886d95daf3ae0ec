"""Rounding of float32 codes into a format by integers, one exponent at a time; it shares no code with `golden`.

All float32 values of one sign and one exponent field have the lowest kept digit at the same place. Their codes are then
a quotient, rounded to even, plus a constant, and the fields themselves decide which that is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat

__all__ = ["codes_from_float32", "values_of_codes"]

_FRACTION, _BIAS, _FIELD_MAX = 23, 127, 255


def _of_one_field(fraction: NDArray[np.uint32], field: int, fmt: FloatFormat) -> NDArray[np.uint32]:
    """Codes of positive, finite float32 numbers of one exponent field; a single one where all have the same."""
    exponent = max(field, 1) - _BIAS  # the value is significand * 2**(exponent - 23)
    lowest_normal, highest = 1 - fmt.bias, 2**fmt.exponent_bits - 2 - fmt.bias
    if exponent > highest:
        return np.asarray(_infinity(fmt), np.uint32)
    # One unit of the code is 2**quantum; `drop` bits of the significand lie below it.
    quantum = max(exponent, lowest_normal) - fmt.fraction_bits
    drop = quantum - (exponent - _FRACTION)
    if drop > _FRACTION + 2:
        return np.asarray(0, np.uint32)
    significand = fraction | np.uint32(field != 0 and 1 << _FRACTION)
    # Codes count quanta; a normal significand brings 2**fraction_bits of them along, hence one exponent.
    base = (max(exponent, lowest_normal) - lowest_normal) << fmt.fraction_bits
    kept, rest = significand >> np.uint32(drop), significand & np.uint32((1 << drop) - 1)
    # Up if the rest is more than half, or half with an odd quotient: as integers, if rest + (0 or 1) is more than half.
    codes = kept + (rest + (kept & np.uint32(1)) > np.uint32(1 << drop >> 1)) if drop else kept
    return codes + np.uint32(base)  # one step above the largest finite code is infinity


def _infinity(fmt: FloatFormat) -> int:
    return (2**fmt.exponent_bits - 1) << fmt.fraction_bits


def codes_from_float32(inputs: NDArray[np.uint32], fmt: FloatFormat) -> NDArray[np.uint16]:
    """Return the codes to which float32 codes of one sign and exponent field are rounded.

    Parameters
    ----------
    inputs : uint32 array, ascending
    fmt : FloatFormat
        Of at most 16 bits.

    Returns
    -------
    uint16 array
        One code for each input, or a single one if all have the same.

    Raises
    ------
    ValueError
        If the inputs span several exponent fields.
    """
    first, last = int(inputs[0]), int(inputs[-1])
    if first >> _FRACTION != last >> _FRACTION:
        raise ValueError(f"inputs: got {first:#x} to {last:#x}, must lie in one exponent field")
    sign, field = divmod(first >> _FRACTION, _FIELD_MAX + 1)
    negative = np.uint32(sign << (fmt.exponent_bits + fmt.fraction_bits))
    fraction = inputs & np.uint32(2**_FRACTION - 1)
    if field == _FIELD_MAX:
        nan = _infinity(fmt) | 1 << (fmt.fraction_bits - 1)
        return np.where(fraction == 0, _infinity(fmt) | negative, np.uint32(nan)).astype(np.uint16)
    return (_of_one_field(fraction, field, fmt) | negative).astype(np.uint16)


def values_of_codes(fmt: FloatFormat) -> NDArray[np.uint32]:
    """Return the float32 code of the value of every code of a format of 16 bits."""
    codes = np.arange(1 << (1 + fmt.exponent_bits + fmt.fraction_bits))
    sign = codes >> (fmt.exponent_bits + fmt.fraction_bits)
    field = codes >> fmt.fraction_bits & (2**fmt.exponent_bits - 1)
    fraction = codes & (2**fmt.fraction_bits - 1)
    significand = (fraction + (field > 0) * 2**fmt.fraction_bits).astype(np.float64)
    magnitude = np.ldexp(significand, (np.maximum(field, 1) - fmt.bias - fmt.fraction_bits).astype(np.int32))
    special = field == 2**fmt.exponent_bits - 1
    magnitude = np.where(special, np.inf, magnitude)
    values = np.where(sign == 1, -magnitude, magnitude).astype(np.float32)
    return np.where(special & (fraction > 0), np.uint32(0x7FC00000), values.view(np.uint32))
