"""Fused sums of `golden.accumulator` on float64 arrays, which hold products, cut terms and their sums exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.arrays.rounding import Float64
from golden.formats import FP32, FloatFormat
from golden.rounding import Rounding

__all__ = ["NO_EXPONENT", "Term", "Terms", "accumulate_block", "flushed_total", "rounded_sum"]

Exponents = NDArray[np.int64]

#: The exponent of a term that takes no part in the alignment, below the exponent of every product.
NO_EXPONENT = -(1 << 20)
_LARGEST_SHIFT = 1000  # a term that many bits below the largest is below every digit that is kept


class Term(NamedTuple):
    """Terms of many sums: their values, and the exponents that count in the alignment."""

    value: Float64
    exponent: Exponents


Terms = Sequence[Term]


def accumulate_block(products: Terms, total: Float64, rule: Accumulator) -> Float64:
    """Return the totals to which a block of products was added, all of one shape."""
    natural = None
    if rule.products_overflow:
        natural = total
        for term in products:
            natural = natural + term.value
        infinite = [np.where(np.abs(v) >= 2.0**128, np.copysign(np.inf, v), v) for v, _ in products]
        products = [Term(value, term.exponent) for value, term in zip(infinite, products, strict=True)]
    terms = [products[at] for at in rule.order] or list(products)
    for stage in rule.stages:
        terms = _stage(terms, stage, rule)
    if rule.join.chain:
        result = _chain(terms, total, rule.join, rule)
    else:
        exponents = np.where(total == 0, rule.zero_total_exponent, _exponents(total, rule.outer))
        result = _sum([*terms, Term(total, exponents)], rule.join, rule, with_total=True).value
    return result if natural is None else np.where(np.isfinite(natural), result, natural)


def flushed_total(value: Float64, rule: Accumulator) -> Float64:
    """Return totals as an instruction takes them."""
    if rule.flush == "none":
        return value
    return np.where(np.abs(value) < 2.0**FP32.emin, 0.0 if rule.flush == "positive" else value * 0.0, value)


def _stage(terms: Terms, stage: FusedSum, rule: Accumulator) -> list[Term]:
    sums = len(terms) // stage.terms
    made = []
    for i in range(sums):
        group = terms[i::sums] if stage.interleaved else terms[i * stage.terms : (i + 1) * stage.terms]
        if stage.chain:
            value = _chain(group, np.zeros(()), stage, rule)
            made.append(Term(value, _exponents(value)))
        else:
            made.append(_sum(group, stage, rule))
    return made


def _chain(terms: Terms, total: Float64, spec: FusedSum, rule: Accumulator) -> Float64:
    for term in terms:
        total = _rounded(_sum_to_odd(term.value, total), spec, rule)
    return total


def _sum(terms: Terms, spec: FusedSum, rule: Accumulator, *, with_total: bool = False) -> Term:
    if spec.fraction_bits is None:
        exact = _sum_to_odd(terms[0].value, terms[1].value) if len(terms) == 2 else terms[0].value
        exponent = np.zeros((), np.int64)
    else:
        exponent = terms[0].exponent
        for term in terms[1:]:
            exponent = np.maximum(exponent, term.exponent)
        exact = np.zeros(())
        for at, (value, own) in enumerate(terms):
            is_total = with_total and at == len(terms) - 1
            bits = rule.total_fraction_bits if is_total and rule.total_fraction_bits else spec.fraction_bits
            if is_total and rule.total_reach is not None:
                value = np.where((own < exponent - rule.total_reach) & np.isfinite(value), 0.0, value)
            exact = exact + _cut(value, np.maximum(exponent, -_LARGEST_SHIFT) - bits, spec.cut)
    if spec.rounding is None:
        return Term(exact, exponent)
    rounded = _rounded(exact, spec, rule)
    return Term(rounded, _exponents(rounded))


def _exponents(value: Float64, fmt: FloatFormat = FP32) -> Exponents:
    """Return the exponents of values of a format; zeros and subnormal values have the smallest."""
    return np.maximum(np.where(value == 0, fmt.emin, np.frexp(value)[1] - 1), fmt.emin)


def _rounded(exact: Float64, spec: FusedSum, rule: Accumulator) -> Float64:
    rounded = rounded_sum(exact, spec)
    if rule.flush == "none":
        return rounded
    smallest = 2.0**FP32.emin
    is_small = np.abs(rounded) < smallest
    if rule.flush == "signed" and spec.rounding is Rounding.NEAREST_EVEN:
        # Sums from here to the smallest normal value round up to it even with an unbounded exponent.
        is_small = np.abs(exact) < smallest - smallest * 2.0**-25
    return np.where(is_small, rounded * 0.0, rounded)


def _cut(value: Float64, digit: Any, how: Rounding) -> Float64:
    """Return multiples of 2**digit."""
    quotient = np.ldexp(value, -digit)
    if how is Rounding.DOWN:
        return np.ldexp(np.floor(quotient), digit)
    return np.ldexp(_to_odd(quotient) if how is Rounding.TO_ODD else np.trunc(quotient), digit)


def _to_odd(quotient: Float64) -> Float64:
    """Round to whole numbers: to odd ones where that is inexact."""
    even = np.trunc(quotient * 0.5) * 2
    return np.where(quotient == even, even, even + np.copysign(1.0, quotient))


def _sum_to_odd(a: Float64, b: Float64) -> Float64:
    """Return a + b rounded to odd in float64, so that a second rounding to fewer bits finds what one would."""
    total = a + b
    of_b = total - a
    lost = (a - (total - of_b)) + (b - of_b)
    inexact = np.abs(lost) > 0  # not of infinities and NaN, where it is NaN
    bits = np.asarray(total).view(np.int64)
    bits = bits - (inexact & ((lost < 0) != (total < 0)))
    return (bits | inexact).view(np.float64)


def rounded_sum(value: Float64, spec: FusedSum) -> Float64:
    """Round sums once; overflow gives infinity in every mode."""
    fmt = spec.result
    if spec.rounding is Rounding.NEAREST_EVEN and fmt == FP32:
        return value.astype(np.float32).astype(np.float64)
    digit = np.maximum(np.frexp(value)[1] - 1, fmt.emin) - fmt.fraction_bits
    quotient = np.ldexp(value, -digit)
    if spec.rounding is Rounding.TO_ODD:
        whole = _to_odd(quotient)
    else:
        whole = np.rint(quotient) if spec.rounding is Rounding.NEAREST_EVEN else np.trunc(quotient)
    if spec.loses_sign:
        whole = whole + 0.0
    rounded = np.ldexp(whole, digit)
    return np.where(np.abs(rounded) >= 2.0 ** (fmt.emax + 1), np.copysign(np.inf, rounded), rounded)
