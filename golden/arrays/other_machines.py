"""Reductions of arrays by the accumulators of other machines."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator, FusedSum
from golden.arrays.fused_sums import NO_EXPONENT, Term, accumulate_block, flushed_total, rounded_sum
from golden.arrays.rounding import Float64, codes_to_float64, float64_to_codes
from golden.formats import FloatFormat
from golden.kernels.library import warn_of_slowness

__all__ = ["accumulate_codes"]

Codes = NDArray[Any]

_SECONDS_PER_PRODUCT = 6e-8  # roughly
_PIECE = 1 << 13  # results whose intermediate arrays stay in the caches


def accumulate_codes(a: Codes, b: Codes, begin: Codes, operand: FloatFormat, rule: Accumulator) -> Codes:
    """Reduce over the last axis of `a` and `b` with NumPy; their other axes broadcast to the shape of `begin`."""
    length, shape = a.shape[-1], begin.shape
    warn_of_slowness(length * prod(shape) * _SECONDS_PER_PRODUCT)
    x, y = (np.broadcast_to(codes, (*shape, length)) for codes in (a, b))
    rows = max(1, _PIECE // max(1, prod(shape[1:]))) if shape else 1
    result = np.empty(shape, begin.dtype)
    with np.errstate(all="ignore"):
        if not shape:
            return _reduced(x, y, begin, operand, rule)
        for at in range(0, shape[0], rows):
            piece = slice(at, at + rows)
            result[piece] = _reduced(x[piece], y[piece], begin[piece], operand, rule)
    return result


def _reduced(x: Codes, y: Codes, begin: Codes, operand: FloatFormat, rule: Accumulator) -> Codes:
    start = codes_to_float64(begin, rule.outer)
    length = x.shape[-1]
    if rule.promote_every is None:
        total = _run(x, y, start, operand, rule)
    else:
        total = start
        for at in range(0, length, rule.promote_every):
            piece = slice(at, at + rule.promote_every)
            partial = _run(x[..., piece], y[..., piece], np.zeros(begin.shape), operand, rule)
            total = rounded_sum(partial + total, FusedSum(2))  # of two float32 values, float64 rounds harmlessly first
    codes = float64_to_codes(np.asarray(total), rule.outer)
    return np.where(np.isnan(total), codes.dtype.type(rule.nan), codes)


def _run(x: Codes, y: Codes, total: Float64, operand: FloatFormat, rule: Accumulator) -> Float64:
    shape = total.shape
    # Where the factors are +0, so is their product.
    filling = Term(np.zeros(shape), np.full(shape, _exponent_of_zero(rule)))
    for at in range(0, x.shape[-1], rule.block):
        products = [_product(x[..., k], y[..., k], operand, rule) for k in range(at, min(at + rule.block, x.shape[-1]))]
        products += [filling] * (rule.block - len(products))
        if at % (rule.depth or rule.block) == 0:
            total = flushed_total(total, rule)
        total = accumulate_block(products, total, rule)
    return total


def _exponent_of_zero(rule: Accumulator) -> int:
    return NO_EXPONENT if rule.zero_exponent is None else 2 * rule.zero_exponent


def _product(x: Codes, y: Codes, operand: FloatFormat, rule: Accumulator) -> Term:
    factors = [codes_to_float64(codes, operand) for codes in (x, y)]
    if rule.flush != "none":
        factors = [np.where(np.abs(each) < 2.0**operand.emin, each * 0.0, each) for each in factors]
    of_zero = NO_EXPONENT if rule.zero_exponent is None else rule.zero_exponent
    exponents = [
        np.where(each == 0, of_zero, np.maximum(np.frexp(each)[1] - 1, operand.emin)).astype(np.int64)
        for each in factors
    ]
    if rule.flush == "positive":
        factors = [np.where(each == 0, 0.0, each) for each in factors]
    return Term(factors[0] * factors[1], exponents[0] + exponents[1])
