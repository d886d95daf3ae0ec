"""Values to codes, codes to values, codes to codes (NUMERICS section 3)."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, as_flag, as_floats, as_format
from golden.arrays.rounding import (
    Flags,
    codes_to_float64,
    float64_to_codes,
    round_float64,
    rounding_flags,
)
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.kernels import flat
from golden.kernels.library import warn_of_slowness

__all__ = ["convert", "decode", "encode", "quantize"]

_SECONDS_PER_VALUE = 2e-8  # on NumPy, roughly


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
    given = as_floats(values, "values")
    served = flat.encode(given, fmt)
    if served is not None:
        return served[()]
    warn_of_slowness(given.size * _SECONDS_PER_VALUE)
    with np.errstate(all="ignore"):
        return float64_to_codes(round_float64(given.astype(np.float64), fmt), fmt)[()]


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
    given = as_codes(codes, fmt, "codes")
    served = flat.decode(given, fmt)
    if served is not None:
        return served[()]
    return codes_to_float64(given, fmt).astype(np.float32)[()]


def quantize(
    values: ArrayLike, fmt: FloatFormat | str, *, out: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return the nearest values of the format as float32.

    Parameters
    ----------
    values : float16, float32 or float64 array of any shape, or Python numbers
    fmt : FloatFormat or str
    out : float32 array of the shape of `values`, C-contiguous, optional
        Takes the result and is returned; it may be `values` itself. Saves what a new array costs: for millions of
        values more than the rounding.

    Raises
    ------
    TypeError
        If `values` are not floating point, or `out` is no float32 array.
    ValueError
        If `fmt` names no format, a Python int is beyond 2**53, or `out` has another shape or is not contiguous.

    Examples
    --------
    >>> float(quantize(0.1, "cbfloat16"))
    0.0999755859375
    """
    fmt = as_format(fmt, "fmt")
    given = as_floats(values, "values")
    if out is None:
        result = np.empty(given.shape, np.float32)
    else:
        result = _as_out(out, given.shape)
        if given is not result and np.may_share_memory(given, result):
            given = given.copy()  # it may overlap, shifted
    if not flat.quantize(given, fmt, result):
        warn_of_slowness(given.size * _SECONDS_PER_VALUE)
        with np.errstate(all="ignore"):
            rounded = round_float64(given.astype(np.float64), fmt)
            # The host's cast keeps a NaN's sign and payload; the contract has one NaN.
            result[...] = np.where(np.isnan(rounded), np.nan, rounded)
    return result if out is not None else result[()]


def _as_out(out: object, shape: tuple[int, ...]) -> NDArray[np.float32]:
    if not isinstance(out, np.ndarray) or out.dtype != np.float32:
        given = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else repr(out)
        raise TypeError(f"out: got {given}, must be a float32 array or None")
    if out.shape != shape:
        raise ValueError(f"out: got shape {out.shape}, must be that of values, {shape}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned and out.dtype.isnative):
        raise ValueError("out: got a strided, read-only, unaligned or byte-swapped array, must be C-contiguous")
    return out


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
    if not as_flag(return_flags, "return_flags"):
        served = flat.convert(given, source, destination)
        if served is not None:
            return served[()]
    with np.errstate(all="ignore"):
        values = codes_to_float64(given, source)
        rounded = round_float64(values, destination)
        result = float64_to_codes(rounded, destination)[()]
        if not return_flags:
            return result
        flags = rounding_flags(values, rounded, destination)
        flags = flags | source.is_signalling(given).astype(np.uint8) * np.uint8(Flag.INVALID)
    return result, flags[()]
