"""The same sum done in other ways: other levels and chunks, another order, compensated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from golden.decimals import decimal_text, table, value_text
from golden.exact import Class
from golden.exact_reduction import ExactReduction
from golden.exact_rounding import decode
from golden.exact_steps import Kind, Place, multiply_accumulate, reduced
from golden.formats import FloatFormat
from golden.reduction import LEVELS, Reduction

__all__ = ["Alternative", "Alternatives", "alternatives"]

_CHUNKS = (8, 32, 128)


@dataclass(frozen=True)
class Alternative:
    """One way to do a sum.

    Parameters
    ----------
    name : str
    code : int
        The result, in `fmt`.
    fmt : FloatFormat
    exact : Fraction or None
        The exact sum; None if there is none.
    steps : int
        Fused steps that it takes.
    swamped : int or None
        Products that are lost whole; None where addends are kept elsewhere.
    """

    name: str
    code: int
    fmt: FloatFormat
    exact: Fraction | None
    steps: int
    swamped: int | None

    @property
    def error(self) -> Fraction | None:
        """The result less the exact sum; None unless both are finite."""
        result = decode(self.code, self.fmt)
        if self.exact is None or result.kind is not Class.FINITE:
            return None
        return result.as_fraction() - self.exact


class Alternatives(tuple[Alternative, ...]):
    """Ways to do a sum, one of which is the given one. ``print`` shows them side by side."""

    def __str__(self) -> str:
        heads = ["way", "result", "format", "error", "relative", "steps", "swamped"]
        return table([heads, *map(_cells, self)])


def _cells(way: Alternative) -> list[str]:
    error = share = "-"
    if way.error is not None:
        error = decimal_text(way.error, 4).lstrip("~")
        share = f"{float(abs(way.error / way.exact)):.1e}" if way.exact else "-"
    swamped = "-" if way.swamped is None else str(way.swamped)
    return [way.name, value_text(decode(way.code, way.fmt), 9), way.fmt.name, error, share, str(way.steps), swamped]


def alternatives(given: ExactReduction) -> Alternatives:
    """Do a sum in other ways, for comparison.

    Its own way first; the three levels; chunks of 8, 32 and 128; its products in reverse, by falling and by rising
    magnitude; and compensated in the inner format (Kahan's summation out of fused steps, four of them for a product),
    which keeps what each rounding loses. All round to nearest even, and treat subnormals as the given way does.

    Parameters
    ----------
    given : ExactReduction

    Returns
    -------
    Alternatives
        A tuple of Alternative.
    """
    return Alternatives(_ways(given))


def _ways(given: ExactReduction) -> Iterator[Alternative]:
    products = [step for step in given.steps if step.kind is Kind.PRODUCT]
    pairs = [(step.a, step.b) for step in products]
    exact, outer = given.exact, given.reduction.outer
    subnormals = given.reduction.subnormals
    reduction = Reduction(given.reduction.inner, given.reduction.chunk, outer)  # to nearest even

    def way(name: str, of: Sequence[tuple[int, int]], plan: Reduction) -> Alternative:
        codes = [code for code, _ in of], [code for _, code in of]
        # A start of 0 is 0 in any format; another is kept in its own.
        whole = replace(plan, operand=given.operand, subnormals=subnormals)
        done = ExactReduction(whole, given.initial, tuple(reduced(*codes, Place(whole), given.initial)))
        return Alternative(name, done.code, plan.outer, exact, len(done.steps), done.counts.products.swamped)

    yield Alternative("as given", given.code, outer, exact, len(given.steps), given.counts.products.swamped)
    inner = None if reduction.is_chain else reduction.inner
    for level in LEVELS:
        plan = Reduction.for_level(level, given.operand, chunk=reduction.chunk, inner=inner)
        if not given.initial or plan.outer == outer:
            yield way(f"level {level}", pairs, plan)
    if not reduction.is_chain:
        for chunk in _CHUNKS:
            yield way(f"chunks of {chunk}", pairs, Reduction(reduction.inner, chunk, outer))
    yield way("in reverse", pairs[::-1], reduction)
    if exact is not None:
        by_size = sorted(range(len(pairs)), key=lambda k: abs(products[k].addend or Fraction(0)))
        yield way("smallest first", [pairs[k] for k in by_size], reduction)
        yield way("largest first", [pairs[k] for k in reversed(by_size)], reduction)
    if not given.initial or reduction.inner == outer:
        yield Alternative("compensated", *_compensated(given, pairs), exact, 4 * len(pairs), None)


def _compensated(given: ExactReduction, pairs: Sequence[tuple[int, int]]) -> tuple[int, FloatFormat]:
    """Sum with a second accumulator for the lost parts (Kahan, Communications of the ACM 8 (1965) 40)."""
    fmt, subnormals = given.reduction.inner, given.reduction.subnormals

    def add(x: int, y: int) -> int:
        return multiply_accumulate(x, fmt.one, y, operand=fmt, accumulator=fmt, subnormals=subnormals)[0]

    def minus(x: int) -> int:
        return x ^ fmt.sign_mask

    total, lost = given.initial, 0
    for a, b in pairs:
        addend, _ = multiply_accumulate(
            a, b, minus(lost), operand=given.operand, accumulator=fmt, subnormals=subnormals
        )
        larger = add(addend, total)
        lost = add(add(larger, minus(total)), minus(addend))
        total = larger
    return total, fmt
