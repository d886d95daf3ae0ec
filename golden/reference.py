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

from golden.accumulator import Accumulator
from golden.exact import Class, Value, as_sequence, exact_number, number_value
from golden.exact_accumulator import accumulate
from golden.exact_groups import accumulate_groups
from golden.exact_rounding import as_it_counts, code_as_it_counts, decode, decoded, round_value
from golden.exact_steps import Place, Step, check_pairs, counted, multiply_accumulate, reduced
from golden.flags import Flag
from golden.formats import FloatFormat, as_format
from golden.grouped_sums import GroupedSums
from golden.machine import Machine
from golden.reduction import DEFAULT_CHUNK, Reduction, reduction_of
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding, as_subnormals

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


def encode(
    number: int | float | Fraction,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
) -> int:
    """Return the code of an exact rational number (a float counts with its exact value); one rounding.

    `rounding`, `overflow`, `random`, `random_bits` and `subnormals` are as in `round_value`, here and below.

    Raises
    ------
    TypeError, ValueError
        If `number` is not finite or no number, or another argument is what `round_value` refuses.
    """
    how: dict[str, Any] = {"overflow": overflow, "random": random, "random_bits": random_bits, "subnormals": subnormals}
    return round_value(number_value(exact_number(number)), fmt, rounding=rounding, **how)[0]


def quantize(
    number: int | float | Fraction,
    fmt: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
) -> Value:
    """Return the value of the format to which an exact rational number is rounded; errors as in `encode`."""
    how: dict[str, Any] = {"overflow": overflow, "random": random, "random_bits": random_bits, "subnormals": subnormals}
    return decode(encode(number, fmt, rounding=rounding, **how), fmt)


def convert(
    code: int,
    source: FloatFormat | str,
    destination: FloatFormat | str,
    *,
    rounding: Rounding | str = NEAREST_EVEN,
    overflow: str = "special",
    random: int | None = None,
    random_bits: int = DEFAULT_RANDOM_BITS,
    subnormals: str = "keep",
) -> tuple[int, Flag]:
    """Convert a code between formats (NUMERICS section 3); returns code and flags.

    With ``subnormals="flush"`` a subnormal code of `source` counts as the zero of its sign (NUMERICS section 12).

    Raises
    ------
    TypeError, ValueError
        As `decode`, naming the argument, and as `round_value`.
    """
    source, destination = as_format(source, "source"), as_format(destination, "destination")
    value = as_it_counts(decode(code, source), source, as_subnormals(subnormals, "subnormals"))
    how: dict[str, Any] = {"overflow": overflow, "random": random, "random_bits": random_bits, "subnormals": subnormals}
    return round_value(value, destination, rounding=rounding, **how)


def dot(
    a: Sequence[int],
    b: Sequence[int],
    *,
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Machine | None = None,
    initial: int = 0,
    out: FloatFormat | str | None = None,
    rounding: Rounding | str | None = None,
    out_rounding: Rounding | str | None = None,
    seed: int | None = None,
    call: int | None = None,
    random_bits: int | None = None,
    subnormals: str | None = None,
    counts: bool = False,
) -> tuple[Any, ...]:
    """Reduce ``sum(a[k] * b[k])`` (NUMERICS section 5).

    `reduction` may carry everything that the other keywords say; a keyword that is given takes the place of that part.
    `rounding` applies to every step and promotion, `out_rounding` to the conversion into `out`; both are to nearest
    even unless given. Where one is ``stochastic``, `seed` (64 bits) and `call` (32) say which random bits it has,
    `random_bits` how many, at most 32. `subnormals` is ``"keep"``, or ``"flush"``: subnormal operands, initial values
    and results become zeros of their sign (NUMERICS section 12). `reduction` may be another machine's accumulator, one
    of `golden.accumulators`, which rounds in its own way; its flags are 0 unless its rule has some.

    Returns
    -------
    code : int
        In `out`, or the outer format.
    flags : Flag
    counts : Counts
        Only with ``counts=True``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type or out of range, a code wider than its format, or the lengths differ.
    """
    if not isinstance(counts, bool):
        raise TypeError(f"counts: got {counts!r}, must be True or False")
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, out=out, rounding=rounding,
        out_rounding=out_rounding, seed=seed, call=call, random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    if whole.accumulator is not None:
        whole.accumulator.refuse(counts=counts)
    code, flags, done = dot_at(Place(whole), a, b, initial)
    return (code, flags, counted(done)) if counts else (code, flags)


def dot_at(place: Place, a: Sequence[int], b: Sequence[int], initial: int = 0) -> tuple[int, Flag, list[Step]]:
    """Return code, flags and steps of the result at a place of its call."""
    reduction = place.reduction
    flags = Flag(0)
    done: list[Step] = []
    if reduction.accumulator is not None:
        check_pairs(a, b, reduction)
        code, flags = _of_machine(a, b, initial, reduction)
    else:
        done = reduced(a, b, place, initial)
        code = done[-1].after if done else code_as_it_counts(initial, reduction.outer, reduction.subnormals)
    for step in done:
        flags |= step.flags
    if reduction.out is not None:
        code, raised = convert(code, reduction.outer, reduction.out, **place.of_conversion())
        flags |= raised
    if isinstance(reduction.accumulator, Accumulator):
        flags = Flag(0)
    return code, flags, done


def _of_machine(a: Sequence[int], b: Sequence[int], initial: int, reduction: Reduction) -> tuple[int, Flag]:
    """Return code and flags of the total of a machine that sums in its own way; flags that it has."""
    rule = reduction.accumulator
    if isinstance(rule, GroupedSums):
        return accumulate_groups(a, b, initial, rule=rule, rounding=reduction.rounding)
    if not isinstance(rule, Accumulator):
        raise TypeError(f"accumulator: got {rule!r}, must be an Accumulator or a GroupedSums")
    return accumulate(a, b, initial, operand=reduction.factors, accumulator=rule), Flag(0)


def matmul(
    a: Sequence[Sequence[int]],
    b: Sequence[Sequence[int]],
    *,
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Machine | None = None,
    initial: int = 0,
    out: FloatFormat | str | None = None,
    rounding: Rounding | str | None = None,
    out_rounding: Rounding | str | None = None,
    seed: int | None = None,
    call: int | None = None,
    random_bits: int | None = None,
    subnormals: str | None = None,
) -> list[list[int]]:
    """Multiply an M x K by a K x N matrix of codes; keywords and errors as in `dot`."""
    for argument, matrix in (("a", a), ("b", b)):
        lengths = {len(as_sequence(row, argument)) for row in as_sequence(matrix, argument)}
        if len(lengths) > 1:
            raise ValueError(f"{argument}: got rows of {sorted(lengths)} codes, must be equally long")
    columns = list(zip(*b, strict=True))
    whole = reduction_of(
        operand=operand, level=level, chunk=chunk, reduction=reduction, out=out, rounding=rounding,
        out_rounding=out_rounding, seed=seed, call=call, random_bits=random_bits, subnormals=subnormals,
    )  # fmt: skip
    return [
        [dot_at(Place(whole, i * len(columns) + j), row, column, initial)[0] for j, column in enumerate(columns)]
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
        return round_value(number_value(1), fmt)[0]
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
        exponentials.append(decode(code, fmt))
    if any(term.kind is Class.INFINITE for term in exponentials):  # only a format whose largest value is below 1
        return [fmt.nan if term.kind is Class.INFINITE else 0 for term in exponentials]
    terms = [term.as_fraction() for term in exponentials]
    total = Value(Class.FINITE)
    for term in terms:
        total = quantize(total.as_fraction() + term, fmt)
        if total.kind is Class.INFINITE:  # only a format whose largest value is below the count of ones
            return [0] * len(values)
    if not any(terms):  # only a format in which 1 rounds to 0: every quotient is 0 / 0
        return [fmt.nan] * len(values)
    return [encode(term / total.as_fraction(), fmt) for term in terms]
