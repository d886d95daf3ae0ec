"""Operands of products that meet every kind of sum: specials, both zeros, subnormals, overflow, exact ties."""

from __future__ import annotations

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP32, FloatFormat, encode, kernels
from golden.formats import SIXTEEN_BIT_FORMATS

from ..judges import code_dtype

#: Formats that stretch the method: few bits, no room for 1.0's neighbours, subnormals of float32, wide fractions.
ODD_ONES = (
    FloatFormat("e4m3", 4, 3),
    FloatFormat("e2m13", 2, 13),
    FloatFormat("e5m10_low", 5, 10, bias=139),
    FloatFormat("e6m9_high", 6, 9, bias=-63),
    FloatFormat("e8m15", 8, 15),
    FloatFormat("e7m23", 7, 23),
)
#: Sums of bfloat16 products run beyond its largest value, 2 - 2^-9, to the end of float32's range and over it.
FAR_BELOW_FLOAT = FloatFormat("e7m9_low", 7, 9, bias=126)
#: Each differs from float16 in one number, by the least, and has 1.0.
BESIDE_FLOAT16 = (
    FloatFormat("e6m10", 6, 10, 15),
    FloatFormat("e5m9", 5, 9),
    FloatFormat("e5m11", 5, 11),
    FloatFormat("e5m10_low", 5, 10, 14),
    FloatFormat("e5m10_high", 5, 10, 16),
)
FORMATS = (*SIXTEEN_BIT_FORMATS, FP32, *ODD_ONES)

COMPILED = pytest.mark.parametrize("path", [path for path in kernels.paths() if path != "numpy"])
KINDS = ("any", "normal", "special", "wide", "edges", "small integers")


def specials(fmt: FloatFormat) -> np.ndarray:
    """Zeros, the smallest and the largest values, infinities, NaNs of both kinds; each with both signs."""
    magnitudes = [0, 1, 2, fmt.min_normal - 1, fmt.min_normal, fmt.max_finite, fmt.inf, fmt.inf + 1, fmt.nan]
    return np.array([sign | magnitude for magnitude in magnitudes for sign in (0, fmt.sign_mask)], code_dtype(fmt))


def codes(kind: str, fmt: FloatFormat, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Codes of one kind, of the dtype of the format."""
    dtype = code_dtype(fmt)
    if kind == "any":
        return rng.integers(0, 2**fmt.width, shape).astype(dtype)
    if kind == "wide":  # every exponent: products underflow, overflow, and are absorbed
        magnitudes = rng.integers(0, fmt.inf, shape)
        return (magnitudes | rng.integers(0, 2, shape) * fmt.sign_mask).astype(dtype)
    if kind == "edges":  # the ends of the range: sums of subnormals, sums that overflow
        far = rng.integers(0, 2, shape) * (fmt.max_finite - 2 * fmt.min_normal)
        magnitudes = far + rng.integers(0, 2 * fmt.min_normal + 1, shape)
        return (magnitudes | rng.integers(0, 2, shape) * fmt.sign_mask).astype(dtype)
    if kind == "small integers":  # exact ties, cancellation to zero
        centre = 2.0 ** ((fmt.emin + fmt.emax) // 2)
        return np.asarray(encode(rng.integers(-3, 4, shape) * centre, fmt), dtype)
    values = np.asarray(encode(rng.normal(size=shape), fmt), dtype)
    if kind == "special":
        return np.where(rng.random(shape) < 0.1, rng.choice(specials(fmt), shape), values)
    return values


def late_overflow(fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Factors (1, 601) and (601, 1) of a chain that overflows in its second packed block, where all factors are small.

    The largest value stands alone in the first block of 256 products. Single ulps of it fill the second. Its
    negative stands in the third: an infinity stays, a sum that was not made one comes back to a finite value.
    """
    ones = np.full((601, 1), fmt.one, code_dtype(fmt))
    a = np.zeros((1, 601), code_dtype(fmt))
    a[0, 0], a[0, 512] = fmt.max_finite, fmt.max_finite | fmt.sign_mask
    a[0, 256:512] = (fmt.emax - fmt.fraction_bits + fmt.bias) << fmt.fraction_bits
    return a, ones


def between_limits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Factors (64, 3) and (3, 40) of sums beyond the largest value of bfloat16, which float32 still holds."""
    fmt = BF16
    a = np.full((64, 3), fmt.max_finite, np.uint16)
    a[:, 1:] = rng.integers(fmt.max_finite - 0x500, fmt.max_finite, (64, 2))
    b = rng.choice(np.array([fmt.one, fmt.one | fmt.sign_mask], np.uint16), (3, 40))
    b[1] ^= (b[0] ^ b[1]) & fmt.sign_mask  # the second addend has the sign of the first
    return a, b


def grown_by_rounding(fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Factors (1, K) and (K, 1) of a chain that overflows only because rounding doubles most of its products.

    The first block of 256 products sums to 2^emax, the lower end of the largest binade. Then each product is a little
    more than half an ulp and counts as a whole one until the sum is infinity, though all products together are only
    three quarters of that. The last block, the negative of the largest value, brings back a sum that has not become
    infinity.
    """
    count = 2**fmt.fraction_bits + 4
    blocks = 1 + -(-count // 256)
    a = np.zeros((1, 256 * blocks + 1), code_dtype(fmt))
    a[0, :256] = (fmt.emax - 8 + fmt.bias) << fmt.fraction_bits
    a[0, 256 : 256 + count] = ((fmt.emax - fmt.fraction_bits - 1 + fmt.bias) << fmt.fraction_bits) + 1
    a[0, -1] = fmt.max_finite | fmt.sign_mask
    return a, np.full((a.shape[1], 1), fmt.one, code_dtype(fmt))


def beyond_double(fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Factors (2, 2) and (2, 1): a tiny product of either sign, then one half way between two values of the format.

    The sign of the tiny product decides the rounding, though float64 is too short for the sum.
    """
    halfway = range(2**fmt.precision + 1, 2 ** (fmt.precision + 1), 2)
    large, small = next((product // x, x) for product in halfway for x in range(3, 99, 2) if product % x == 0)
    large_value, tiny = large * 2.0 ** (fmt.emax - 3 - fmt.precision), 2.0 ** (fmt.emin - fmt.fraction_bits)
    a = np.array([[-tiny, large_value], [tiny, large_value]])
    return encode(a, fmt), encode(np.array([[1.0], [small]]), fmt)


def grown_by_ulps() -> tuple[np.ndarray, np.ndarray]:
    """Factors (1, 6000) and (6000, 1) in cbfloat16: rounded up, their sum grows by an ulp at each step except one."""
    factors = np.full((1, 6000), encode(2.0**-10, CBFLOAT16), np.uint16)
    factors[0, 0] = encode(2.0**11, CBFLOAT16)
    return factors, factors.T.copy()


def tiny_by_the_last_digit(fmt: FloatFormat) -> list[tuple[np.ndarray, np.ndarray]]:
    """Factors (12, 2) and (2, 64): the second product takes away the first, all but the digit that rounding cut off.

    So the sum is inexact below the smallest normal value. Both products are the smallest that seem to have no such
    digit, judged by the place of their first digit with both factors taken as powers of two.
    """
    bits = fmt.fraction_bits
    x, dtype = fmt.one + 2**bits - 1, code_dtype(fmt)
    a = np.full((12, 2), x, dtype)
    found = []
    for y in ((bits << bits) + 1, (bits << bits) + 2**bits - 1):
        found.append((a, np.repeat(np.array([[y], [y | fmt.sign_mask]], dtype), 64, axis=1)))
    return found


def near_smallest_normal(fmt: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    """Factors (65, 1) and (1, 65) of products around the smallest normal value, most of which are inexact.

    Some lie between the largest subnormal and that value, and rounding moves them up to it: those less than a quarter
    of the distance above the subnormal are tiny, the others not. There are enough steps for products close to that
    quarter, on either side.
    """
    halves = (fmt.emin // 2, fmt.emin - fmt.emin // 2)
    a, b = ((np.uint32(encode(2.0**half, fmt)) + np.arange(-32, 33)).astype(code_dtype(fmt)) for half in halves)
    return a[:, np.newaxis], b[np.newaxis]
