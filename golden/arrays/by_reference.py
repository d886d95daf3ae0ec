"""The back end of exact integers: the contract itself, slow, one result after the other."""

from __future__ import annotations

from itertools import product

import numpy as np

from golden import reference
from golden.arrays.checks import code_dtype
from golden.arrays.counting import counts_in_form
from golden.arrays.requests import Answer, Request
from golden.counts import Counts, Events
from golden.exact_steps import Place, counted

__all__ = ["ExactIntegers"]


class ExactIntegers:
    """`golden.reference`: codes, flags and counts of any product."""

    name = "exact"

    def obstacle(self, request: Request) -> str | None:
        """Return None: exact integers serve every request."""
        return None

    def compute(self, request: Request) -> Answer:
        """Return the answer to a request."""
        given = request.in_codes()
        reduction, shape, counting = given.reduction, given.shape, given.counting
        a, b = np.asarray(given.a), np.asarray(given.b)
        if not given.is_dot:
            a, b = a[..., :, np.newaxis, :], np.swapaxes(b, -1, -2)[..., np.newaxis, :, :]
        x, y = (np.broadcast_to(each, (*shape, given.length)) for each in (a, b))
        starts = np.broadcast_to(0 if given.initial is None else given.initial, shape)
        codes, flags = np.empty(shape, code_dtype(reduction.result)), np.zeros(shape, np.uint8)
        counts = np.empty(shape, object)
        for number, at in enumerate(product(*map(range, shape))):
            place = Place(reduction, number)
            code, raised, steps = reference.dot_at(place, x[at].tolist(), y[at].tolist(), int(starts[at]))
            codes[at], flags[at] = code, int(raised)
            counts[at] = counted(steps) if counting is not None else None
        found = None
        if counting is not None:
            rows = counts if counting.rows is None else counts[..., counting.rows, :]
            found = counts_in_form(_gathered(rows), counting.form)
        return Answer(codes, flags if given.flags else None, found).in_form_of(request)


def _gathered(counts: np.ndarray) -> Counts:
    """Return the counts of many results as arrays."""

    def array(*path: str) -> np.ndarray:
        found = np.zeros(counts.shape, np.int64)
        for at in np.ndindex(counts.shape):
            value = counts[at]
            for name in path:
                value = getattr(value, name)
            found[at] = value
        return found

    names = ("steps", "inexact", "underflow", "overflow", "invalid", "swamped")
    kinds = [Events(*(array(kind, name) for name in names)) for kind in ("products", "promotions")]
    return Counts(kinds[0], kinds[1], array("largest_exponent"))
