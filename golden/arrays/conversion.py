"""Values to codes, codes to values, codes to codes (NUMERICS sections 3 and 8 to 10)."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, as_flag, as_floats, as_format, code_dtype, refuse_mask
from golden.arrays.choices import as_choice
from golden.arrays.pieces import round_into
from golden.arrays.rounding import PLAIN, Flags, RoundingChoice, codes_to_float64, float64_to_codes
from golden.arrays.tables import converted, look_up, table_of
from golden.formats import FP32, FloatFormat
from golden.kernels import flat
from golden.kernels.library import warn_of_slowness
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding

__all__ = ["convert", "decode", "encode", "quantize"]

_SECONDS_PER_VALUE = 2e-8  # on NumPy, roughly


def encode(
    values: ArrayLike,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    overflow: str = "special",
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
) -> NDArray[Any]:
    """Round values into a format, once.

    Parameters
    ----------
    values : float16, float32 or float64 array of any shape, or Python numbers
    fmt : FloatFormat or str
    rounding : Rounding or str
        The rounding mode, here and below a member or its name; to nearest, ties to even, unless given.
    overflow : str
        What becomes of a number beyond the largest finite value. ``"special"``: infinity, or NaN where there is none,
        or the largest finite value where there is neither. ``"saturate"``: the largest finite value, also of an
        infinity.
    random : unsigned array or int, optional
        Random words that broadcast to the shape of `values`. The mode ``stochastic`` needs them, no other takes them.
    random_bits : int
        How many bits a random word has: 1 to 32, 16 unless given.
    subnormals : str
        ``"keep"``, or ``"flush"``: a result below the smallest normal number, rounded as if exponents had no lower end,
        is the zero of its sign (NUMERICS section 12).

    Returns
    -------
    uint8 (uint16 above 8 bits, uint32 above 16) array of the shape of `values`
        Codes; the canonical NaN for every NaN, +0 where there is none.

    Raises
    ------
    TypeError
        If `values` are not floating point, or another argument is of another type.
    ValueError
        If `fmt` or `rounding` names nothing, a Python int is beyond 2**53, which not every float64 holds, or `random`
        is too wide, of another shape, or given for nothing.

    Examples
    --------
    >>> hex(encode(6.0, "cb16"))
    '0x5900'
    >>> [hex(encode(500.0, "float8_e4m3fn", overflow=overflow)) for overflow in ("special", "saturate")]
    ['0x7f', '0x7e']
    """
    fmt = as_format(fmt, "fmt")
    given = as_floats(values, "values")
    choice = as_choice(rounding, overflow, random, random_bits, "values", given.shape, subnormals)
    if choice is PLAIN and (served := flat.encode(given, fmt)) is not None:
        return served[()]
    codes = np.empty(given.shape, code_dtype(fmt))
    if given.dtype == np.float32 and (table := table_of(FP32, fmt, choice, given.size)):
        look_up(table.codes, given, codes)
    else:
        warn_of_slowness(given.size * _SECONDS_PER_VALUE)
        round_into(codes, given, fmt, choice, _as_float64, partial(float64_to_codes, fmt=fmt))
    return codes[()]


def _as_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype(np.float64)


def _as_float32(rounded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give every NaN float32's canonical one: the host's cast would keep its sign and payload."""
    return np.where(np.isnan(rounded), np.nan, rounded)


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
    if (table := table_of(fmt, FP32, PLAIN, given.size)) is not None:
        values = np.empty(given.shape, np.float32)
        look_up(table.values, given, values)
        return values[()]
    return codes_to_float64(given, fmt).astype(np.float32)[()]


def quantize(
    values: ArrayLike,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    overflow: str = "special",
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Return the values of the format to which values are rounded, as float32.

    Parameters
    ----------
    values : float16, float32 or float64 array of any shape, or Python numbers
    fmt : FloatFormat or str
    rounding, overflow, random, random_bits, subnormals
        As of `encode`.
    out : float32 array of the shape of `values`, C-contiguous, optional
        Takes the result and is returned; it may be `values` itself. Saves what a new array costs: for millions of
        values more than the rounding.

    Raises
    ------
    TypeError
        If `values` are not floating point, `out` is no float32 array, or another argument is of another type.
    ValueError
        If `fmt` or `rounding` names nothing, a Python int is beyond 2**53, `out` has another shape or is not
        contiguous, or `random` is too wide, of another shape, or given for nothing.

    Examples
    --------
    >>> float(quantize(0.1, "cbfloat16"))
    0.0999755859375
    >>> [float(quantize(0.1, "float8_e5m2", rounding=mode)) for mode in ("down", "up")]
    [0.09375, 0.109375]
    """
    fmt = as_format(fmt, "fmt")
    given = as_floats(values, "values")
    choice = as_choice(rounding, overflow, random, random_bits, "values", given.shape, subnormals)
    if out is None:
        result = np.empty(given.shape, np.float32)
    else:
        result = _as_out(out, given.shape)
        if given is not result and np.may_share_memory(given, result):
            given = given.copy()  # it may overlap, shifted
    if not (choice is PLAIN and flat.quantize(given, fmt, result)):
        _quantize(given, fmt, choice, result)
    return result if out is not None else result[()]


def _quantize(given: NDArray[Any], fmt: FloatFormat, choice: RoundingChoice, result: NDArray[np.float32]) -> None:
    if given.dtype == np.float32 and (table := table_of(FP32, fmt, choice, given.size)):
        look_up(table.values, given, result)
        return
    warn_of_slowness(given.size * _SECONDS_PER_VALUE)
    round_into(result, given, fmt, choice, _as_float64, _as_float32)


def _as_out(out: object, shape: tuple[int, ...]) -> NDArray[np.float32]:
    refuse_mask(out, "out")
    if not isinstance(out, np.ndarray) or out.dtype != np.float32:
        given = f"an array of {out.dtype}" if isinstance(out, np.ndarray) else repr(out)
        raise TypeError(f"out: got {given}, must be a float32 array or None")
    if out.shape != shape:
        raise ValueError(f"out: got shape {out.shape}, must be the shape of values, {shape}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned and out.dtype.isnative):
        raise ValueError("out: got a strided, read-only, unaligned or byte-swapped array, must be C-contiguous")
    return out


@overload
def convert(
    codes: ArrayLike,
    source: FloatFormat | str,
    destination: FloatFormat | str,
    *,
    rounding: Rounding | str = ...,
    overflow: str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
    subnormals: str = ...,
    return_flags: Literal[False] = ...,
) -> NDArray[Any]: ...
@overload
def convert(
    codes: ArrayLike,
    source: FloatFormat | str,
    destination: FloatFormat | str,
    *,
    rounding: Rounding | str = ...,
    overflow: str = ...,
    random: ArrayLike | None = ...,
    random_bits: int = ...,
    subnormals: str = ...,
    return_flags: Literal[True],
) -> tuple[NDArray[Any], Flags]: ...
def convert(
    codes: ArrayLike,
    source: FloatFormat | str,
    destination: FloatFormat | str,
    *,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    overflow: str = "special",
    random: ArrayLike | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
    return_flags: bool = False,
) -> NDArray[Any] | tuple[NDArray[Any], Flags]:
    """Convert codes between formats; one rounding where the destination does not hold the value.

    Parameters
    ----------
    codes : unsigned array of any shape, or Python ints
        Codes in `source`.
    source, destination : FloatFormat or str
    rounding, overflow, random, random_bits, subnormals
        As of `encode`. With ``subnormals="flush"``, a subnormal code counts as the zero of its sign, too.
    return_flags : bool
        Also return a uint8 array of `Flag` bits of the same shape.

    Raises
    ------
    TypeError
        If `codes` are not unsigned, or another argument is of another type.
    ValueError
        If a code is wider than `source`, a name names no format or mode, or `random` is too wide, of another shape, or
        given for nothing.

    Examples
    --------
    >>> hex(convert(0x5900, "cb16", "float4_e2m1fn"))
    '0x7'
    """
    source, destination = as_format(source, "source"), as_format(destination, "destination")
    given = as_codes(codes, source, "codes")
    choice = as_choice(rounding, overflow, random, random_bits, "codes", given.shape, subnormals)
    with_flags = as_flag(return_flags, "return_flags")
    if choice is PLAIN and not with_flags:
        served = flat.convert(given, source, destination)
        if served is not None:
            return served[()]
    result, flags = np.empty(given.shape, code_dtype(destination)), np.empty(given.shape, np.uint8)
    if (table := table_of(source, destination, choice, given.size)) is not None:
        look_up(table.codes, given, result)
        if with_flags:
            look_up(table.flags, given, flags)
    elif with_flags:
        result, flags = converted(given, source, destination, choice)
    else:
        values = partial(codes_to_float64, fmt=source, flushes=choice.flushes)
        round_into(result, given, destination, choice, values, partial(float64_to_codes, fmt=destination))
    return (result[()], flags[()]) if with_flags else result[()]
