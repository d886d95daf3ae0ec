"""Matrix products of codes, plain and counted, of arguments that have been checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.chain import last_rounding, reduce_codes
from golden.arrays.checks import code_dtype
from golden.arrays.conversion import convert
from golden.arrays.counting import Counting, Tally, counts_in_form
from golden.arrays.operands import carried_codes, carrier
from golden.arrays.plans import steps_of
from golden.arrays.signalling import with_signalling
from golden.counts import Counts
from golden.formats import FloatFormat
from golden.kernels import products as kernels
from golden.kernels.counting import CountSink
from golden.reduction import Reduction
from golden.rounding import ReductionRounding, Rounding

__all__ = ["counted", "multiplied"]

Codes = NDArray[Any]


def multiplied(
    x: Codes,
    y: Codes,
    start: Codes | None,
    shape: tuple[int, ...],
    *,
    operand: FloatFormat,
    plan: Reduction,
    destination: FloatFormat | None,
    modes: ReductionRounding,
) -> Codes:
    """Return the codes of a matrix product that counts nothing."""
    if destination is not None and not destination.has_inf:  # which the kernels have not
        last = last_rounding(shape, modes)
        modes = replace(modes, out_rounding=Rounding.NEAREST_EVEN)
        total = multiplied(x, y, start, shape, operand=operand, plan=plan, destination=None, modes=modes)
        return convert(total, plan.outer, destination, **last)
    if x.shape[-1]:
        result = np.empty(shape, code_dtype(destination or plan.outer))
        formats = kernels.Formats.of(carrier(operand), plan, destination or plan.outer, rounding=modes)
        if kernels.matmul(*carried_codes(operand, x, y), start, result, formats):
            return result
    x, y = _along_k(x, y, shape)
    return reduce_codes(
        x, y, shape, operand=operand, plan=plan, start=start, out=destination, with_flags=False, rounding=modes
    )[0]


def counted(
    x: Codes,
    y: Codes,
    start: Codes | None,
    shape: tuple[int, ...],
    counting: Counting,
    *,
    operand: FloatFormat,
    plan: Reduction,
    destination: FloatFormat | None,
    modes: ReductionRounding,
) -> tuple[Codes, Counts]:
    """Return the codes of a matrix product, and the counts of the rows that are counted."""
    how: dict[str, Any] = {"operand": operand, "plan": plan, "modes": modes}
    if x.shape[-1] and (destination is None or destination.has_inf):
        formats = kernels.Formats.of(carrier(operand), plan, destination or plan.outer, rounding=modes)
        result = np.empty(shape, code_dtype(formats.destination))
        sink = CountSink(counting.form, shape, counting.rows)
        if kernels.matmul(*carried_codes(operand, x, y), start, result, formats, sink=sink):
            found = sink.counts(*steps_of(plan, x.shape[-1]))
            return result, with_signalling(found, x, y, start, shape, counting, operand=operand, plan=plan)
    if counting.rows is None:
        codes, found = _counted_rows(x, y, start, shape, counting, **how)
        if destination is not None:
            codes = convert(codes, plan.outer, destination, **last_rounding(shape, modes))
        return codes, found
    codes = multiplied(x, y, start, shape, destination=destination, **how)
    rows = counting.rows
    if not modes.is_random:  # whose places are those of the whole call
        x, start, shape = _of_rows(rows, x, start, shape)
        counting = replace(counting, rows=None)
        if rows.size:
            return codes, counted(x, y, start, shape, counting, destination=None, **how)[1]
    return codes, _counted_rows(x, y, start, shape, counting, **how)[1]


def _counted_rows(
    x: Codes,
    y: Codes,
    start: Codes | None,
    shape: tuple[int, ...],
    counting: Counting,
    *,
    operand: FloatFormat,
    plan: Reduction,
    modes: ReductionRounding,
) -> tuple[Codes, Counts]:
    """Return the codes of the rows that are counted, in the outer format, and their counts, by NumPy."""
    index = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape) if modes.is_random else None
    if counting.rows is not None:
        index = None if index is None else index[..., counting.rows, :]
        x, start, shape = _of_rows(counting.rows, x, start, shape)
    x, y = _along_k(x, y, shape)
    tally = Tally(shape)
    options: dict[str, Any] = {"operand": operand, "plan": plan, "start": start, "rounding": modes, "out": None}
    codes, _ = reduce_codes(x, y, shape, with_flags=False, tally=tally, index=index, **options)
    return codes, counts_in_form(tally.counts(), counting.form)


def _along_k(x: Codes, y: Codes, shape: tuple[int, ...]) -> tuple[Codes, Codes]:
    """Return factors whose first axis is that of the steps; the others broadcast to the results."""
    batch = shape[:-2]
    columns = np.moveaxis(np.broadcast_to(x, batch + x.shape[-2:]), -1, 0)
    rows = np.moveaxis(np.broadcast_to(y, batch + y.shape[-2:]), -2, 0)
    return columns[..., :, np.newaxis], rows[..., np.newaxis, :]


def _of_rows(
    rows: NDArray[np.int64], x: Codes, start: Codes | None, shape: tuple[int, ...]
) -> tuple[Codes, Codes | None, tuple[int, ...]]:
    """Return left operand, initial values and shape of some rows of the results."""
    start = None if start is None else np.broadcast_to(start, shape)[..., rows, :]
    return x[..., rows, :], start, (*shape[:-2], len(rows), shape[-1])
