"""`golden.grouped_sums` on NumPy arrays: groups of exact sums, with flags."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.arrays.exact_sums import exact_sum
from golden.arrays.rounding import (
    Flags,
    Float64,
    RoundingChoice,
    codes_to_float64,
    float64_to_codes,
    round_float64,
    rounding_flags,
)
from golden.arrays.steps import fused_step, step_flags
from golden.flags import Flag
from golden.grouped_sums import GroupedSums
from golden.kernels.library import warn_of_slowness
from golden.rounding import Rounding

__all__ = ["accumulate_groups"]

Codes = NDArray[Any]

_SECONDS_PER_PRODUCT = 4e-7  # roughly
_PIECE = 1 << 12
_TO_ODD = RoundingChoice(Rounding.TO_ODD)
_INVALID = np.uint8(Flag.INVALID)


def accumulate_groups(a: Codes, b: Codes, begin: Codes, rule: GroupedSums, rounding: Rounding) -> tuple[Codes, Flags]:
    """Reduce over the last axis of `a` and `b`; their other axes broadcast to the shape of `begin`.

    Returns
    -------
    codes : array of the shape of `begin`
        In the format of the total.
    flags : uint8 array of that shape
    """
    length, shape = a.shape[-1], begin.shape
    warn_of_slowness(length * prod(shape) * _SECONDS_PER_PRODUCT)
    x, y = (np.broadcast_to(codes, (*shape, length)) for codes in (a, b))
    codes, flags = np.empty(shape, code_dtype(rule.total)), np.empty(shape, np.uint8)
    with np.errstate(all="ignore"):
        if not shape:
            return _reduced(x, y, begin, rule, rounding)
        rows = max(1, _PIECE // max(1, prod(shape[1:])))
        for at in range(0, shape[0], rows):
            piece = slice(at, at + rows)
            codes[piece], flags[piece] = _reduced(x[piece], y[piece], begin[piece], rule, rounding)
    return codes, flags


def _reduced(x: Codes, y: Codes, begin: Codes, rule: GroupedSums, rounding: Rounding) -> tuple[Codes, Flags]:
    choice = RoundingChoice(rounding)
    total = codes_to_float64(begin, rule.total)
    flags = np.asarray(rule.total.is_signalling(begin), np.uint8) * _INVALID
    for at in range(0, x.shape[-1], rule.group):
        group = slice(at, at + rule.group)
        total, raised = _joined(total, x[..., group], y[..., group], rule, choice)
        flags = flags | raised
    return float64_to_codes(np.asarray(total), rule.total), np.asarray(flags)


def _joined(total: Float64, x: Codes, y: Codes, rule: GroupedSums, choice: RoundingChoice) -> tuple[Float64, Flags]:
    """Return the total to which one group was added, and what that raised."""
    products, special, invalid = _products(x, y, rule)
    flags = invalid.astype(np.uint8) * _INVALID
    finite = [np.where(np.isfinite(each), each, 0.0) for each in products]
    if rule.rnd != "xct":
        of_sum = _TO_ODD if rule.rnd == "rto" else choice
        exact = np.where(np.isfinite(special), exact_sum(finite), special)
        partial = round_float64(exact, rule.total, of_sum)
        flags = flags | rounding_flags(exact, partial, rule.total, of_sum)
        rounded, exact, choice = fused_step(partial, np.ones(()), total, rule.total, choice)
        return rounded, flags | step_flags(partial, np.ones(()), total, exact, rounded, rule.total, choice)
    natural = special + total
    exact = exact_sum([*finite, np.where(np.isfinite(total), total, 0.0)])
    if choice.rounding is Rounding.DOWN:  # a sum of 0 is -0, but that of +0 and a group's 0
        exact = np.where((exact == 0) & ((total != 0) | np.signbit(total)), -0.0, exact)
    exact = np.where(np.isfinite(natural), exact, natural)
    rounded = round_float64(exact, rule.total, choice)
    opposite = np.isnan(natural) & ~np.isnan(special) & ~np.isnan(total)
    flags = flags | opposite.astype(np.uint8) * _INVALID
    return rounded, flags | rounding_flags(exact, rounded, rule.total, choice)


def _products(x: Codes, y: Codes, rule: GroupedSums) -> tuple[list[Float64], Float64, NDArray[np.bool_]]:
    """Return the products of a group, a sum that is infinite or NaN where theirs is, and where one is invalid."""
    operand = rule.operand
    shape = x.shape[:-1]
    sum_, invalid = np.zeros(shape), np.zeros(shape, bool)
    products = []
    for k in range(x.shape[-1]):
        codes = x[..., k], y[..., k]
        factors = [codes_to_float64(each, operand) for each in codes]
        product = factors[0] * factors[1]
        products.append(product)
        brought = np.isnan(factors[0]) | np.isnan(factors[1])
        invalid |= operand.is_signalling(codes[0]) | operand.is_signalling(codes[1])
        invalid |= np.isnan(product) & ~brought
        # Infinities and NaNs alone: a NaN that comes first hides infinities of opposite signs.
        step = np.where(np.isfinite(product), 0.0, product)
        after = sum_ + step
        invalid |= np.isnan(after) & ~np.isnan(sum_) & ~np.isnan(step)
        sum_ = after
    return products, sum_, invalid
