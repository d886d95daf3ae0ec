"""Signalling NaNs among the operands of counted products: the compiled library takes them for quiet ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.counting import counts_in_form
from golden.arrays.requests import Request
from golden.counts import COUNTED, Counts, Events
from golden.formats import FloatFormat

__all__ = ["has_signalling", "with_signalling"]

Codes = NDArray[Any]


def _marks(request: Request) -> tuple[Codes, Codes, Codes]:
    """Return where the factors, and the initial values, of a request in codes are signalling NaNs."""
    start, outer, operand = request.initial, request.reduction.outer, request.operand
    in_start = np.zeros((), bool) if start is None else outer.is_signalling(start)
    return operand.is_signalling(request.a), operand.is_signalling(request.b), in_start


def has_signalling(request: Request) -> bool:
    """Return whether a factor or an initial value of a request in codes is a signalling NaN."""
    return any(marks.any() for marks in _marks(request))


def with_signalling(counts: Counts, request: Request) -> Counts:
    """Add to the counts of a matrix product of codes the steps that are invalid for a signalling NaN alone."""
    in_x, in_y, in_start = _marks(request)
    if not (in_x.any() or in_y.any() or in_start.any()):
        return counts
    x, y, operand, shape, counting = request.a, request.b, request.operand, request.shape, request.counting
    assert counting is not None
    # Steps with one in either factor: those with one in a, and in b, less those with one in both. Sums are exact.
    both = np.matmul(in_x.astype(np.float64), in_y.astype(np.float64)).astype(np.int64)
    products = in_x.sum(axis=-1)[..., :, np.newaxis] + in_y.sum(axis=-2)[..., np.newaxis, :] - both
    promotions = np.zeros(shape, np.int64)
    if request.reduction.is_chain:  # whose first step starts from the initial value, and may be invalid without it
        first_x, first_y = x[..., :, :1], y[..., :1, :]
        zero_times_infinity = _is_zero(first_x, operand) & operand.is_inf(first_y)
        zero_times_infinity |= operand.is_inf(first_x) & _is_zero(first_y, operand)
        known = zero_times_infinity | in_x[..., :, :1] | in_y[..., :1, :]
        products = products + (in_start & ~known)
    else:
        promotions = promotions + in_start
    extra = [np.broadcast_to(kind, shape) for kind in (products, promotions)]
    if counting.rows is not None:
        extra = [kind[..., counting.rows, :] for kind in extra]
    nothing = np.zeros_like(extra[0])
    events = [Events(**dict.fromkeys(COUNTED, nothing) | {"invalid": kind}) for kind in extra]
    added = counts_in_form(Counts(events[0], events[1], nothing), counting.form)
    kinds = [
        replace(kind, invalid=kind.invalid + more.invalid)
        for kind, more in ((counts.products, added.products), (counts.promotions, added.promotions))
    ]
    return Counts(kinds[0], kinds[1], counts.largest_exponent)


def _is_zero(codes: Codes, fmt: FloatFormat) -> NDArray[np.bool_]:
    magnitude = codes & np.asarray(fmt.sign_mask - 1, codes.dtype)
    return np.asarray(magnitude == 0)
