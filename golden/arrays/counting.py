"""Counting events in reductions of arrays (NUMERICS section 11): the request of a call, and its tally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import refuse_mask
from golden.arrays.rounding import Flags, Float64
from golden.counts import COUNTED, NO_EXPONENT, Counts, Events
from golden.flags import EVENTS, Flag
from golden.nearest import complete

__all__ = ["FORMS", "Counting", "Tally", "as_counting", "counts_in_form"]

#: Values of ``counts=`` beside False: counts per result, per row of the left operand, in total.
FORMS = (True, "rows", "sum")

#: The events that are flags.
_FLAGS = {"inexact": Flag.INEXACT, "underflow": Flag.UNDERFLOW, "overflow": Flag.OVERFLOW, "invalid": Flag.INVALID}
complete("golden.arrays.counting.Tally", [*_FLAGS, "swamped"], EVENTS)


@dataclass(frozen=True, eq=False)
class Counting:
    """The counts that a call asks for.

    Parameters
    ----------
    form : True, "rows" or "sum"
    rows : int64 array, optional
        The rows of the left operand that are counted, each once; all unless given.
    """

    form: bool | str
    rows: NDArray[np.int64] | None = None


def as_counting(counts: bool | str, counted_rows: Any = None, length: int | None = None) -> Counting | None:
    """Accept the arguments `counts` and `counted_rows` of a product of `length` rows; None counts nothing.

    Without `length`, every result is its own row, so there are no rows to choose.
    """
    allowed = "False, True or 'sum'" if length is None else "False, True, 'rows' or 'sum'"
    if not isinstance(counts, bool | np.bool_ | str):
        raise TypeError(f"counts: got {counts!r}, must be {allowed}")
    if isinstance(counts, str) and counts not in (("sum",) if length is None else FORMS):
        rows = "; a dot product has no rows, True counts for each" if counts == "rows" else ""
        raise ValueError(f"counts: got {counts!r}, must be {allowed}{rows}")
    if isinstance(counts, bool | np.bool_) and not counts:
        if counted_rows is not None:
            raise ValueError(f"counted_rows: got {counted_rows!r}, must be None unless counts asks for counts")
        return None
    form = counts if isinstance(counts, str) else True
    return Counting(form, None if counted_rows is None or length is None else _as_rows(counted_rows, length))


def _as_rows(given: int | slice | ArrayLike, length: int) -> NDArray[np.int64] | None:
    """Return the numbers of the rows: of a slice or array those, of an int so many, evenly spread from the first."""
    allowed = f"must be how many, a slice, or an array of different rows from 0 to {length - 1}"
    if isinstance(given, slice):
        try:
            return np.arange(length, dtype=np.int64)[given]
        except (TypeError, ValueError) as error:
            raise TypeError(f"counted_rows: got {given!r}, {allowed} ({error})") from None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"counted_rows: got {given}, must be at least 1 as a number of rows")
        count = min(int(given), length)
        return None if count == length else np.arange(count, dtype=np.int64) * length // count
    refuse_mask(given, "counted_rows")
    try:
        rows = np.asarray(given)
    except (TypeError, ValueError):
        rows = np.empty((), object)  # lists of different lengths
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise TypeError(f"counted_rows: got {given!r}, {allowed}")
    if rows.size and (rows.min() < 0 or rows.max() >= length or len(np.unique(rows)) != len(rows)):
        raise ValueError(f"counted_rows: got {given!r}, {allowed}")
    return rows.astype(np.int64)


class Tally:
    """The counts of each result of a shape, step by step."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._counts = {kind: {name: np.zeros(shape, np.int64) for name in COUNTED} for kind in (False, True)}
        self._largest = np.zeros(shape)

    def add(
        self, flags: Flags, product: Float64, before: Float64, after: Float64, *, is_promotion: bool = False
    ) -> None:
        """Count one step of every result, ``after = round(product + before)``, that raised `flags`."""
        counts = self._counts[is_promotion]
        counts["steps"] += 1
        for name, flag in _FLAGS.items():
            counts[name] += flags & np.uint8(flag) != 0
        is_lost = np.isfinite(product) & (product != 0) & np.isfinite(before) & (after == before)
        counts["swamped"] += is_lost
        np.maximum(self._largest, np.where(np.isfinite(after), np.abs(after), 0), out=self._largest)

    def counts(self) -> Counts:
        """Return the counts so far, in arrays of the results' shape."""
        exponents = np.frexp(self._largest)[1].astype(np.int64) - 1
        exponents = np.where(self._largest == 0, np.int64(NO_EXPONENT), exponents)
        products, promotions = (
            Events(**{name: count[()] for name, count in self._counts[kind].items()}) for kind in (False, True)
        )
        return Counts(products, promotions, exponents[()])


def counts_in_form(counts: Counts, form: bool | str) -> Counts:
    """Return counts of each result as they were asked for."""
    if form == "sum":
        return counts.sum()
    if form != "rows":
        return counts
    products, promotions = (
        Events(**{name: count.sum(axis=-1) for name, count in vars(kind).items()})
        for kind in (counts.products, counts.promotions)
    )
    return Counts(products, promotions, counts.largest_exponent.max(axis=-1, initial=NO_EXPONENT))
