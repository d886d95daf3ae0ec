"""Codes to exact values and back: the one rounding of `golden.reference`, in every mode and into every format."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from numbers import Integral

from golden.exact import Class, Value, power_of_two
from golden.flags import Flag
from golden.formats import FloatFormat, as_format
from golden.nearest import complete
from golden.rounding import (
    DEFAULT_RANDOM_BITS,
    STAYS_FINITE,
    Rounding,
    as_overflow,
    as_rounding,
    as_subnormals,
    check_random_bits,
)

__all__ = ["as_it_counts", "code_as_it_counts", "decode", "decoded", "floor_log2", "round_value", "ulp"]

NEAREST_EVEN = Rounding.NEAREST_EVEN
HALF = Fraction(1, 2)


def floor_log2(magnitude: Fraction) -> int:
    """Return the exponent of the largest power of two that is not above a positive number."""
    estimate = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return estimate if magnitude >= power_of_two(estimate) else estimate - 1


def ulp(value: Fraction, fmt: FloatFormat) -> Fraction:
    """Return the distance between the numbers of a format around a value."""
    exponent = max(floor_log2(abs(value)), fmt.emin) if value else fmt.emin
    return Fraction(2) ** (exponent - fmt.fraction_bits)


def decode(code: int, fmt: FloatFormat | str) -> Value:
    """Return the value of a code.

    Raises
    ------
    TypeError
        If the code is no int, or `fmt` no format and no name.
    ValueError
        If the code is negative or wider than the format, or `fmt` names no format.
    """
    return decoded(code, as_format(fmt, "fmt"), "code")


def decoded(code: int, fmt: FloatFormat, argument: str) -> Value:
    """Return the value of a code, or name the argument that it is."""
    if not isinstance(code, Integral) or isinstance(code, bool):
        raise TypeError(f"{argument}: got {code!r}, must be an int, a code of {fmt}")
    code = int(code)
    if not 0 <= code < 1 << fmt.width:
        raise ValueError(f"{argument}: got {code:#x}, must be 0 to {(1 << fmt.width) - 1:#x} for {fmt}")
    rest, fraction = divmod(code, 2**fmt.fraction_bits)
    sign, exponent_field = divmod(rest, 2**fmt.exponent_bits)
    if not fmt.is_finite(code):
        return Value(fmt.classify(code), sign)
    if exponent_field == 0 and not (fmt.normal_zero_field and fraction):
        fraction = fraction if fmt.subnormals else 0
        return Value(Class.FINITE, sign, fraction, fmt.emin - fmt.fraction_bits)
    return Value(Class.FINITE, sign, 2**fmt.fraction_bits + fraction, exponent_field - fmt.bias - fmt.fraction_bits)


def as_it_counts(value: Value, fmt: FloatFormat, subnormals: str) -> Value:
    """Return an operand of a format as it counts: with ``"flush"``, the zero of its sign for a subnormal one."""
    if subnormals == "keep" or value.kind is not Class.FINITE or abs(value.as_fraction()) >= _least(fmt):
        return value
    return Value(Class.FINITE, value.sign)


def code_as_it_counts(code: int, fmt: FloatFormat, subnormals: str) -> int:
    """Return the code of an operand as it counts; only of a format with signed zeros."""
    return code & fmt.sign_mask if as_it_counts(decode(code, fmt), fmt, subnormals).is_zero else code


#: Decides between `count` and `count + 1` quanta; `rest` is what lies above `count`, in quanta, 0 <= rest < 1.
Decision = Callable[[int, Fraction], bool]

#: Whether a magnitude is rounded up, away from zero (NUMERICS section 9), by its sign, the random number, and the bits
#: of that.
_DECISIONS: dict[Rounding, Callable[[int, int, int], Decision]] = complete(
    "golden.exact_rounding._DECISIONS",
    {
        Rounding.NEAREST_EVEN: lambda *_: lambda count, rest: rest > HALF or (rest == HALF and count % 2 == 1),
        Rounding.TOWARD_ZERO: lambda *_: lambda count, rest: False,
        Rounding.DOWN: lambda sign, *_: lambda count, rest: rest > 0 and sign == 1,
        Rounding.UP: lambda sign, *_: lambda count, rest: rest > 0 and sign == 0,
        Rounding.NEAREST_AWAY: lambda *_: lambda count, rest: rest >= HALF,
        Rounding.TO_ODD: lambda *_: lambda count, rest: rest > 0 and count % 2 == 0,
        Rounding.STOCHASTIC: lambda _, random, bits: lambda count, rest: rest * 2**bits // 1 + random >= 2**bits,
    },
    Rounding,
)


def _too_large(fmt: FloatFormat, sign: int, rounding: Rounding, saturates: bool) -> int:
    """Return the code of a result beyond the largest finite value (NUMERICS section 8; 9, last column)."""
    if saturates or STAYS_FINITE[rounding][sign]:
        return fmt.max_finite | sign * fmt.sign_mask
    return fmt.overflow(sign)


@lru_cache(maxsize=64)
def _largest(fmt: FloatFormat) -> Fraction:
    return decode(fmt.max_finite, fmt).as_fraction()


@lru_cache(maxsize=64)
def _least(fmt: FloatFormat) -> Fraction:
    """Return the smallest normal number."""
    return decode(fmt.min_normal, fmt).as_fraction()


def _round_to_digit(magnitude: Fraction, digit: int, goes_up: Decision) -> tuple[Fraction, bool]:
    """Round to a multiple of 2**digit; return the result and whether it is exact."""
    count, rest = divmod(magnitude / power_of_two(digit), 1)
    return (count + goes_up(count, rest)) * power_of_two(digit), rest == 0


def round_value(
    value: Value,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
) -> tuple[int, Flag]:
    """Round an exact value into a format: the one rounding routine (NUMERICS sections 2, 8 to 10, 12 and 13).

    Parameters
    ----------
    value : Value
        Any datum; its significand may be of any size. A signalling NaN raises invalid.
    fmt : FloatFormat or str
        The destination, here and below a format or the name of one.
    rounding : Rounding or str
        The rounding mode, here and below a member or its name; to nearest, ties to even, unless given.
    overflow : str
        What becomes of a result beyond the largest finite value. ``"special"``: infinity, or what the format has in its
        place. ``"saturate"``: the largest finite value, also of an infinity.
    random : int, optional
        Random bits, 0 to ``2**random_bits - 1``. The mode ``stochastic`` needs them, no other takes them.
    random_bits : int
        How many random bits there are, 16 unless given.
    subnormals : str
        ``"keep"``, or ``"flush"``: a result that is below the smallest normal number, when it is rounded with an
        unbounded exponent, is the zero of its sign. A format without subnormals has the latter alone.

    Returns
    -------
    code : int
        Code in `fmt`; the canonical NaN for a NaN (+0 if there is none), what the format has for what is too large.
    flags : Flag
        What the rounding raised; tininess is detected after rounding.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type or out of range, or `fmt` or `rounding` names nothing.
    """
    fmt = as_format(fmt, "fmt")
    if not isinstance(value, Value):
        raise TypeError(f"value: got {value!r}, must be a Value, as decode returns it")
    rounding, saturates = as_rounding(rounding, "rounding"), as_overflow(overflow, "overflow") == "saturate"
    flushes = as_subnormals(subnormals, "subnormals") == "flush" or not fmt.subnormals
    check_random_bits(rounding, random, random_bits)
    if value.is_nan:
        if not fmt.has_nan:
            return 0, Flag.INVALID
        is_invalid = value.kind is Class.SIGNALLING_NAN or fmt.has_merged
        return fmt.nan, Flag.INVALID if is_invalid else Flag(0)
    if value.kind is Class.INFINITE:
        if fmt.has_merged and not saturates:
            return fmt.overflow(value.sign), Flag.OVERFLOW | Flag.INEXACT
        if saturates or fmt.specials == "finite":
            return fmt.max_finite | value.sign * fmt.sign_mask, Flag.OVERFLOW | Flag.INEXACT
        return fmt.overflow(value.sign), Flag(0)
    sign = value.sign * fmt.sign_mask
    zero = sign if fmt.has_negative_zero else 0
    if value.is_zero:
        return zero, Flag(0)

    magnitude = value.significand * power_of_two(value.exponent)
    goes_up = _DECISIONS[rounding](value.sign, random or 0, random_bits)
    precision_limit = floor_log2(magnitude) - fmt.fraction_bits
    unbounded, _ = _round_to_digit(magnitude, precision_limit, goes_up)
    if flushes and unbounded < _least(fmt):
        return zero, Flag.UNDERFLOW | Flag.INEXACT
    # The lowest kept digit is the higher of the precision limit and the subnormal limit.
    subnormal_limit = fmt.emin - fmt.fraction_bits
    digit = precision_limit if flushes else max(precision_limit, subnormal_limit)
    rounded, exact = _round_to_digit(magnitude, digit, goes_up)
    if rounded > _largest(fmt):
        return _too_large(fmt, value.sign, rounding, saturates), Flag.OVERFLOW | Flag.INEXACT

    flags = Flag(0) if exact else Flag.INEXACT
    if not exact and unbounded < _least(fmt):
        flags |= Flag.UNDERFLOW
    if not rounded:
        return zero, flags
    if rounded < _least(fmt):
        return sign | int(rounded / power_of_two(subnormal_limit)), flags
    exponent = floor_log2(rounded)
    fraction = int(rounded / power_of_two(exponent - fmt.fraction_bits)) - 2**fmt.fraction_bits
    return sign | (exponent + fmt.bias) * 2**fmt.fraction_bits + fraction, flags
