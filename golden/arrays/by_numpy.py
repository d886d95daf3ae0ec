"""The back end that serves every product: NumPy, one step of all results at a time."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.accumulator import Accumulator
from golden.arrays.chain import Chain, Signalling
from golden.arrays.checks import code_dtype
from golden.arrays.counting import Tally, counts_in_form
from golden.arrays.grouped_sums import accumulate_groups
from golden.arrays.other_machines import accumulate_codes
from golden.arrays.requests import Answer, Request
from golden.arrays.rounding import codes_to_float64, float64_to_codes
from golden.grouped_sums import GroupedSums
from golden.kernels.library import warn_of_slowness
from golden.reduction import Reduction
from golden.rounding import Rounding

__all__ = ["NumPy"]

Array = NDArray[Any]

# Roughly: to nearest even, in another mode, with random bits.
_SECONDS_PER_STEP, _SECONDS_IN_MODE, _SECONDS_OF_CHANCE = 1.5e-8, 1.5e-7, 3e-7


class NumPy:
    """NumPy's arrays of float64: codes, flags and counts of any product."""

    name = "numpy"

    def obstacle(self, request: Request) -> str | None:
        """Return None: NumPy serves every request."""
        return None

    def compute(self, request: Request) -> Answer:
        """Return the answer to a request."""
        return self._in_codes(request.in_codes()).in_form_of(request)

    def _in_codes(self, request: Request) -> Answer:
        if request.reduction.accumulator is not None:
            return _accumulated(request).converted(request)
        counting = request.counting
        if counting is None or counting.rows is None:
            return _reduced(request)
        part, index = _of_rows(request, counting.rows)
        counts = _reduced(part.in_outer(), index).counts
        return _reduced(request._replace(counting=None))._replace(counts=counts)


def _along_k(request: Request) -> tuple[Array, Array]:
    """Return factors with the products on the last axis; the other axes broadcast to the results."""
    if request.is_dot:
        return request.a, request.b
    return request.a[..., :, np.newaxis, :], np.swapaxes(request.b, -1, -2)[..., np.newaxis, :, :]


def _accumulated(request: Request) -> Answer:
    """Return the totals of a machine that accumulates in another way."""
    rule = request.reduction.accumulator
    assert rule is not None
    total = np.zeros(request.shape, code_dtype(rule.outer))
    if request.initial is not None:
        total[...] = request.initial
    flags = np.zeros(request.shape, np.uint8)
    if request.length and total.size:
        if isinstance(rule, GroupedSums):  # whose flags are known
            total, flags = accumulate_groups(*_along_k(request), total, rule, request.reduction.rounding)
        else:
            assert isinstance(rule, Accumulator)
            total = accumulate_codes(*_along_k(request), total, request.operand, rule)
    return Answer(total, flags if request.flags else None)


def _of_rows(request: Request, rows: NDArray[np.int64]) -> tuple[Request, NDArray[np.uint64]]:
    """Return the request for some rows of the results, and their numbers among all results."""
    shape = (*request.shape[:-2], len(rows), request.shape[-1])
    start = request.initial
    if start is not None:
        start = np.broadcast_to(start, request.shape)[..., rows, :]
    index = np.arange(prod(request.shape), dtype=np.uint64).reshape(request.shape)[..., rows, :]
    return request._replace(a=request.a[..., rows, :], initial=start, shape=shape), index


def _reduced(request: Request, index: NDArray[np.uint64] | None = None) -> Answer:
    """Return codes, flags and counts of a reduction; `Chain` explains `index`."""
    reduction, operand, shape = request.reduction, request.operand, request.shape
    tally = None if request.counting is None else Tally(shape)
    chain = Chain(shape, request.flags, tally, reduction.random, index, reduction.flushes)
    start = np.zeros((), code_dtype(reduction.outer)) if request.initial is None else request.initial
    length = request.length
    warn_of_slowness(length * prod(shape) * _seconds_per_step(reduction.rounding))
    if length == 0:
        codes = np.broadcast_to(_as_it_counts(start, reduction), shape).copy()
    else:
        a, b = (np.moveaxis(each, -1, 0) for each in _along_k(request))
        with np.errstate(all="ignore"):
            x, y = (codes_to_float64(each, operand, flushes=reduction.flushes) for each in (a, b))
            marks = operand.is_signalling(a), operand.is_signalling(b), reduction.outer.is_signalling(start)
            signalling = Signalling(*marks) if request.flags or tally is not None else None
            begin = codes_to_float64(start, reduction.outer, flushes=reduction.flushes)
            total = chain.reduce(length, lambda k: (x[k], y[k]), reduction, begin, signalling)
            codes = float64_to_codes(total, reduction.outer)
    counts = None
    if tally is not None and request.counting is not None:
        counts = counts_in_form(tally.counts(), request.counting.form)
    # Also into the outer format itself: the initial value that an empty reduction gives may be any NaN.
    return Answer(codes, chain.flags if request.flags else None, counts).converted(request)


def _as_it_counts(start: Array, reduction: Reduction) -> Array:
    """Return the initial values that an empty reduction gives; NaNs keep their codes."""
    if not reduction.flushes:
        return start
    sign = np.asarray(reduction.outer.sign_mask, start.dtype)
    return np.where(start & (sign - 1) < reduction.outer.min_normal, start & sign, start)


def _seconds_per_step(rounding: Rounding) -> float:
    if rounding is Rounding.STOCHASTIC:
        return _SECONDS_OF_CHANCE
    return _SECONDS_PER_STEP if rounding is Rounding.NEAREST_EVEN else _SECONDS_IN_MODE
