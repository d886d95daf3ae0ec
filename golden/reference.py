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
from typing import Any

from golden.exact import Class, Value, as_sequence, exact_number
from golden.exact_rounding import decode, decoded, round_value
from golden.flags import Flag
from golden.formats import FloatFormat, as_format
from golden.philox import FINAL_CONVERSION, FIRST_PROMOTION, MOST_STEPS, random_at
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, ReductionRounding, Rounding, as_rounding, check_random_bits

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
NEAREST_EVEN = Rounding.NEAREST_EVEN


def _value_of(number: int | Fraction, zero_sign: int = 0) -> Value:
    magnitude = -number if number < 0 else number
    return Value(Class.FINITE, int(number < 0) if number else zero_sign, magnitude, 0)


def encode(
    number: int | float | Fraction,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> int:
    """Return the code of an exact rational number (a float counts as what it is exactly); one rounding.

    `rounding`, `overflow`, `random` and `random_bits` are those of `round_value`, here and below.

    Raises
    ------
    TypeError, ValueError
        If `number` is not finite or no number, or another argument is what `round_value` refuses.
    """
    value = _value_of(exact_number(number))
    return round_value(value, fmt, rounding=rounding, overflow=overflow, random=random, random_bits=random_bits)[0]


def quantize(
    number: int | float | Fraction,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> Value:
    """Return the value of the format to which an exact rational number is rounded; errors are those of `encode`."""
    return decode(
        encode(number, fmt, rounding=rounding, overflow=overflow, random=random, random_bits=random_bits), fmt
    )


def convert(
    code: int,
    source: FloatFormat | str,
    destination: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[int, Flag]:
    """Convert a code between formats (NUMERICS section 3); returns code and flags.

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument, and as `round_value`.
    """
    source, destination = as_format(source, "source"), as_format(destination, "destination")
    value = decode(code, source)
    return round_value(value, destination, rounding=rounding, overflow=overflow, random=random, random_bits=random_bits)


def multiply_accumulate(
    a: int,
    b: int,
    acc: int,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    rounding: Rounding | str = NEAREST_EVEN,
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[int, Flag]:
    """One fused step ``round(a * b + acc)`` (NUMERICS section 4).

    Parameters
    ----------
    a, b : int
        Codes in `operand`.
    acc : int
        Code in `accumulator`, which is also the format of the result.
    operand, accumulator : FloatFormat or str
        The accumulator's format has infinities.

    Returns
    -------
    code : int
    flags : Flag

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument, and as `round_value`; if `accumulator` has no infinity.
    """
    operand, accumulator = as_format(operand, "operand"), as_format(accumulator, "accumulator")
    if not accumulator.has_inf:
        raise ValueError(f"accumulator: got {accumulator}, must have infinities (specials 'ieee')")
    rounding = as_rounding(rounding, "rounding")
    check_random_bits(rounding, random, random_bits)
    x, y, z = decoded(a, operand, "a"), decoded(b, operand, "b"), decoded(acc, accumulator, "acc")
    return fused_step(x, y, z, accumulator, rounding=rounding, random=random, random_bits=random_bits)


def fused_step(
    x: Value,
    y: Value,
    z: Value,
    accumulator: FloatFormat,
    *,
    rounding: Rounding = NEAREST_EVEN,
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[int, Flag]:
    """Return code and flags of ``round(x * y + z)`` of exact values; arguments are those of `multiply_accumulate`."""
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
    # Of zeros with one sign the sum is that zero; any other sum of 0 is negative in the mode `down` alone.
    same_zeros = product.is_zero and z.is_zero and product.sign == z.sign
    zero_sign = z.sign if same_zeros else int(rounding is Rounding.DOWN)
    total = _value_of(product.as_fraction() + z.as_fraction(), zero_sign)
    return round_value(total, accumulator, rounding=rounding, random=random, random_bits=random_bits)


class _Place:
    """The place of a result in its call: what a rounding of its reduction is given (NUMERICS section 10)."""

    def __init__(self, rounding: ReductionRounding, index: int) -> None:
        self.rounding, self.index = rounding, index

    def _options(self, mode: Rounding, step: int) -> dict[str, Any]:
        if mode is not Rounding.STOCHASTIC:
            return {"rounding": mode}
        bits = self.rounding.random_bits
        random = random_at(self.rounding.seed, self.rounding.call, self.index, step, bits)
        return {"rounding": mode, "random": random, "random_bits": bits}

    def of_step(self, step: int) -> dict[str, Any]:
        return self._options(self.rounding.rounding, step)

    def of_conversion(self) -> dict[str, Any]:
        return self._options(self.rounding.out_rounding, FINAL_CONVERSION)


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
    rounding: Rounding | str = NEAREST_EVEN,
    out_rounding: Rounding | str = NEAREST_EVEN,
    seed: int = 0,
    call: int = 0,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> tuple[int, Flag]:
    """Reduce ``sum(a[k] * b[k])`` (NUMERICS section 5); returns code in `out` or the outer format, and flags.

    `rounding` applies to every step and promotion, `out_rounding` to the conversion into `out`. Where one is
    ``stochastic``, `seed` (64 bits) and `call` (32) say which random bits it has, `random_bits` how many, at most 32.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type or out of range, a code wider than its format, or the lengths differ.
    """
    place = _Place(ReductionRounding.of(rounding, out_rounding, seed, call, random_bits), 0)
    return _dot(a, b, place, operand=operand, level=level, chunk=chunk, reduction=reduction, initial=initial, out=out)


def _dot(
    a: Sequence[int],
    b: Sequence[int],
    place: _Place,
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: int = 0,
    out: FloatFormat | str | None = None,
) -> tuple[int, Flag]:
    operand, destination = as_format(operand, "operand"), None if out is None else as_format(out, "out")
    a, b = as_sequence(a, "a"), as_sequence(b, "b")
    if len(a) != len(b):
        raise ValueError(f"a, b: got {len(a)} and {len(b)} codes, must be equally many")
    if place.rounding.is_random and len(a) > MOST_STEPS:
        raise ValueError(f"a, b: got {len(a)} codes, must be at most {MOST_STEPS} to be rounded stochastically")
    if not isinstance(reduction, Reduction | None):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction or None")
    plan = reduction or Reduction.for_level(level, operand, chunk=chunk)
    decoded(initial, plan.outer, "initial")
    total, flags = initial, Flag(0)
    formats: dict[str, Any]
    if plan.is_chain:
        formats = {"operand": operand, "accumulator": plan.outer}
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            total, raised = multiply_accumulate(x, y, total, **formats, **place.of_step(k))
            flags |= raised
    else:
        length = plan.chunk or max(len(a), 1)
        for number, start in enumerate(range(0, len(a), length)):
            partial, formats = 0, {"operand": operand, "accumulator": plan.inner}
            for k in range(start, min(start + length, len(a))):
                partial, raised = multiply_accumulate(a[k], b[k], partial, **formats, **place.of_step(k))
                flags |= raised
            formats = {"operand": plan.inner, "accumulator": plan.outer}
            promotion = place.of_step(FIRST_PROMOTION + number)
            total, raised = multiply_accumulate(partial, plan.inner.one, total, **formats, **promotion)
            flags |= raised
    if destination is not None:
        total, raised = convert(total, plan.outer, destination, **place.of_conversion())
        flags |= raised
    return total, flags


def matmul(
    a: Sequence[Sequence[int]],
    b: Sequence[Sequence[int]],
    *,
    operand: FloatFormat | str,
    rounding: Rounding | str = NEAREST_EVEN,
    out_rounding: Rounding | str = NEAREST_EVEN,
    seed: int = 0,
    call: int = 0,
    random_bits: int = DEFAULT_RANDOM_BITS,
    **options: Any,
) -> list[list[int]]:
    """Multiply an M x K by a K x N matrix of codes; options and errors are those of `dot`."""
    for argument, matrix in (("a", a), ("b", b)):
        lengths = {len(as_sequence(row, argument)) for row in as_sequence(matrix, argument)}
        if len(lengths) > 1:
            raise ValueError(f"{argument}: got rows of {sorted(lengths)} codes, must be equally long")
    columns = list(zip(*b, strict=True))
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    return [
        [
            _dot(row, column, _Place(modes, i * len(columns) + j), operand=operand, **options)[0]
            for j, column in enumerate(columns)
        ]
        for i, row in enumerate(a)
    ]


def exponential(number: int | float | Fraction, fmt: FloatFormat | str) -> int:
    """Return the code of exp(number), correctly rounded: widen the enclosure's digits until both ends agree.

    Raises
    ------
    TypeError, ValueError
        As `encode`.
    """
    number, fmt = exact_number(number), as_format(fmt, "fmt")
    if number > 1000:  # exp is then far above the largest value of any format here
        return fmt.overflow(0)
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
    if not fmt.has_inf:
        raise ValueError(f"fmt: got {fmt}, must have infinities (specials 'ieee')")
    values = [decoded(code, fmt, "codes") for code in as_sequence(codes, "codes")]
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
