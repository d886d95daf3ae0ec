"""Rounding of float64 arrays into a format, in every mode (NUMERICS sections 2, 8 to 10, 12 and 13), and codes of them.

To nearest even, the host's float64 rounds: adding and subtracting a power of two, whose last place is the lowest kept
digit, rounds at that digit, ties to even, subnormals included. The other modes count whole units of that digit and
decide by the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.nearest import complete
from golden.rounding import DEFAULT_RANDOM_BITS, STAYS_FINITE, Rounding

__all__ = [
    "PLAIN",
    "RoundingChoice",
    "codes_to_float64",
    "float64_to_codes",
    "flushed",
    "largest_value",
    "round_float64",
    "rounding_flags",
]

Float64 = NDArray[np.float64]
Flags = NDArray[np.uint8]

_FRACTION = 52  # stored fraction bits of float64
_BIAS = 1023
_FIELD = np.uint64(0x7FF << _FRACTION)
# Magnitudes reach 2^256 (a product of two fp32 values); the cap keeps the powers of two below from overflowing.
_FIELD_CAP = np.uint64(_BIAS + 300 << _FRACTION)
# The field of 2^-n is this less the field of 2^n.
_FIELD_OF_ONE_TWICE = np.uint64(2 * _BIAS << _FRACTION)
# An exponent below that of every number that is rounded, but for such as are far below every smallest normal number.
_UNBOUNDED = -400
# Units are at least 2^-423, and at most 32 random bits are read: any smaller magnitude rounds as this one.
_FAR_BELOW_ANY_UNIT = 2.0**-500


@dataclass(frozen=True, eq=False)
class RoundingChoice:
    """How to round to a format: the mode, the result of an overflow, and the words of a stochastic rounding.

    Parameters
    ----------
    rounding : Rounding
    saturates : bool
        Whether what is too large, an infinity too, becomes the largest finite value.
    random : unsigned array
        Words of `random_bits` bits that broadcast to the numbers; read by the mode ``stochastic`` alone.
    random_bits : int
    parts : two float64 arrays, optional
        Of sums that were rounded to odd, the nearest float64 and what is missing in it: with many random bits the last
        bit of the one rounded to odd does not tell enough.
    flushes : bool
        Whether what is below the smallest normal number, rounded with an unbounded exponent, becomes a zero. In a
        format without subnormals it always does.
    """

    rounding: Rounding = Rounding.NEAREST_EVEN
    saturates: bool = False
    random: NDArray[Any] | None = None
    random_bits: int = DEFAULT_RANDOM_BITS
    parts: tuple[Float64, Float64] | None = None
    flushes: bool = False


#: To nearest, ties to even; overflow gives infinity, or the code that the format has in its place.
PLAIN = RoundingChoice()


def _goes_up_at_random(x: Float64, count: Float64, rest: Float64, per_unit: Float64, choice: RoundingChoice) -> Any:
    # Sums of integers below 2^33: exact.
    whole = 2.0**choice.random_bits
    if choice.parts is not None:
        nearest, missing = (part * np.copysign(per_unit, x) for part in choice.parts)
        # The first difference is exact, or so large that the missing part does not count.
        needed = 1 - np.asarray(choice.random) / whole
        return (nearest - count - needed) + missing >= 0
    return np.floor(rest * whole) + choice.random >= whole


#: Which magnitudes become ``count + 1`` units; `rest` is the part above `count`, 0 <= rest < 1. To nearest even is
#: absent: `_round_at_precision` rounds it another way.
_GOES_UP: dict[Rounding, Callable[..., Any]] = {
    Rounding.TOWARD_ZERO: lambda *_: np.zeros((), bool),
    Rounding.DOWN: lambda x, count, rest, *_: (rest > 0) & np.signbit(x),
    Rounding.UP: lambda x, count, rest, *_: (rest > 0) & ~np.signbit(x),
    Rounding.NEAREST_AWAY: lambda x, count, rest, *_: rest >= 0.5,
    Rounding.TO_ODD: lambda x, count, rest, *_: (rest > 0) & (count % 2 == 0),
    Rounding.STOCHASTIC: _goes_up_at_random,
}
complete("golden.arrays.rounding._GOES_UP", [Rounding.NEAREST_EVEN, *_GOES_UP], Rounding)


def _round_at_precision(x: Float64, fmt: FloatFormat, lowest_exponent: int, choice: RoundingChoice) -> Float64:
    """Round to the precision of the format, keeping no digit below the ulp of ``2**lowest_exponent``."""
    magnitude = np.abs(x)
    field = np.bitwise_and(np.asarray(x).view(np.uint64), _FIELD)
    field = np.clip(field, np.uint64(_BIAS + lowest_exponent << _FRACTION), _FIELD_CAP)
    if choice.rounding is Rounding.NEAREST_EVEN:
        # float64's last place at 2^52 ulps is one ulp: the sum below is rounded exactly there.
        shifter = np.asarray(field + np.uint64(_FRACTION - fmt.fraction_bits << _FRACTION)).view(np.float64)
        return np.copysign(magnitude + shifter - shifter, x)
    # The quotient of a tiny number and a large unit must not underflow: it would look exact.
    magnitude = np.where(magnitude == 0, magnitude, np.maximum(magnitude, _FAR_BELOW_ANY_UNIT))
    unit = np.asarray(field - np.uint64(fmt.fraction_bits << _FRACTION))
    per_unit = np.asarray(_FIELD_OF_ONE_TWICE - unit).view(np.float64)
    scaled = magnitude * per_unit
    count = np.floor(scaled)
    rounded = count + _GOES_UP[choice.rounding](x, count, scaled - count, per_unit, choice)
    return np.copysign(rounded * unit.view(np.float64), x)


def flushed(x: Float64, fmt: FloatFormat) -> Float64:
    """Return numbers with zeros of their sign for those below the smallest normal number of the format."""
    return np.where(np.abs(x) < fmt.smallest_normal, np.copysign(0.0, x), x)


def largest_value(fmt: FloatFormat) -> float:
    """Return the largest finite value of a format."""
    fraction = fmt.max_finite & (1 << fmt.fraction_bits) - 1
    return (1 + fraction * 2.0**-fmt.fraction_bits) * 2.0**fmt.emax


def _without_infinity(fmt: FloatFormat, choice: RoundingChoice) -> float:
    """Return the value that a format has in place of infinity."""
    if fmt.specials == "finite" or choice.saturates:
        return largest_value(fmt)
    return np.inf if fmt.has_inf else np.nan


def round_float64(x: Float64, fmt: FloatFormat, choice: RoundingChoice = PLAIN) -> Float64:
    """Round to a value of the format.

    Parameters
    ----------
    x : float64 array
        Exact values, or sums rounded to odd (53 bits hold two more than any format's precision, so that the second
        rounding gives the exact sum, rounded once).
    fmt : FloatFormat
    choice : RoundingChoice
        To nearest, ties to even, unless given.

    Returns
    -------
    float64 array
        Values of the format. NaN stays NaN, but for a format that has none: +0. A zero keeps its sign where there are
        two. Where infinity and NaN are one, the sign of the NaN says which: that of the number that was too large, and
        0 for a NaN.
    """
    if choice.flushes or not fmt.subnormals:
        rounded = flushed(_round_at_precision(x, fmt, _UNBOUNDED, choice), fmt)
    else:
        rounded = _round_at_precision(x, fmt, fmt.emin, choice)
    infinite = _without_infinity(fmt, choice)
    stops = STAYS_FINITE[choice.rounding]
    beyond = np.abs(rounded) > largest_value(fmt)
    rounded = np.where(beyond, np.copysign(infinite, x), rounded)
    if any(stops):
        stopped = beyond & np.isfinite(x) & np.where(np.signbit(x), stops[1], stops[0])
        rounded = np.where(stopped, np.copysign(largest_value(fmt), x), rounded)
    if not fmt.has_nan:
        rounded = np.where(np.isnan(x), 0.0, rounded)
    elif fmt.has_merged:
        rounded = np.where(np.isnan(x), np.nan, rounded)
    return rounded if fmt.has_negative_zero else rounded + 0.0  # -0 + 0 is +0


def rounding_flags(x: Float64, rounded: Float64, fmt: FloatFormat, choice: RoundingChoice = PLAIN) -> Flags:
    """Return the flags of ``round_float64(x, fmt, choice)``, but for a signalling NaN, which only its code shows."""
    finite, largest = np.isfinite(x), largest_value(fmt)
    inexact = finite & (x != rounded)
    overflow = finite & (np.abs(x) > largest)
    if overflow.any():
        overflow = overflow & (np.abs(_round_at_precision(x, fmt, fmt.emin, choice)) > largest)
    # An infinity that becomes a number is an overflow, too, and so is one that becomes a NaN of its sign.
    number = np.isinf(x) & (np.isfinite(rounded) | fmt.has_merged)
    flags = (inexact | number).astype(np.uint8) * np.uint8(Flag.INEXACT)
    flags = flags | (overflow | number).astype(np.uint8) * np.uint8(Flag.OVERFLOW)
    suspects = inexact & (np.abs(x) < fmt.smallest_normal)
    if suspects.any():
        unbounded = _round_at_precision(np.where(suspects, x, 1.0), fmt, _UNBOUNDED, choice)
        flags = flags | (suspects & (np.abs(unbounded) < fmt.smallest_normal)).astype(np.uint8) * np.uint8(
            Flag.UNDERFLOW
        )
    if fmt.has_merged or not fmt.has_nan:
        flags = flags | np.isnan(x).astype(np.uint8) * np.uint8(Flag.INVALID)
    return flags


def float64_to_codes(values: Float64, fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of values that the format holds; every NaN becomes the canonical one."""
    magnitude = np.asarray(np.abs(values))
    # [field | fraction 52] -> [field | fraction_bits], then the bias is exchanged.
    bits = np.right_shift(magnitude.view(np.int64), _FRACTION - fmt.fraction_bits)
    normal = bits - ((_BIAS - fmt.bias) << fmt.fraction_bits)
    small = magnitude < fmt.smallest_normal
    subnormal = (np.where(small, magnitude, 0.0) * 2.0 ** (fmt.fraction_bits - fmt.emin)).astype(np.int64)
    code = np.where(small, subnormal, normal)
    if fmt.has_inf:
        code = np.where(np.isinf(magnitude), fmt.inf, code)
    code = code | np.signbit(values) * np.int64(fmt.sign_mask)
    if fmt.has_nan:
        nan = fmt.nan | np.signbit(values) * np.int64(fmt.sign_mask) if fmt.has_merged else fmt.nan
        code = np.where(np.isnan(values), nan, code)
    return code.astype(code_dtype(fmt))


def _decode_by_fields(codes: NDArray[Any], fmt: FloatFormat) -> Float64:
    wide = codes.astype(np.int64)
    fraction = wide & ((1 << fmt.fraction_bits) - 1)
    exponent_field = (wide >> fmt.fraction_bits) & fmt.exponent_field_max
    is_normal = wide & (fmt.sign_mask - 1) >= fmt.min_normal
    if not fmt.subnormals:
        fraction = np.where(is_normal, fraction, 0)
    significand = fraction + (is_normal << fmt.fraction_bits)
    exponent = np.maximum(exponent_field, fmt.emin + fmt.bias) - fmt.bias - fmt.fraction_bits
    magnitude = np.ldexp(significand.astype(np.float64), exponent.astype(np.int32))
    magnitude = np.where(fmt.is_finite(wide), magnitude, np.where(fmt.is_nan(wide), np.nan, np.inf))
    return np.where((wide & fmt.sign_mask != 0) & ~np.isnan(magnitude), -magnitude, magnitude)


@lru_cache(maxsize=32)
def _decode_table(fmt: FloatFormat) -> Float64:
    table = _decode_by_fields(np.arange(1 << fmt.width), fmt)
    table.flags.writeable = False
    return table


def codes_to_float64(codes: NDArray[Any], fmt: FloatFormat, *, flushes: bool = False) -> Float64:
    """Return the exact values of codes; every NaN becomes float64's quiet one.

    With `flushes`, subnormal codes count as zeros of their sign.
    """
    values = _decode_table(fmt)[codes] if fmt.width <= 16 else _decode_by_fields(codes, fmt)
    return flushed(values, fmt) if flushes else values
