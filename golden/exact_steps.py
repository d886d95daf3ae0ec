"""One reduction, step by step: the fused step, the place of its rounding, and what every step did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from golden.counts import COUNTED, NO_EXPONENT, Counts, Events
from golden.exact import Class, Value, as_sequence, number_value
from golden.exact_rounding import as_it_counts, decode, decoded, floor_log2, round_value
from golden.flags import EVENTS, Flag
from golden.formats import FloatFormat, as_format
from golden.nearest import complete
from golden.philox import FINAL_CONVERSION, FIRST_PROMOTION, MOST_STEPS, random_at
from golden.reduction import Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding, as_rounding, as_subnormals, check_random_bits

__all__ = ["Kind", "Place", "Step", "check_pairs", "counted", "fused_step", "multiply_accumulate", "reduced", "steps"]

NEAREST_EVEN = Rounding.NEAREST_EVEN


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
    subnormals: str = "keep",
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
    subnormals : str
        ``"keep"``, or ``"flush"``: subnormal operands and results become zeros of their sign (NUMERICS section 12).

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
    as_subnormals(subnormals, "subnormals")
    given = (decoded(a, operand, "a"), operand), (decoded(b, operand, "b"), operand)
    x, y, z = (as_it_counts(*each, subnormals) for each in (*given, (decoded(acc, accumulator, "acc"), accumulator)))
    options: dict[str, Any] = {"random": random, "random_bits": random_bits, "subnormals": subnormals}
    return fused_step(x, y, z, accumulator, rounding=rounding, **options)


def fused_step(
    x: Value,
    y: Value,
    z: Value,
    accumulator: FloatFormat,
    *,
    rounding: Rounding = NEAREST_EVEN,
    **options: Any,
) -> tuple[int, Flag]:
    """Return code and flags of ``round(x * y + z)`` of exact values; arguments as in `multiply_accumulate`.

    The values are taken as they are: `rounding` and the options of `round_value` say what becomes of the result.
    """
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
    total = number_value(product.as_fraction() + z.as_fraction(), zero_sign)
    return round_value(total, accumulator, rounding=rounding, **options)


class Place:
    """A result of a call: its reduction, and the number by which its roundings have random bits (NUMERICS section 10).

    Parameters
    ----------
    reduction : Reduction
        With its operand.
    index : int
        Which result of its call it is, row by row.
    """

    def __init__(self, reduction: Reduction, index: int = 0) -> None:
        self.reduction, self.index = reduction, index

    def _options(self, mode: Rounding, step: int) -> dict[str, Any]:
        random, options = self.reduction.random, {"rounding": mode, "subnormals": self.reduction.subnormals}
        if mode is not Rounding.STOCHASTIC or random is None:
            return options
        word = random_at(random.seed, random.call, self.index, step, random.random_bits)
        return options | {"random": word, "random_bits": random.random_bits}

    def of_step(self, step: int) -> dict[str, Any]:
        """Return the rounding of a step: product k, or `FIRST_PROMOTION` plus the number of its chunk."""
        return self._options(self.reduction.rounding, step)

    def of_conversion(self) -> dict[str, Any]:
        """Return the rounding of the final conversion."""
        return self._options(self.reduction.out_rounding, FINAL_CONVERSION)


class Kind(Enum):
    """The kind of a step: it adds a product, or promotes a chunk."""

    PRODUCT = "product"
    PROMOTION = "promotion"


@dataclass(frozen=True)
class Step:
    """One fused step of a reduction, ``after = round(a * b + before)``.

    Parameters
    ----------
    kind : Kind
    index : int
        Which product, or the promotion of which chunk.
    a, b : int
        Codes in `operand`; a promotion's are the partial sum and 1.0.
    before, after : int
        Codes in `accumulator`: what the step found there, and what it left.
    flags : Flag
        What the step raised.
    operand, accumulator : FloatFormat
    subnormals : str
        ``"keep"`` or ``"flush"``. Values and sums below are those of the operands as they count.
    """

    kind: Kind
    index: int
    a: int
    b: int
    before: int
    after: int
    flags: Flag
    operand: FloatFormat
    accumulator: FloatFormat
    subnormals: str = "keep"

    @property
    def addend(self) -> Fraction | None:
        """The exact product; None unless it is finite."""
        factors = [as_it_counts(decode(code, self.operand), self.operand, self.subnormals) for code in (self.a, self.b)]
        if any(factor.kind is not Class.FINITE for factor in factors):
            return None
        return factors[0].as_fraction() * factors[1].as_fraction()

    @property
    def exact(self) -> Fraction | None:
        """The exact sum of product and accumulator; None unless both are finite."""
        addend, before = self.addend, self.value_before
        return None if addend is None or before is None else addend + before

    @property
    def value_before(self) -> Fraction | None:
        """The value that the step found; None unless it is finite."""
        return self._finite(self.before)

    @property
    def value_after(self) -> Fraction | None:
        """The value that the step left; None unless it is finite."""
        return self._finite(self.after)

    @property
    def lost(self) -> Fraction | None:
        """The rounding error: the exact sum less the rounded one; None unless both are finite."""
        exact, after = self.exact, self.value_after
        return None if exact is None or after is None else exact - after

    @property
    def is_swamped(self) -> bool:
        """Whether the addend is lost whole (NUMERICS section 11)."""
        return self.exact is not None and self.addend != 0 and self.value_after == self.value_before

    def _finite(self, code: int) -> Fraction | None:
        value = as_it_counts(decode(code, self.accumulator), self.accumulator, self.subnormals)
        return value.as_fraction() if value.kind is Class.FINITE else None


def steps(a: Sequence[int], b: Sequence[int], place: Place, initial: int = 0) -> Iterator[Step]:
    """Reduce ``sum(a[k] * b[k])`` (NUMERICS section 5); yields every product and promotion, in order."""
    reduction, operand = place.reduction, place.reduction.factors

    def step(kind: Kind, index: int, x: int, y: int, before: int, accumulator: FloatFormat) -> Step:
        formats = (operand if kind is Kind.PRODUCT else reduction.inner, accumulator)
        options = place.of_step(index if kind is Kind.PRODUCT else FIRST_PROMOTION + index)
        after, flags = multiply_accumulate(x, y, before, operand=formats[0], accumulator=formats[1], **options)
        return Step(kind, index, x, y, before, after, flags, *formats, reduction.subnormals)

    total = initial
    if reduction.is_chain:
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            yield (done := step(Kind.PRODUCT, k, x, y, total, reduction.outer))
            total = done.after
        return
    length = reduction.chunk or max(len(a), 1)
    for number, start in enumerate(range(0, len(a), length)):
        partial = 0
        for k in range(start, min(start + length, len(a))):
            yield (done := step(Kind.PRODUCT, k, a[k], b[k], partial, reduction.inner))
            partial = done.after
        yield (done := step(Kind.PROMOTION, number, partial, reduction.inner.one, total, reduction.outer))
        total = done.after


def reduced(a: Sequence[int], b: Sequence[int], place: Place, initial: int = 0) -> list[Step]:
    """Check the operands of one reduction; return its steps.

    Parameters
    ----------
    a, b : sequence of int
        Codes in the operand format.
    place : Place
    initial : int
        Code in the outer format.

    Raises
    ------
    TypeError, ValueError
        As `golden.reference.dot`.
    """
    check_pairs(a, b, place.reduction)
    decoded(initial, place.reduction.outer, "initial")
    return list(steps(a, b, place, initial))


def check_pairs(a: Sequence[int], b: Sequence[int], reduction: Reduction) -> None:
    """Refuse operands of different lengths, and more products than random bits have places for."""
    a, b = as_sequence(a, "a"), as_sequence(b, "b")
    if len(a) != len(b):
        raise ValueError(f"a, b: got {len(a)} and {len(b)} codes, must be equally many")
    if reduction.random is not None and reduction.accumulator is None and len(a) > MOST_STEPS:
        raise ValueError(f"a, b: got {len(a)} codes, must be at most {MOST_STEPS} to be rounded stochastically")


#: Whether an event occurred in a step (NUMERICS section 11).
_OCCURRED: dict[str, Callable[[Step], bool]] = complete(
    "golden.exact_steps._OCCURRED",
    {
        "inexact": lambda step: Flag.INEXACT in step.flags,
        "underflow": lambda step: Flag.UNDERFLOW in step.flags,
        "overflow": lambda step: Flag.OVERFLOW in step.flags,
        "invalid": lambda step: Flag.INVALID in step.flags,
        "swamped": lambda step: step.is_swamped,
    },
    EVENTS,
)


def counted(done: Iterable[Step]) -> Counts:
    """Count the events of these steps."""
    tallies: dict[Kind, Counter[str]] = {kind: Counter() for kind in Kind}
    largest = Fraction(0)
    for step in done:
        largest = max(largest, abs(step.value_after or Fraction(0)))
        tallies[step.kind].update(["steps", *(event for event, occurred in _OCCURRED.items() if occurred(step))])
    products, promotions = (Events(**{name: tallies[kind][name] for name in COUNTED}) for kind in Kind)
    return Counts(products, promotions, floor_log2(largest) if largest else NO_EXPONENT)
