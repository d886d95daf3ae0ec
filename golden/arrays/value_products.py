"""Matrix products of float32 values (NUMERICS section 5)."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.accumulator import Accumulator
from golden.arrays.accumulators import multiply, totals_of
from golden.arrays.chain import last_rounding
from golden.arrays.checks import as_format, as_values
from golden.arrays.conversion import decode, encode, quantize
from golden.arrays.counting import Counting, as_counting
from golden.arrays.multiplication import counted
from golden.arrays.operands import carried_indexed, carried_values, carrier
from golden.arrays.plans import (
    ReductionOptions,
    allowed,
    arguments_of,
    check_initial,
    check_length,
    matmul_shape,
    plan_for_level,
    plan_of,
    steps_of,
)
from golden.arrays.products import matmul
from golden.counts import Counts
from golden.formats import FP32, FloatFormat
from golden.kernels import products as kernels
from golden.kernels.counting import CountSink
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, ReductionRounding, Rounding

__all__ = ["indexed_values", "matmul_values"]


@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: Literal[False] = ...,
    counted_rows: None = ...,
    **options: Unpack[ReductionOptions],
) -> NDArray[np.float32]: ...
@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: Literal[True, "rows", "sum"],
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ReductionOptions],
) -> tuple[NDArray[np.float32], Counts]: ...
@overload
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: bool | str,
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ReductionOptions],
) -> NDArray[np.float32] | tuple[NDArray[np.float32], Counts]: ...
def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Accumulator | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    out_rounding: Rounding | str = Rounding.NEAREST_EVEN,
    seed: int = 0,
    call: int = 0,
    random_bits: int = DEFAULT_RANDOM_BITS,
    counts: bool | str = False,
    counted_rows: int | slice | ArrayLike | None = None,
) -> NDArray[np.float32] | tuple[NDArray[np.float32], Counts]:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of float32 values: `quantize`, `matmul` and `decode` in one call.

    Parameters
    ----------
    a, b : float32 arrays of at least two axes, of any strides
        Every value is rounded once to `operand`.
    operand : FloatFormat or str
    level, chunk, reduction
        As of `dot`.
    initial : float32 array, optional
        Values, rounded once to the outer format, from which the totals start; it broadcasts to the result.
    out : FloatFormat or str, optional
        Rounds the result once more; the outer format of the reduction unless given.
    rounding, out_rounding, seed, call, random_bits
        As of `dot`; operands and initial values are rounded to nearest even.
    counts, counted_rows
        As of `matmul`; the rounding of the operands is counted nowhere.

    Returns
    -------
    values : float32 array of shape (..., M, N)
        Values of `out` or the outer format; the canonical NaN for every NaN.
    counts : Counts
        Only if `counts`, as of `matmul`.

    Raises
    ------
    TypeError
        If values are not float32 (or float16), or another argument has the wrong type.
    ValueError
        If shapes do not fit, or another argument is out of range or names nothing.
    """
    operand = as_format(operand, "operand")
    x, y = as_values(a, "a"), as_values(b, "b")
    shape = matmul_shape(x, y)
    plan = plan_of(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    check_length(x.shape[-1], modes)
    destination = plan.outer if out is None else as_format(out, "out")
    start = None if initial is None else as_values(initial, "initial")
    if start is not None:
        check_initial(start, shape)
    counting = as_counting(counts, counted_rows, shape[-2])
    if isinstance(plan, Accumulator):
        plan.refuse(counts=counting is not None)
        begin = totals_of(start, shape)
        if multiply(quantize(x, operand), quantize(y, operand), begin, operand, allowed(plan, modes)):
            return quantize(begin.view(np.float32), destination, **last_rounding(shape, modes))
    elif counting is not None:
        return _counted_values(x, y, start, shape, counting, operand, plan, destination, modes)
    elif not destination.has_inf:  # which the kernels have not
        result = matmul_values(x, y, operand=operand, reduction=plan, initial=start, **arguments_of(modes))
        return quantize(result, destination, out=result, **last_rounding(shape, modes))
    if x.shape[-1] and isinstance(plan, Reduction):
        result = np.empty(shape, np.float32)
        formats = kernels.Formats.of(carrier(operand), plan, destination, as_values=True, rounding=modes)
        if kernels.matmul(*carried_values(operand, x, y), start, result, formats):
            return result
    codes = matmul(
        encode(x, operand),
        encode(y, operand),
        operand=operand,
        reduction=plan,
        initial=None if start is None else encode(start, plan.outer),
        out=destination,
        **arguments_of(modes, with_last=True),
    )
    return decode(codes, destination)


def _counted_values(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    start: NDArray[np.float32] | None,
    shape: tuple[int, ...],
    counting: Counting,
    operand: FloatFormat,
    plan: Reduction,
    destination: FloatFormat,
    modes: ReductionRounding,
) -> tuple[NDArray[np.float32], Counts]:
    """Return the values of a matrix product, and the counts of its steps."""
    if x.shape[-1] and destination.has_inf:
        formats = kernels.Formats.of(carrier(operand), plan, destination, as_values=True, rounding=modes)
        result, sink = np.empty(shape, np.float32), CountSink(counting.form, shape, counting.rows)
        if kernels.matmul(*carried_values(operand, x, y), start, result, formats, sink=sink):
            return result, sink.counts(*steps_of(plan, x.shape[-1]))
    options: dict[str, Any] = {"operand": operand, "reduction": plan, "out": destination}
    options |= arguments_of(modes, with_last=True)
    if counting.rows is not None and counting.rows.size and not modes.is_random:
        rows = counting.rows
        part = None if start is None else np.broadcast_to(start, shape)[..., rows, :]
        _, found = matmul_values(x[..., rows, :], y, initial=part, counts=counting.form, **options)
        return matmul_values(x, y, initial=start, counts=False, **options), found
    given = encode(x, operand), encode(y, operand), None if start is None else encode(start, plan.outer)
    codes, found = counted(*given, shape, counting, operand=operand, plan=plan, destination=destination, modes=modes)
    return decode(codes, destination), found


def indexed_values(
    a: kernels.Indexed,
    b: kernels.Indexed,
    *,
    operand: FloatFormat,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Accumulator | None = None,
    initial: NDArray[np.float32] | None = None,
    out: FloatFormat | None = None,
    rounding: Rounding | str = Rounding.NEAREST_EVEN,
    out_rounding: Rounding | str = Rounding.NEAREST_EVEN,
    seed: int = 0,
    call: int = 0,
    random_bits: int = DEFAULT_RANDOM_BITS,
) -> NDArray[np.float32]:
    """Matrix products like `matmul_values`, with operands addressed by tables, such as the windows of a convolution.

    Returns
    -------
    float32 array of shape (batches, M, N)
        Values of `out`, or of `operand`.
    """
    shape = len(a.batches), len(a.rows), len(b.columns)
    plan, destination = reduction or plan_for_level(level, operand, chunk=chunk), out or operand
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    check_length(len(a.columns), modes)
    if isinstance(plan, Accumulator):
        totals = _one_by_one(a, b, shape, operand, allowed(plan, modes), initial)
        return quantize(totals, destination, out=totals, **last_rounding(shape, modes))
    if len(a.columns) and np.prod(shape):
        result = np.empty(shape, np.float32)
        formats = kernels.Formats.of(carrier(operand), plan, destination, as_values=True, rounding=modes)
        if 2 * b.data.size <= len(b.batches) * len(b.rows) * len(b.columns):  # as of windows that overlap
            b = b._replace(data=np.asarray(quantize(b.data, operand)))
            formats = formats._replace(b_is_rounded=True)
        if destination.has_inf and kernels.matmul_indexed(*carried_indexed(operand, a, b), initial, result, formats):
            return result
    options: dict[str, Any] = {"operand": operand, "reduction": plan, "initial": initial, "out": destination}
    return matmul_values(a.matrices(), b.matrices(), counts=False, **options, **arguments_of(modes, with_last=True))


def _one_by_one(
    a: kernels.Indexed,
    b: kernels.Indexed,
    shape: tuple[int, int, int],
    operand: FloatFormat,
    rule: Accumulator,
    initial: NDArray[np.float32] | None,
) -> NDArray[np.float32]:
    """Gather the matrices one after the other, since all of them together may take too much memory."""
    result = np.empty(shape, np.float32)
    starts = None if initial is None else np.broadcast_to(initial, shape)
    for at, product in enumerate(result):
        left, right = (each._replace(batches=each.batches[at : at + 1]).matrices()[0] for each in (a, b))
        start = None if starts is None else starts[at]
        product[...] = matmul_values(left, right, operand=operand, reduction=rule, initial=start, out=FP32)
    return result
