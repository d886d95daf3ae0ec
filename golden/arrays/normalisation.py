"""Softmax with every operation rounded to the format (NUMERICS section 6)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden import reference
from golden.arrays.checks import as_codes, as_format, code_dtype
from golden.arrays.conversion import decode, encode
from golden.arrays.fused_step import multiply_accumulate
from golden.arrays.products import matmul
from golden.arrays.rounding import Float64, codes_to_float64, float64_to_codes, round_float64
from golden.arrays.steps import add_rounded_to_odd
from golden.formats import FloatFormat
from golden.reduction import Reduction

__all__ = ["exponential_table", "softmax"]

# The host's exp is off by a few units of 2^-53; where an error of 2^-48 could change the rounding, the reference
# decides.
_DOUBT = 2.0**-48


def _rounded_exponential(x: Float64, fmt: FloatFormat) -> Float64:
    estimate = np.exp(x)
    low, high = (round_float64(estimate * factor, fmt) for factor in (1 - _DOUBT, 1 + _DOUBT))
    rounded = np.asarray(round_float64(estimate, fmt))
    for index in zip(*np.nonzero((low != high) & np.isfinite(x)), strict=True):
        code = reference.exponential(Fraction(float(x[index])), fmt)
        rounded[index] = codes_to_float64(np.asarray(code, np.uint32), fmt)
    return rounded


def softmax(codes: ArrayLike, fmt: FloatFormat | str, *, axis: int = -1) -> NDArray[Any]:
    """Softmax along one axis: maximum, difference, exponential, sequential sum and quotient, each rounded to `fmt`.

    Parameters
    ----------
    codes : unsigned array of at least one axis
        Codes in `fmt`.
    fmt : FloatFormat or str
    axis : int
        The axis along which the results sum to about one; its length must not be 0.

    Returns
    -------
    unsigned array of the shape of `codes`
        Codes in `fmt`. A NaN, or a maximum that is infinite, makes the whole row NaN.

    Raises
    ------
    TypeError
        If `codes` are not unsigned.
    ValueError
        If a code is wider than the format, or there is no such axis or nothing on it.
    """
    fmt = as_format(fmt, "fmt", with_infinity=True)
    given = as_codes(codes, fmt, "codes")
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
        raise TypeError(f"axis: got {axis!r}, must be an int")
    if given.ndim == 0:
        raise ValueError("codes: got a scalar, must have at least one axis")
    if not -given.ndim <= axis < given.ndim:
        raise ValueError(f"axis: got {axis}, must be {-given.ndim} to {given.ndim - 1} for shape {given.shape}")
    if given.shape[axis] == 0:
        raise ValueError(f"codes: got shape {given.shape}, axis {axis} must not be empty")
    rows = np.moveaxis(given, axis, -1)
    with np.errstate(all="ignore"):
        exponentials = _exponentials(_differences(rows, fmt), fmt)
        quotients = encode(codes_to_float64(exponentials, fmt) / _sums(exponentials, fmt), fmt)
    return np.moveaxis(quotients, -1, axis)


def _differences(rows: NDArray[Any], fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of ``round(x - max(x))`` along the last axis."""
    if not fmt.has_one:  # then there is no step with b = 1 to subtract with
        x = codes_to_float64(rows, fmt)
        return encode(add_rounded_to_odd(x, -x.max(axis=-1, keepdims=True)), fmt)
    largest = encode(-decode(rows, fmt).max(axis=-1, keepdims=True), fmt)
    return multiply_accumulate(rows, fmt.one, largest, operand=fmt, accumulator=fmt)


def _exponentials(codes: NDArray[Any], fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of exp of codes that are zero, negative or NaN."""
    if fmt.width <= 16:
        return exponential_table(fmt)[codes]
    return float64_to_codes(_rounded_exponential(codes_to_float64(codes, fmt), fmt), fmt)


@lru_cache(maxsize=32)
def exponential_table(fmt: FloatFormat) -> NDArray[Any]:
    """Return the codes of exp of each code of a format of 16 bits or fewer that is zero, negative or NaN."""
    table = np.full(1 << fmt.width, fmt.nan, code_dtype(fmt))
    reached = np.append(0, np.arange(fmt.sign_mask, (fmt.sign_mask | fmt.inf) + 1))
    table[reached] = float64_to_codes(_rounded_exponential(codes_to_float64(reached, fmt), fmt), fmt)
    table.flags.writeable = False
    return table


def _sums(codes: NDArray[Any], fmt: FloatFormat) -> Float64:
    """Return the sequential sums along the last axis, every step rounded to the format, from +0."""
    if not fmt.has_one:  # then there is no step with b = 1 to sum with
        total = np.zeros(codes.shape[:-1])
        for term in np.moveaxis(codes_to_float64(codes, fmt), -1, 0):
            total = round_float64(add_rounded_to_odd(total, term), fmt)
        return total[..., np.newaxis]
    rows, ones = codes.reshape(-1, codes.shape[-1]), np.full((codes.shape[-1], 1), fmt.one, code_dtype(fmt))
    sums = matmul(rows, ones, operand=fmt, reduction=Reduction(fmt, None, fmt))
    return codes_to_float64(sums, fmt).reshape(*codes.shape[:-1], 1)
