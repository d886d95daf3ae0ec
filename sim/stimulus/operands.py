"""Codes worth trying: specials, boundary exponents with fraction patterns, neighbours, weighted random."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat

__all__ = [
    "Codes",
    "boundary",
    "drawn_ahead",
    "factors_of",
    "from_parts",
    "one_of_each_class",
    "random_codes",
    "specials",
    "usual_codes",
    "with_exponents",
]

Codes = NDArray[Any]


def specials(fmt: FloatFormat) -> Codes:
    """Return zeros, smallest and largest subnormals and normals, 1.0, infinities and NaNs of both kinds."""
    positive = [0, fmt.min_subnormal, fmt.min_normal - 1, fmt.min_normal, fmt.one, fmt.max_finite]
    nans = [fmt.nan] if fmt.has_nan else []
    if fmt.has_inf:
        positive.append(fmt.inf)
        nans += [fmt.nan | fmt.sign_mask | 1, fmt.inf | 1, fmt.sign_mask | fmt.nan - 1]
    return np.array(positive + [code | fmt.sign_mask for code in positive] + nans, np.uint64)


def one_of_each_class(fmt: FloatFormat) -> Codes:
    """Return a zero, a subnormal, a normal number, an infinity and a NaN of each kind."""
    minus = fmt.sign_mask
    return np.array([0, fmt.min_subnormal | minus, fmt.one, fmt.inf | minus, fmt.nan, fmt.inf | 1], np.uint64)


def from_parts(fmt: FloatFormat, sign: Any, exponent_field: Any, fraction: Any) -> Codes:
    """Return codes put together from their fields."""
    parts = (np.asarray(part).astype(np.uint64) for part in (sign, exponent_field, fraction))
    signs, fields, fractions = parts
    return signs << np.uint64(fmt.width - 1) | fields << np.uint64(fmt.fraction_bits) | fractions


def factors_of(fmt: FloatFormat, significands: Iterable[int], exponents: int) -> list[int]:
    """Return two normal numbers with these significands, and with exponents of this sum, as equal as possible."""
    left = exponents // 2
    return [
        int(from_parts(fmt, 0, exponent + fmt.bias, significand - (1 << fmt.fraction_bits)))
        for significand, exponent in zip(significands, (left, exponents - left), strict=True)
    ]


@cache
def _fraction_patterns(fmt: FloatFormat) -> Codes:
    bits, ones = fmt.fraction_bits, (1 << fmt.fraction_bits) - 1
    one_bit = [1 << place for place in range(bits)]
    runs = [ones >> place for place in range(bits)] + [ones << place & ones for place in range(bits)]
    return np.array(sorted({0, ones, *one_bit, *(ones ^ bit for bit in one_bit), *runs}), np.uint64)


def boundary(fmt: FloatFormat, exponents: list[int]) -> Codes:
    """Return both signs of boundary exponents (powers of two) and their neighbours with every fraction pattern."""
    fields = {0, 1, fmt.max_finite_field, fmt.exponent_field_max}
    fields |= {exponent + fmt.bias + nearby for exponent in exponents for nearby in (-1, 0, 1)}
    kept = sorted(value for value in fields if 0 <= value <= fmt.exponent_field_max)
    grid = np.meshgrid([0, 1], kept, _fraction_patterns(fmt), indexing="ij")
    return from_parts(fmt, *(axis.ravel() for axis in grid))


def random_codes(fmt: FloatFormat, count: int, rng: np.random.Generator) -> Codes:
    """Return random codes: half of them of any kind, half with exponents close to 1.0's."""
    anything = rng.integers(0, 1 << fmt.width, count, np.uint64)
    exponents = rng.integers(-6, 7, count)
    usual = with_exponents(fmt, np.minimum(np.maximum(exponents, fmt.emin), fmt.emax), rng)
    return np.where(rng.random(count) < 0.5, anything, usual)


def with_exponents(fmt: FloatFormat, exponents: Any, rng: np.random.Generator) -> Codes:
    """Return random codes of given exponents (powers of two); those below the normal range become subnormal.

    A third of the fractions are all zeros, all ones or one bit.
    """
    wanted = np.asarray(exponents) + fmt.bias
    count = wanted.shape[0]
    patterns, leading = _fraction_patterns(fmt), np.uint64(1 << fmt.fraction_bits)
    fractions = rng.integers(0, leading, count, np.uint64)
    patterned = patterns[rng.integers(0, len(patterns), count)]
    fractions = np.where(rng.random(count) < 0.33, patterned, fractions)
    fields = np.minimum(np.maximum(wanted, 1), fmt.max_finite_field)
    depth = np.minimum(np.maximum(fields - wanted, 0), fmt.fraction_bits).astype(np.uint64)
    is_normal = depth == 0
    fractions = np.where(is_normal, fractions, (fractions | leading) >> depth)
    return from_parts(fmt, rng.integers(0, 2, count), fields * is_normal, fractions)


def usual_codes(fmt: FloatFormat, count: int, rng: np.random.Generator) -> Codes:
    """Return random codes close to 1.0: few products of them overflow or underflow."""
    return with_exponents(fmt, rng.integers(-4, 4, count), rng)


def drawn_ahead(draw: Callable[[int], Codes]) -> Iterator[int]:
    """Yield random codes for ever; `draw` makes 1024 at a time, because each draw takes many calls of NumPy."""
    while True:
        yield from draw(1024).tolist()
