"""Softmax with every operation rounded to the format (NUMERICS section 6)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden import reference
from golden.arrays.checks import as_codes, as_format
from golden.arrays.rounding import Float64, codes_to_float64, float64_to_codes, round_float64
from golden.arrays.steps import add_rounded_to_odd
from golden.formats import FloatFormat

__all__ = ["softmax"]

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
    fmt = as_format(fmt, "fmt")
    given = as_codes(codes, fmt, "codes")
    if not -given.ndim <= axis < given.ndim:
        raise ValueError(f"axis: got {axis}, must be {-given.ndim} to {given.ndim - 1} for shape {given.shape}")
    if given.shape[axis] == 0:
        raise ValueError(f"codes: got shape {given.shape}, axis {axis} must not be empty")
    with np.errstate(all="ignore"):
        x = codes_to_float64(np.moveaxis(given, axis, 0), fmt)
        difference = round_float64(add_rounded_to_odd(x, -x.max(axis=0)), fmt)
        exponential = _rounded_exponential(difference, fmt)
        total = np.zeros(x.shape[1:])
        for term in exponential:
            total = round_float64(add_rounded_to_odd(total, term), fmt)
        quotient = round_float64(exponential / total, fmt)
    return np.moveaxis(float64_to_codes(quotient, fmt), 0, axis)
