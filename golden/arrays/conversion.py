"""Values to codes, codes to values, codes to codes (NUMERICS section 3)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, as_float64, as_format
from golden.arrays.rounding import (
    Flags,
    codes_to_float64,
    float64_to_codes,
    is_signalling,
    round_float64,
    rounding_flags,
)
from golden.flags import Flag
from golden.formats import FloatFormat

__all__ = ["convert", "decode", "encode", "quantize"]


def encode(values: ArrayLike, fmt: FloatFormat | str) -> NDArray[Any]:
    """Round values into a format, once, to nearest with ties to even.

    Parameters
    ----------
    values : float16, float32 or float64 array of any shape, or Python numbers
    fmt : FloatFormat or str

    Returns
    -------
    uint16 (uint32 above 16 bits) array of the shape of `values`
        Codes; the canonical NaN for every NaN, infinity on overflow.

    Raises
    ------
    TypeError
        If `values` are not floating point.
    ValueError
        If `fmt` names no format, or a Python int is beyond 2**53, which not every float64 holds.

    Examples
    --------
    >>> hex(encode(6.0, "cb16"))
    '0x5900'
    """
    fmt = as_format(fmt, "fmt")
    with np.errstate(all="ignore"):
        return float64_to_codes(round_float64(as_float64(values, "values"), fmt), fmt)[()]


def decode(codes: ArrayLike, fmt: FloatFormat | str) -> NDArray[np.float32]:
    """Return the exact values of codes as float32 (any shape); a NaN becomes float32's canonical one.

    Raises
    ------
    TypeError
        If `codes` are not unsigned.
    ValueError
        If a code is wider than the format, or `fmt` names no format.
    """
    fmt = as_format(fmt, "fmt")
    return codes_to_float64(as_codes(codes, fmt, "codes"), fmt).astype(np.float32)[()]


def quantize(values: ArrayLike, fmt: FloatFormat | str) -> NDArray[np.float32]:
    """Return the nearest values of the format as float32 (any shape); the errors are those of `encode`.

    Examples
    --------
    >>> float(quantize(0.1, "cbfloat16"))
    0.0999755859375
    """
    fmt = as_format(fmt, "fmt")
    with np.errstate(all="ignore"):
        rounded = round_float64(as_float64(values, "values"), fmt)
        # The host's cast keeps a NaN's sign and payload; the contract has one NaN.
        return np.where(np.isnan(rounded), np.nan, rounded).astype(np.float32)[()]


@overload
def convert(
    codes: ArrayLike, source: FloatFormat | str, destination: FloatFormat | str, *, return_flags: Literal[False] = ...
) -> NDArray[Any]: ...
@overload
def convert(
    codes: ArrayLike, source: FloatFormat | str, destination: FloatFormat | str, *, return_flags: Literal[True]
) -> tuple[NDArray[Any], Flags]: ...
def convert(
    codes: ArrayLike, source: FloatFormat | str, destination: FloatFormat | str, *, return_flags: bool = False
) -> NDArray[Any] | tuple[NDArray[Any], Flags]:
    """Convert codes between formats; one rounding where the destination does not hold the value.

    Parameters
    ----------
    codes : unsigned array of any shape, or Python ints
        Codes in `source`.
    source, destination : FloatFormat or str
    return_flags : bool
        Also return a uint8 array of `Flag` bits of the same shape.

    Raises
    ------
    TypeError
        If `codes` are not unsigned.
    ValueError
        If a code is wider than `source`, or a name names no format.
    """
    source, destination = as_format(source, "source"), as_format(destination, "destination")
    given = as_codes(codes, source, "codes")
    with np.errstate(all="ignore"):
        values = codes_to_float64(given, source)
        rounded = round_float64(values, destination)
        result = float64_to_codes(rounded, destination)[()]
        if not return_flags:
            return result
        flags = rounding_flags(values, rounded, destination)
        flags = flags | is_signalling(given, source).astype(np.uint8) * np.uint8(Flag.INVALID)
    return result, flags[()]
