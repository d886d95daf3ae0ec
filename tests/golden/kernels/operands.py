"""Operands of products that meet every kind of sum: specials, both zeros, subnormals, overflow, exact ties."""

from __future__ import annotations

import numpy as np
import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, encode, kernels

from ..judges import code_dtype

SIXTEEN_BITS = (FP16, BF16, CBFLOAT16, CB16)
#: Formats that stretch the method: few bits, no room for 1.0's neighbours, subnormals of float32, wide fractions.
ODD_ONES = (
    FloatFormat("e4m3", 4, 3),
    FloatFormat("e2m13", 2, 13),
    FloatFormat("e5m10_low", 5, 10, bias=139),
    FloatFormat("e6m9_high", 6, 9, bias=-63),
    FloatFormat("e8m15", 8, 15),
    FloatFormat("e7m23", 7, 23),
)
FORMATS = (*SIXTEEN_BITS, FP32, *ODD_ONES)

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
