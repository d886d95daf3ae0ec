"""Counts of a product by the compiled library (NUMERICS section 11): the request, and the answer."""

from __future__ import annotations

import struct
from math import prod

import numpy as np
from numpy.typing import NDArray

from golden.counts import NO_EXPONENT, Counts, Events
from golden.flags import EVENTS
from golden.kernels.library import address

__all__ = ["CountSink"]

_COUNTING = struct.Struct("4q")  # struct cbfloat_counting of kernels.h
_EACH, _ROWS, _SUM = range(3)


class CountSink:
    """Where the library puts the counts of a product whose results have a shape.

    Parameters
    ----------
    form : True, "rows" or "sum"
    shape : tuple of int
        Of the results, rows and columns last.
    rows : int64 array, optional
        Which rows are counted, all unless given.
    has_rows : bool
        Whether the results are matrices; results of dot products may have any shape.
    """

    def __init__(
        self,
        form: bool | str,
        shape: tuple[int, ...],
        rows: NDArray[np.int64] | None = None,
        *,
        has_rows: bool = True,
    ) -> None:
        self._has_rows = has_rows
        self._form = _EACH if form is True else _ROWS if form == "rows" else _SUM
        self._rows, self._results = rows, shape
        shape = (shape, shape[:-1], ())[self._form]
        self._events = np.zeros((2, len(EVENTS), *shape), np.int64)
        self._largest = np.full(shape, NO_EXPONENT, np.int64)
        self._mask: NDArray[np.uint8] | None = None
        if rows is not None:
            mask = np.zeros(self._results[-2], np.uint8)
            mask[rows] = 1
            # A batch may be computed as the rows of one matrix.
            self._mask = np.tile(mask, prod(self._results[:-2]))

    def request(self) -> bytes:
        """Return the request as the C interface has it; its arrays live as long as this object."""
        mask = 0 if self._mask is None else address(self._mask)
        return _COUNTING.pack(self._form, mask, address(self._events), address(self._largest))

    def counts(self, products: int, promotions: int) -> Counts:
        """Return the counts, where each result took this many products and promotions."""
        events, largest = self._events, self._largest
        if self._rows is not None and self._form != _SUM:
            axis = -2 if self._form == _EACH else -1
            events, largest = events.take(self._rows, axis), largest.take(self._rows, axis)
        kinds = []
        for kind, steps in zip(events, (products, promotions), strict=True):
            found = dict(zip(EVENTS, kind, strict=True))
            kinds.append(Events(np.full(largest.shape, steps * self._per_number(), np.int64), **found))
        counts = Counts(kinds[0], kinds[1], largest)
        return counts.sum() if self._form == _SUM else counts

    def _per_number(self) -> int:
        """Return how many results each number is of."""
        if self._form == _EACH:
            return 1
        if not self._has_rows:
            return prod(self._results)
        *batch, rows, columns = self._results
        return (
            columns
            if self._form == _ROWS
            else prod(batch) * columns * (rows if self._rows is None else len(self._rows))
        )
