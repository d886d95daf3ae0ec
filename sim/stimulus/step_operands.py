"""Operands of single steps: pairs c, d that make an accumulator, and pairs a, b that are then added to it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from golden import FP32, FloatFormat, convert, decode, encode, multiply_accumulate
from sim.stimulus.operands import Codes, random_codes, specials, with_exponents

__all__ = ["Steps", "directed_steps", "one_ulp_left", "step_operands"]


@dataclass
class Steps:
    """Cases ``a * b + round(c * d)``; arrays of codes of one length."""

    c: Codes
    d: Codes
    a: Codes
    b: Codes

    def __len__(self) -> int:
        return len(self.a)

    def joined(self, other: Steps) -> Steps:
        """Return both, one after the other."""
        return Steps(*(np.concatenate([getattr(self, key), getattr(other, key)]) for key in ("c", "d", "a", "b")))

    def accumulators(self, operand: FloatFormat, accumulator: FloatFormat, subnormals: str = "keep") -> Codes:
        """Return the accumulators that the pairs c, d make."""
        c, d = self.c.astype(np.uint16), self.d.astype(np.uint16)
        return np.asarray(multiply_accumulate(c, d, 0, operand=operand, accumulator=accumulator, subnormals=subnormals))


def step_operands(
    operand: FloatFormat, accumulator: FloatFormat, rng: np.random.Generator, count: int
) -> dict[str, Steps]:
    """Return cases of every kind for an accumulator format, about `count` of each."""
    kinds = {
        "special": _special(operand, rng, count),
        "random": _random(operand, rng, count),
        "cancellation": _cancellation(operand, accumulator, rng, count),
        "midpoint": _midpoint(operand, accumulator, rng, count),
        "midpoint_of_product": _midpoint_of_product(operand, rng, count),
        "tiny": _at_exponents(
            operand, accumulator.emin - accumulator.fraction_bits - 2, accumulator.emin + 2, rng, count
        ),
        "huge": _at_exponents(operand, accumulator.emax - 1, accumulator.emax + 2, rng, count),
    }
    if accumulator == operand:
        kinds["above_midpoint"] = _above_midpoint(operand, rng, count)
    return kinds


def directed_steps(operand: FloatFormat, accumulator: FloatFormat) -> Steps:
    """Return one case of every sum that coverage requires, so that no seed can miss any."""
    inf, minus, one = operand.inf, operand.sign_mask, operand.one
    smallest, largest = operand.min_subnormal, operand.max_finite
    # Infinity minus infinity in all signs, infinity times zero plus anything, and sums of exactly zero.
    rows = [(inf | s, one, inf | t, one | u) for s in (0, minus) for t in (0, minus) for u in (0, minus)]
    rows += [(c, one, a, b) for c in specials(operand).tolist() for a, b in ((inf, minus), (0, inf | minus))]
    rows += [(one + x, one, one + x | minus, one) for x in range(4)]
    rows += [(minus, one, 0, minus), (0, one, 0, minus)]
    # The largest and the smallest product, and the smallest accumulator alone.
    rows += [(0, one, largest, largest), (largest, one, largest, one), (0, one, smallest, smallest)]
    rows += [(smallest, one, 0, one)]
    # Zero times the largest number, and the other way round, leaves the smallest accumulator as it is.
    for s, t, u in itertools.product((0, minus), repeat=3):
        rows += [(smallest | s, one, t, largest | u), (smallest | s, one, largest | u, t)]
    # The largest number, which is odd, plus half an ulp: only rounding makes it infinite.
    half = (operand.emax - operand.precision) // 2
    powers = [int(encode(2.0**x, operand)) for x in (half, operand.emax - operand.precision - half)]
    rows += [(largest | s, one, powers[0] | s, powers[1]) for s in (0, minus)]
    # 1 plus 1/4, 1/2 and 3/4 ulp: below half, a tie, above half. Half an ulp as a product of two powers of two.
    left = accumulator.precision // 2
    right = int(encode(2.0 ** (left - accumulator.precision), operand))
    rows += [(one, one, int(encode(x * 2.0**-left, operand)), right) for x in (0.5, 1.0, 1.5)]
    # Half an ulp and one bit more, at every place below it; added to 1 and taken from the number two ulps above it.
    for place in range(1, operand.fraction_bits + 1):
        above_half = int(encode((1 + 2.0**-place) * 2.0**-left, operand))
        rows += [(one, one, above_half, right), (one + 2, one, above_half | minus, right)]
    # Ties of differences whose product is the larger addend, to the even number below and above: with the spacing u
    # above 1, these are -2 u (1 + u / 2) and -(7 + 6 u) u.
    rows += [(one | s, one, one + 1 | s ^ minus, one + x) for s in (0, minus) for x in (1, 6)]
    # The same with a smaller product: 2 u (1.5 - u / 2) and 2 u (1.5 - 1.5 u).
    rows += [(one + c | s, one, one + 1 | s ^ minus, one + x) for s in (0, minus) for c, x in ((5, 1), (7, 3))]
    # The smallest normal number less a quarter and half of the spacing below it: only the former is tiny and rounds
    # back up to it, the latter is not tiny.
    for lost in (accumulator.precision, accumulator.precision + 1):
        half = (accumulator.emin - lost) // 2
        halves = (int(encode(2.0**x, operand)) for x in (half, accumulator.emin - lost - half))
        rows += [(operand.min_normal, one, next(halves) | minus, next(halves))]
    return Steps(*(np.array(column, np.uint64) for column in zip(*rows, strict=True)))


def _ones(operand: FloatFormat, count: int) -> Codes:
    return np.full(count, operand.one, np.uint64)


def _special(operand: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    values = specials(operand)
    a, b, c = (rng.choice(values, count) for _ in range(3))
    return Steps(c, _ones(operand, count), a, b)


def _random(operand: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    c, d, a, b = (random_codes(operand, count, rng) for _ in range(4))
    return Steps(c, np.where(rng.random(count) < 0.5, d, _ones(operand, count)), a, b)


def _cancellation(operand: FloatFormat, accumulator: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    """Return products that leave a few bits of the accumulator, or nothing."""
    low, high = max(operand.emin, -7), min(operand.emax, 7)
    a, b = (with_exponents(operand, rng.integers(low, high + 1, count), rng) for _ in range(2))
    minus = np.uint64(operand.sign_mask)
    if accumulator == operand:
        near = convert(*_product(a, b, operand), operand).astype(np.int64)
        near = np.clip(near + rng.integers(-2, 3, count), 0, (1 << operand.width) - 1).astype(np.uint64)
        return Steps(near, _ones(operand, count), a ^ minus, b)
    # In fp32 the accumulator is a product too: the neighbour of one factor, times the other.
    near = np.clip(a.astype(np.int64) + rng.integers(-1, 2, count), 0, (1 << operand.width) - 1).astype(np.uint64)
    return Steps(near, b, a ^ minus, b)


def _product(a: Codes, b: Codes, operand: FloatFormat) -> tuple[Any, FloatFormat]:
    zero = np.zeros(len(a), np.uint32)
    made = multiply_accumulate(a.astype(np.uint16), b.astype(np.uint16), zero, operand=operand, accumulator=FP32)
    return made, FP32


def _midpoint(operand: FloatFormat, accumulator: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    """Return products that are an odd number of half ulps of the accumulator."""
    low, high = max(operand.emin, -6), min(operand.emax, 6)
    c = with_exponents(operand, rng.integers(low, high + 1, count), rng)
    d = _ones(operand, count) if accumulator == operand else with_exponents(operand, np.zeros(count, np.int64), rng)
    made = np.asarray(
        multiply_accumulate(c.astype(np.uint16), d.astype(np.uint16), 0, operand=operand, accumulator=accumulator)
    )
    exponent = np.frexp(decode(made, accumulator).astype(np.float64))[1] - 1
    half_ulp = exponent - accumulator.precision
    left = half_ulp // 2
    odd = rng.choice(np.array([-7.0, -5, -3, -1, 1, 3, 5, 7]), count)
    a = np.asarray(encode(np.ldexp(odd, left), operand)).astype(np.uint64)
    b = np.asarray(encode(np.ldexp(1.0, half_ulp - left), operand)).astype(np.uint64)
    return Steps(c, d, a, b)


def _midpoint_of_product(operand: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    """Return products halfway between two operand values, and accumulators too small to matter but for the tie."""
    x = rng.integers(1, 1 << (operand.precision // 2 + 1), 40 * count) | 1
    y = rng.integers(1, 1 << operand.precision, 40 * count) | 1
    fits = np.flatnonzero((x * y >> operand.precision) == 1)[:count]
    x, y = x[fits].astype(np.float64), y[fits].astype(np.float64)
    count = len(fits)
    a = np.asarray(encode(np.where(rng.random(count) < 0.5, x, -x), operand)).astype(np.uint64)
    b = np.asarray(encode(np.ldexp(y, -operand.fraction_bits), operand)).astype(np.uint64)
    tiny = np.array([0, 1, operand.min_normal - 1, operand.min_normal, 1 << (operand.fraction_bits + 2)], np.uint64)
    c = rng.choice(tiny, count) | np.where(rng.random(count) < 0.5, np.uint64(operand.sign_mask), np.uint64(0))
    return Steps(c, _ones(operand, count), a, b)


def _above_midpoint(operand: FloatFormat, rng: np.random.Generator, count: int) -> Steps:
    """Return products smaller than the accumulator, which exceed half an ulp of it only by their lowest bit."""
    bits = operand.precision
    x = rng.integers(1 << bits - 1, 1 << bits, 40 * count) | 1
    distance = rng.choice(np.array([1, 2, 2, 3]), 40 * count)
    # The number of places below half an ulp, in a product of 2 * bits places.
    below = bits - 1 + distance
    inverse = x
    for _ in range(5):
        inverse = inverse * (2 - x * inverse) % (1 << 2 * bits)
    y = ((1 << below) + 1) * inverse % (2 << below)
    fits = np.flatnonzero((y >> bits - 1 == 1) & (x * y >> 2 * bits - 1 == 1))[:count]
    a, b = (
        np.asarray(encode(np.ldexp(z[fits].astype(np.float64), 1 - bits), operand)).astype(np.uint64) for z in (x, y)
    )
    minus = np.where(rng.random(len(fits)) < 0.5, np.uint64(operand.sign_mask), np.uint64(0))
    return Steps(with_exponents(operand, 1 + distance[fits], rng), _ones(operand, len(fits)), a ^ minus, b)


def _at_exponents(operand: FloatFormat, low: int, high: int, rng: np.random.Generator, count: int) -> Steps:
    """Return pairs whose products have exponents from `low` to `high`, as far as the operands reach."""
    pairs = []
    for _ in range(2):
        wanted = rng.integers(low, high + 1, count)
        lowest = operand.emin - operand.fraction_bits
        least = np.clip(wanted - operand.emax, lowest, operand.emax)
        most = np.clip(wanted - lowest, lowest, operand.emax)
        left = rng.integers(np.minimum(least, most), np.maximum(least, most) + 1)
        right = np.clip(wanted - left, lowest, operand.emax)
        pairs += [with_exponents(operand, left, rng), with_exponents(operand, right, rng)]
    return Steps(pairs[0], pairs[1], pairs[2], pairs[3])


def one_ulp_left(operand: FloatFormat, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Add one ulp of fp32 to a product, or take it away, and subtract the product: all digits but one cancel."""
    x, y = with_exponents(operand, np.zeros(2, np.int64), rng).tolist()
    x, y = x & ~operand.sign_mask, y & ~operand.sign_mask
    is_above_2 = float(decode(np.uint16(x), operand)) * float(decode(np.uint16(y), operand)) >= 2
    ulp = [int(encode(2.0**exponent, operand)) for exponent in (-12 + is_above_2, -11)]
    signs = (rng.integers(0, 2, 2) * operand.sign_mask).tolist()
    return [x | signs[0], ulp[0] | signs[1], x | signs[0] ^ operand.sign_mask], [y, ulp[1], y]
