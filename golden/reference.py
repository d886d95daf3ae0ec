"""The numeric contract on exact integers: slow, obvious, no NumPy and no host floating point.

This is the specification in code. A number is a `Value` (class, sign, significand, exponent); every operation computes
its exact real result and passes it once through `round_value`, whatever the format. It shares nothing with the RTL but
the parameters of the formats: there is no shifter, no sticky bit and no alignment here, only divisions with remainder.

Codes are Python ints. The array functions of `golden` are the same operations, vectorised by other means.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral

from golden.exact import Class, Rounding, Value, as_sequence, exact_number, power_of_two
from golden.flags import Flag
from golden.formats import FloatFormat, as_format
from golden.reduction import DEFAULT_CHUNK, Reduction

__all__ = [
    "Class",
    "Rounding",
    "Value",
    "convert",
    "decode",
    "dot",
    "encode",
    "exponential",
    "matmul",
    "multiply_accumulate",
    "quantize",
    "round_value",
    "softmax",
]


NAN = Value(Class.QUIET_NAN)


def _floor_log2(magnitude: Fraction) -> int:
    estimate = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return estimate if magnitude >= power_of_two(estimate) else estimate - 1


def decode(code: int, fmt: FloatFormat | str) -> Value:
    """Return the value of a code.

    Raises
    ------
    TypeError
        If the code is no int, or `fmt` no format and no name.
    ValueError
        If the code is negative or wider than the format, or `fmt` names no format.
    """
    return _decoded(code, as_format(fmt, "fmt"), "code")


def _decoded(code: int, fmt: FloatFormat, argument: str) -> Value:
    if not isinstance(code, Integral) or isinstance(code, bool):
        raise TypeError(f"{argument}: got {code!r}, must be an int, a code of {fmt}")
    code = int(code)
    if not 0 <= code < 1 << fmt.width:
        raise ValueError(f"{argument}: got {code:#x}, must be 0 to {(1 << fmt.width) - 1:#x} for {fmt}")
    rest, fraction = divmod(code, 2**fmt.fraction_bits)
    sign, exponent_field = divmod(rest, 2**fmt.exponent_bits)
    if exponent_field == fmt.exponent_field_max:
        if fraction == 0:
            return Value(Class.INFINITE, sign)
        quiet = fraction >= 2 ** (fmt.fraction_bits - 1)
        return Value(Class.QUIET_NAN if quiet else Class.SIGNALLING_NAN, sign)
    if exponent_field == 0:
        return Value(Class.FINITE, sign, fraction, fmt.emin - fmt.fraction_bits)
    return Value(Class.FINITE, sign, 2**fmt.fraction_bits + fraction, exponent_field - fmt.bias - fmt.fraction_bits)


def _round_up(count: int, rest: Fraction, mode: Rounding) -> bool:
    """Decide between `count` and `count + 1` quanta; `rest` is what lies above `count`, in quanta, 0 <= rest < 1."""
    assert mode is Rounding.NEAREST_EVEN
    return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and count % 2 == 1)


def _round_to_digit(magnitude: Fraction, digit: int, mode: Rounding) -> tuple[Fraction, bool]:
    """Round to a multiple of 2**digit; return the result and whether it is exact."""
    count, rest = divmod(magnitude / power_of_two(digit), 1)
    return (count + _round_up(count, rest, mode)) * power_of_two(digit), rest == 0


def round_value(value: Value, fmt: FloatFormat | str, mode: Rounding = Rounding.NEAREST_EVEN) -> tuple[int, Flag]:
    """Round an exact value into a format: the one rounding routine (NUMERICS section 2).

    Parameters
    ----------
    value : Value
        Any datum; its significand may be of any size. A signalling NaN raises invalid.
    fmt : FloatFormat or str
        The destination, here and below a format or the name of one.
    mode : Rounding
        The rounding mode.

    Returns
    -------
    code : int
        Code in `fmt`; the canonical NaN for a NaN, infinity on overflow.
    flags : Flag
        What the rounding raised; tininess is detected after rounding.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, or `fmt` names no format.
    """
    fmt = as_format(fmt, "fmt")
    if not isinstance(value, Value):
        raise TypeError(f"value: got {value!r}, must be a Value, as decode returns it")
    if not isinstance(mode, Rounding):
        raise TypeError(f"mode: got {mode!r}, must be a member of Rounding")
    if value.is_nan:
        return fmt.nan, Flag.INVALID if value.kind is Class.SIGNALLING_NAN else Flag(0)
    sign = value.sign * fmt.sign_mask
    if value.kind is Class.INFINITE:
        return sign | fmt.inf, Flag(0)
    if value.is_zero:
        return sign, Flag(0)

    magnitude = value.significand * power_of_two(value.exponent)
    # The lowest kept digit is the higher of the precision limit and the subnormal limit.
    precision_limit = _floor_log2(magnitude) - fmt.fraction_bits
    subnormal_limit = fmt.emin - fmt.fraction_bits
    rounded, exact = _round_to_digit(magnitude, max(precision_limit, subnormal_limit), mode)
    if rounded > decode(fmt.max_finite, fmt).as_fraction():
        return sign | fmt.inf, Flag.OVERFLOW | Flag.INEXACT

    flags = Flag(0) if exact else Flag.INEXACT
    unbounded, _ = _round_to_digit(magnitude, precision_limit, mode)
    if not exact and unbounded < power_of_two(fmt.emin):
        flags |= Flag.UNDERFLOW
    if rounded < power_of_two(fmt.emin):
        return sign | int(rounded / power_of_two(subnormal_limit)), flags
    exponent = _floor_log2(rounded)
    fraction = int(rounded / power_of_two(exponent - fmt.fraction_bits)) - 2**fmt.fraction_bits
    return sign | (exponent + fmt.bias) * 2**fmt.fraction_bits + fraction, flags


def _value_of(number: int | Fraction, zero_sign: int = 0) -> Value:
    magnitude = -number if number < 0 else number
    return Value(Class.FINITE, int(number < 0) if number else zero_sign, magnitude, 0)


def encode(number: int | float | Fraction, fmt: FloatFormat | str) -> int:
    """Return the code nearest to an exact rational number (a float counts as what it is exactly); one rounding.

    Raises
    ------
    TypeError, ValueError
        If `number` is not finite or no number, or `fmt` no format and no name of one.
    """
    return round_value(_value_of(exact_number(number)), fmt)[0]


def quantize(number: int | float | Fraction, fmt: FloatFormat | str) -> Value:
    """Return the value of the format nearest to an exact rational number; errors are those of `encode`."""
    return decode(encode(number, fmt), fmt)


def convert(code: int, source: FloatFormat | str, destination: FloatFormat | str) -> tuple[int, Flag]:
    """Convert a code between formats (NUMERICS section 3); returns code and flags. Errors are those of `decode`."""
    source, destination = as_format(source, "source"), as_format(destination, "destination")
    return round_value(decode(code, source), destination)


def multiply_accumulate(
    a: int, b: int, acc: int, *, operand: FloatFormat | str, accumulator: FloatFormat | str
) -> tuple[int, Flag]:
    """One fused step ``round(a * b + acc)`` (NUMERICS section 4).

    Parameters
    ----------
    a, b : int
        Codes in `operand`.
    acc : int
        Code in `accumulator`, which is also the format of the result.

    Returns
    -------
    code : int
    flags : Flag

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument.
    """
    operand, accumulator = as_format(operand, "operand"), as_format(accumulator, "accumulator")
    x, y, z = _decoded(a, operand, "a"), _decoded(b, operand, "b"), _decoded(acc, accumulator, "acc")
    product_is_invalid = (x.kind is Class.INFINITE and y.is_zero) or (x.is_zero and y.kind is Class.INFINITE)
    if product_is_invalid or Class.SIGNALLING_NAN in (x.kind, y.kind, z.kind):
        return accumulator.nan, Flag.INVALID
    if x.is_nan or y.is_nan or z.is_nan:
        return accumulator.nan, Flag(0)

    product_sign = (x.sign + y.sign) % 2
    if Class.INFINITE in (x.kind, y.kind):
        if z.kind is Class.INFINITE and z.sign != product_sign:
            return accumulator.nan, Flag.INVALID
        return round_value(Value(Class.INFINITE, product_sign), accumulator)
    if z.kind is Class.INFINITE:
        return round_value(z, accumulator)

    product = Value(Class.FINITE, product_sign, x.significand * y.significand, x.exponent + y.exponent)
    both_negative_zeros = product.is_zero and z.is_zero and product.sign == z.sign == 1
    total = product.as_fraction() + z.as_fraction()
    return round_value(_value_of(total, zero_sign=int(both_negative_zeros)), accumulator)


def dot(
    a: Sequence[int],
    b: Sequence[int],
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: int = 0,
    out: FloatFormat | str | None = None,
) -> tuple[int, Flag]:
    """Reduce ``sum(a[k] * b[k])`` (NUMERICS section 5); returns code in `out` or the outer format, and flags.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type, a code wider than its format, or the lengths differ.
    """
    operand, destination = as_format(operand, "operand"), None if out is None else as_format(out, "out")
    a, b = as_sequence(a, "a"), as_sequence(b, "b")
    if len(a) != len(b):
        raise ValueError(f"a, b: got {len(a)} and {len(b)} codes, must be equally many")
    if not isinstance(reduction, Reduction | None):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction or None")
    plan = reduction or Reduction.for_level(level, operand, chunk=chunk)
    _decoded(initial, plan.outer, "initial")
    total, flags = initial, Flag(0)
    if plan.is_chain:
        for x, y in zip(a, b, strict=True):
            total, raised = multiply_accumulate(x, y, total, operand=operand, accumulator=plan.outer)
            flags |= raised
    else:
        length = plan.chunk or max(len(a), 1)
        for start in range(0, len(a), length):
            partial = 0
            for x, y in zip(a[start : start + length], b[start : start + length], strict=True):
                partial, raised = multiply_accumulate(x, y, partial, operand=operand, accumulator=plan.inner)
                flags |= raised
            total, raised = multiply_accumulate(
                partial, plan.inner.one, total, operand=plan.inner, accumulator=plan.outer
            )
            flags |= raised
    if destination is not None:
        total, raised = convert(total, plan.outer, destination)
        flags |= raised
    return total, flags


def matmul(
    a: Sequence[Sequence[int]], b: Sequence[Sequence[int]], *, operand: FloatFormat | str, **options: object
) -> list[list[int]]:
    """Multiply an M x K by a K x N matrix of codes; options and errors are those of `dot`."""
    for argument, matrix in (("a", a), ("b", b)):
        lengths = {len(as_sequence(row, argument)) for row in as_sequence(matrix, argument)}
        if len(lengths) > 1:
            raise ValueError(f"{argument}: got rows of {sorted(lengths)} codes, must be equally long")
    columns = list(zip(*b, strict=True))
    return [[dot(row, column, operand=operand, **options)[0] for column in columns] for row in a]  # type: ignore[arg-type]


def exponential(number: int | float | Fraction, fmt: FloatFormat | str) -> int:
    """Return the code of exp(number), correctly rounded: widen the enclosure's digits until both ends agree.

    Raises
    ------
    TypeError, ValueError
        As `encode`.
    """
    number, fmt = exact_number(number), as_format(fmt, "fmt")
    if number > 1000:  # exp is then far above the largest value of any format here
        return fmt.inf
    if number == 0:
        return round_value(_value_of(1), fmt)[0]
    if number < -1000:  # exp is then far below half of 2^-149, the smallest subnormal of any format here
        return 0
    digits = 30
    while True:
        context = decimal.Context(prec=digits, Emin=-(10**6), Emax=10**6)
        # The argument is rounded to `digits` digits and exp to as many: together below 2000 units of the last place.
        argument = context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
        estimate = Fraction(context.exp(argument))
        slack = estimate * 2000 / 10 ** (digits - 1)
        low, high = (encode(end, fmt) for end in (estimate - slack, estimate + slack))
        if low == high:
            return low
        digits *= 2


def softmax(codes: Sequence[int], fmt: FloatFormat | str) -> list[int]:
    """Softmax of a sequence of codes, every operation rounded to the format (NUMERICS section 6).

    A NaN input, or a difference ``x - max`` that is one (two infinities), makes every result that it reaches a NaN.

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument.
    """
    fmt = as_format(fmt, "fmt")
    values = [_decoded(code, fmt, "codes") for code in as_sequence(codes, "codes")]
    if any(value.is_nan for value in values):
        return [fmt.nan] * len(values)
    if any(value.kind is Class.INFINITE and not value.sign for value in values) or all(
        value.kind is Class.INFINITE for value in values
    ):
        # max is infinite: x - max is NaN where x equals it, and the sum, hence every quotient, is NaN.
        return [fmt.nan] * len(values)
    largest = max(value.as_fraction() for value in values if value.kind is Class.FINITE)
    exponentials = []
    for value in values:
        code = 0
        if value.kind is Class.FINITE:
            difference = quantize(value.as_fraction() - largest, fmt)
            code = 0 if difference.kind is Class.INFINITE else exponential(difference.as_fraction(), fmt)
        exponentials.append(decode(code, fmt).as_fraction())
    total = Value(Class.FINITE)
    for term in exponentials:
        total = quantize(total.as_fraction() + term, fmt)
        if total.kind is Class.INFINITE:  # only a format whose largest value is below the count of ones
            return [0] * len(values)
    return [encode(term / total.as_fraction(), fmt) for term in exponentials]
