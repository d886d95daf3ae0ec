"""Operands and totals that meet: near each other, cancelling, at both ends of the range, zeros and specials."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import golden
from golden.code_arrays import code_dtype
from golden.formats import FP32, FloatFormat

__all__ = ["KINDS", "Cases", "draw", "draw_edges"]

Codes = NDArray[Any]

#: Where the exponents of a call's operands lie, as a part of the exponent field's range; `any`: all codes alike.
KINDS = {"middle": 0.5, "wide": 0.5, "low": 0.0, "lowish": 0.25, "high": 1.0, "highish": 0.72, "any": 0.5}
_ZEROS, _INFINITIES = 0.06, 0.01


class Cases(NamedTuple):
    """Matrices of codes: `a` (M, K), `b` (K, N), `totals` (M, N); the totals have another format."""

    a: Codes
    b: Codes
    totals: Codes


def draw(rng: np.random.Generator, fmt: FloatFormat, m: int, k: int, n: int, total: FloatFormat = FP32) -> Cases:
    """Draw operands and totals, of the format `total`, of one random kind."""
    kind = str(rng.choice(list(KINDS)))
    a, b = (_operand(rng, fmt, shape, kind) for shape in ((m, k), (k, n)))
    if rng.random() < 0.3 and k > 1:  # the second half nearly cancels the first
        half = k // 2
        a[:, half : 2 * half] = a[:, :half] ^ rng.integers(0, 2, (m, half), dtype=a.dtype)
        b[half : 2 * half] = np.where(b[:half] == 0, 0, b[:half] ^ fmt.sign_mask).astype(b.dtype)
    return Cases(a, b, _totals(rng, fmt, a, b, kind, total))


def draw_edges(rng: np.random.Generator, fmt: FloatFormat, m: int, k: int, n: int, total: FloatFormat = FP32) -> Cases:
    """Draw zeros, subnormals, and products and totals at and around the smallest normal value of the totals' format."""
    numbers = [0, 1, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits, fmt.one]
    # Squares, and products with one, of powers of two about the smallest normal value and the digits below it.
    lowest, quarter = total.emin, (total.emin - total.fraction_bits - 2) // 2
    powers = (lowest, lowest + 1, quarter, quarter + 1, quarter + 2, lowest // 2, lowest // 2 + 1)
    fields = [exponent + fmt.bias for exponent in powers]
    numbers += [field << fmt.fraction_bits for field in fields if 0 < field < (1 << fmt.exponent_bits) - 1]
    pool = np.array(numbers, np.uint32)
    signs = np.array([0, fmt.sign_mask if fmt.has_negative_zero else 0], np.uint32)

    def operand(shape: tuple[int, int]) -> Codes:
        codes = rng.choice(pool, shape) | rng.choice(signs, shape)
        codes[rng.random(shape) < rng.choice([0.0, 0.4, 0.8])] &= np.uint32(signs[1])
        return codes.astype(code_dtype(fmt))

    x, y = operand((m, k)), operand((k, n))
    if fmt.emin <= quarter and rng.random() < 0.7:  # a quarter ulp below the smallest normal value, which is a tie
        x[: m // 2, 0], y[0, : n // 2] = (
            exponent + fmt.bias << fmt.fraction_bits
            for exponent in (quarter, lowest - total.fraction_bits - 2 - quarter)
        )
    smallest = total.min_normal
    totals = rng.choice(np.array([0, 0, 1, smallest - 1, smallest, smallest + 1, total.one], np.uint32), (m, n))
    totals |= rng.choice(np.array([0, total.sign_mask], np.uint32), (m, n))
    return Cases(x, y, totals.astype(code_dtype(total)))


def _operand(rng: np.random.Generator, fmt: FloatFormat, shape: tuple[int, int], kind: str) -> Codes:
    codes = rng.integers(0, 1 << fmt.width, shape, dtype=np.uint32)
    if kind != "any":
        fields = (1 << fmt.exponent_bits) - 1
        spread = fields // 2 if kind == "wide" else max(2, min(7, fields // 4))
        field = round(KINDS[kind] * fields) + rng.integers(-spread, spread + 1, shape)
        kept = np.clip(field, 0, fields - fmt.has_inf).astype(np.uint32)
        codes = codes & ~np.uint32(fields << fmt.fraction_bits) | kept << np.uint32(fmt.fraction_bits)
        if rng.random() < 0.3:  # few significand bits, so that ties and exact results happen
            codes &= ~np.uint32((1 << max(fmt.fraction_bits - 2, 0)) - 1)
    elif fmt.has_inf:
        infinite = np.uint32(fmt.inf) | codes & np.uint32(fmt.sign_mask)
        codes = np.where(rng.random(shape) < _INFINITIES, infinite, codes)
    codes = np.where(rng.random(shape) < _ZEROS, codes & np.uint32(fmt.sign_mask * fmt.has_negative_zero), codes)
    return codes.astype(code_dtype(fmt))


def _totals(rng: np.random.Generator, fmt: FloatFormat, a: Codes, b: Codes, kind: str, total: FloatFormat) -> Codes:
    """Return totals about as large as the products, some much smaller or larger, some exactly opposite."""
    shape, dtype, sign = (a.shape[0], b.shape[1]), code_dtype(total), np.uint32(total.sign_mask)
    if kind == "any":
        codes = rng.integers(0, 1 << total.width, shape, dtype=np.uint32)
        infinite = codes & sign | np.uint32(total.inf)
        return np.where(rng.random(shape) < _INFINITIES, infinite, codes).astype(dtype)
    with np.errstate(all="ignore"):
        x, y = (golden.decode(codes, fmt).astype(np.float64) for codes in (a, b))
        exact = x @ y
        largest = np.abs(x) @ np.abs(y)
        exponents = np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1]
        near = exponents + total.bias - 1 + rng.integers(-32, 9, shape)
        fields = np.clip(near, 0, total.exponent_field_max - 1).astype(np.uint32)
        codes = fields << np.uint32(total.fraction_bits)
        codes |= rng.integers(0, 1 << total.fraction_bits, shape, dtype=np.uint32)
        codes |= rng.integers(0, 2, shape, dtype=np.uint32) << np.uint32(total.width - 1)
        opposite = golden.encode(-exact, total)
    choice = rng.random(shape)
    codes = np.where(choice < 0.1, opposite, codes)
    codes = np.where((choice > 0.1) & (choice < 0.2), codes & sign, codes)
    return np.where(codes & (sign - np.uint32(1)) > total.inf, np.uint32(0), codes).astype(dtype)
