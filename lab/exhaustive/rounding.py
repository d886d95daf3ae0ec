"""Rounding of float32 codes into a format by integers, one exponent at a time; it shares no code with `golden`.

`round_float32` is the same in C++ (rounding.cpp), with the flags, and ten times as fast.

All float32 values of one sign and one exponent field have the lowest kept digit at the same place. Their codes are then
a quotient, rounded to even, plus a constant, which depends on the field alone.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat
from tools.compiled import library
from tools.sliced import Sliced

__all__ = ["codes_from_float32", "count_alike", "flags_from_float32", "round_float32", "values_of_codes"]

_FRACTION, _BIAS, _FIELD_MAX = 23, 127, 255


def _largest(fmt: FloatFormat) -> int:
    """Return the code of the largest finite value, from the table of NUMERICS section 8."""
    ones = 2 ** (fmt.exponent_bits + fmt.fraction_bits) - 1
    return {"ieee": ones - 2**fmt.fraction_bits, "fn": ones - 1, "fnuz": ones, "finite": ones}[fmt.specials]


def _of_one_field(fraction: NDArray[np.uint32], field: int, fmt: FloatFormat) -> NDArray[np.uint32]:
    """Return codes of positive, finite float32 numbers of one exponent field, or a single one if all are equal.

    A number that is too large has a code above the largest finite one.
    """
    exponent = max(field, 1) - _BIAS  # the value is significand * 2**(exponent - 23)
    lowest_normal, highest = 1 - fmt.bias, (_largest(fmt) >> fmt.fraction_bits) - fmt.bias
    if exponent > highest:
        return np.asarray(_largest(fmt) + 1, np.uint32)
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
    return codes + np.uint32(base)


def _infinity(fmt: FloatFormat) -> int:
    return (2**fmt.exponent_bits - 1) << fmt.fraction_bits


def _special_codes(fmt: FloatFormat, sign: int) -> tuple[int, int]:
    """Return the codes of a number that is too large, and of NaN (NUMERICS section 8)."""
    magnitude = fmt.exponent_bits + fmt.fraction_bits
    match fmt.specials:
        case "ieee":
            return _infinity(fmt) | sign << magnitude, _infinity(fmt) | 1 << (fmt.fraction_bits - 1)
        case "fn":
            return 2**magnitude - 1, 2**magnitude - 1
        case "fnuz":
            return 2**magnitude, 2**magnitude
    return 2**magnitude - 1 | sign << magnitude, 0


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
    _check_range(int(inputs[0]), int(inputs[-1]))
    sign, field = divmod(int(inputs[0]) >> _FRACTION, _FIELD_MAX + 1)
    negative = np.uint32(sign << (fmt.exponent_bits + fmt.fraction_bits))
    fraction = inputs & np.uint32(2**_FRACTION - 1)
    beyond, nan = _special_codes(fmt, sign)
    if field == _FIELD_MAX:
        return np.where(fraction == 0, beyond, nan).astype(np.uint16)
    codes = _of_one_field(fraction, field, fmt)
    signed = codes | (negative if fmt.specials != "fnuz" else np.where(codes == 0, np.uint32(0), negative))
    return np.where(codes > _largest(fmt), np.uint32(beyond), signed).astype(np.uint16)


def _check_range(first: int, last: int) -> None:
    if first >> _FRACTION != last >> _FRACTION:
        raise ValueError(f"inputs: got {first:#x} to {last:#x}, must lie in one exponent field")


def _tiny_below(fmt: FloatFormat) -> int:
    """Return the code of the least float32 that rounds up to 2**emin with no lower limit of the exponent: a tie.

    It lies half an ulp below 2**emin, where the ulps are half as large as above.
    """
    lowest_normal = 1 - fmt.bias
    field = lowest_normal + _BIAS
    # Float32 has the same spacing below its smallest normal number as above it.
    half_ulp = 1 << (_FRACTION - fmt.fraction_bits - (2 if field == 1 else 1))
    return (field << _FRACTION) - half_ulp


def flags_from_float32(inputs: NDArray[np.uint32], fmt: FloatFormat) -> NDArray[np.uint8]:
    """Return the flags that `codes_from_float32` raises, from their definitions (NUMERICS section 2); same parameters.

    Inexact: the code's value is not the input's. Overflow: a finite input becomes infinity. Underflow: inexact, and
    below 2**emin when rounded with no lower limit of the exponent. Invalid: a signalling NaN.
    """
    magnitude = inputs & np.uint32(2**31 - 1)
    if int(magnitude[0]) >> _FRACTION == _FIELD_MAX:
        fraction = magnitude & np.uint32(2**_FRACTION - 1)
        return np.where((fraction != 0) & (fraction < 1 << (_FRACTION - 1)), np.uint8(16), np.uint8(0))
    codes = np.broadcast_to(codes_from_float32(inputs, fmt), inputs.shape)
    inexact = values_of_codes(fmt)[codes] != inputs
    overflow = codes & np.uint16(2 ** (fmt.exponent_bits + fmt.fraction_bits) - 1) == _infinity(fmt)
    underflow = inexact & (magnitude < _tiny_below(fmt))
    return inexact * np.uint8(1) + underflow * np.uint8(2) + overflow * np.uint8(4)


@lru_cache(maxsize=1)
def _compiled() -> ctypes.CDLL:
    source = Path(__file__).with_name("rounding.cpp").read_text(encoding="utf-8")
    made = ctypes.CDLL(str(library(source, options=("-O3", "-march=native"))))
    array = np.ctypeslib.ndpointer(np.uint32, flags="C_CONTIGUOUS")
    format_numbers = [*[ctypes.c_int] * 3, ctypes.c_uint32]
    made.round_float32.argtypes = [ctypes.c_uint32, ctypes.c_uint32, *format_numbers, array, array]
    made.round_float32.restype = None
    made.count_alike.argtypes = [ctypes.c_uint32, ctypes.c_uint64, *format_numbers, *[ctypes.c_void_p] * 2]
    made.count_alike.restype = ctypes.c_uint64
    return made


def _numbers(fmt: FloatFormat) -> tuple[int, int, int, int]:
    return fmt.exponent_bits, fmt.fraction_bits, fmt.bias, _tiny_below(fmt)


def round_float32(start: int, stop: int, fmt: FloatFormat) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return codes and flags of the float32 codes from `start` up to `stop`, of one exponent field; compiled.

    Raises
    ------
    ValueError
        If the range spans several exponent fields.
    RuntimeError
        If there is no C++ compiler, or it fails.
    """
    _check_range(start, stop - 1)
    codes, flags = np.empty(stop - start, np.uint32), np.empty(stop - start, np.uint32)
    _compiled().round_float32(start, stop - start, *_numbers(fmt), codes, flags)
    return codes, flags


def count_alike(start: int, stop: int, fmt: FloatFormat, netlist: Sliced) -> int:
    """Count the float32 codes, of one exponent field, that a netlist converts as `round_float32` does.

    Parameters
    ----------
    start, stop : int
    fmt : FloatFormat
    netlist : Sliced
        It has one input, and the outputs code and flags.
    """
    _check_range(start, stop - 1)
    run = ctypes.cast(netlist.function, ctypes.c_void_p)
    return _compiled().count_alike(start, stop - start, *_numbers(fmt), run, netlist.unit)


@cache
def values_of_codes(fmt: FloatFormat) -> NDArray[np.uint32]:
    """Return the float32 codes of all values of a format of at most 16 bits."""
    codes = np.arange(1 << (1 + fmt.exponent_bits + fmt.fraction_bits))
    sign = codes >> (fmt.exponent_bits + fmt.fraction_bits)
    field = codes >> fmt.fraction_bits & (2**fmt.exponent_bits - 1)
    fraction = codes & (2**fmt.fraction_bits - 1)
    significand = (fraction + (field > 0) * 2**fmt.fraction_bits).astype(np.float64)
    magnitude = np.ldexp(significand, (np.maximum(field, 1) - fmt.bias - fmt.fraction_bits).astype(np.int32))
    below_sign = codes & (2 ** (fmt.exponent_bits + fmt.fraction_bits) - 1)
    special = {
        "ieee": field == 2**fmt.exponent_bits - 1,
        "fn": below_sign > _largest(fmt),
        "fnuz": codes == 2 ** (fmt.exponent_bits + fmt.fraction_bits),
        "finite": codes < 0,
    }[fmt.specials]
    is_infinity = special & (fraction == 0) & (fmt.specials == "ieee")
    magnitude = np.where(special, np.inf, magnitude)
    values = np.where(sign == 1, -magnitude, magnitude).astype(np.float32)
    return np.where(special & ~is_infinity, np.uint32(0x7FC00000), values.view(np.uint32))
