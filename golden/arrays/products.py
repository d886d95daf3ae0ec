"""Reductions of code arrays (NUMERICS section 5)."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.accumulator import Accumulator
from golden.arrays.accumulators import dot_codes, matmul_codes
from golden.arrays.chain import last_rounding, reduce_codes
from golden.arrays.checks import as_codes, as_flag, as_format, code_dtype, same_shape
from golden.arrays.conversion import convert
from golden.arrays.counting import Tally, as_counting, counts_in_form
from golden.arrays.multiplication import counted, multiplied
from golden.arrays.operands import carried_codes, carrier
from golden.arrays.plans import (
    ReductionOptions,
    allowed,
    arguments_of,
    as_start,
    check_length,
    matmul_shape,
    plan_of,
    steps_of,
)
from golden.counts import Counts
from golden.formats import FP32, FloatFormat
from golden.kernels import products as kernels
from golden.kernels.counting import CountSink
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, ReductionRounding, Rounding

__all__ = ["dot", "matmul"]

Codes = NDArray[Any]


def dot(
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
    return_flags: bool = False,
    counts: bool | str = False,
) -> Any:
    """Sum ``a[..., k] * b[..., k]`` over the last axis, in the order and formats of a precision level.

    Its hardware twins are `hdl.MultiplyAccumulate`, which gives the same bits and flags one result at a time, and
    `hdl.VectorMac`, which does so in each of its lanes.

    Parameters
    ----------
    a, b : unsigned arrays
        Codes in `operand`, of at least one axis; the last axes have one length K (0 allowed), the others broadcast.
    operand : FloatFormat or str
        Format of the factors.
    level : int
        Precision optimization level 0, 1 or 2.
    chunk : int or None
        Products in a chunk; None is one chunk of any length.
    reduction : Reduction or Accumulator, optional
        In place of `level` and `chunk`. An accumulator of another machine, one of `golden.accumulators`, takes operands
        of its width, rounds in its own way and has no flags.
    initial : unsigned array or int, optional
        Codes in the outer format from which the total starts, +0 unless given; it broadcasts to the result.
    out : FloatFormat or str, optional
        Converts the result once more; the outer format of the reduction unless given.
    rounding : Rounding or str
        Mode of every step and promotion (NUMERICS section 9), to nearest even unless given.
    out_rounding : Rounding or str
        Mode of the conversion into `out`, likewise.
    seed, call : int
        Where a mode is ``stochastic``: the key of its random bits, 0 to 2**64 - 1, and a number that tells calls apart,
        0 to 2**32 - 1. The bits of a rounding are those of its place (NUMERICS section 10), so that a call repeats.
    random_bits : int
        How many bits such a rounding has, 1 to 32.
    return_flags : bool
        Also return a uint8 array: the OR of the flags of all steps, promotions and the conversion.
    counts : bool or "sum"
        Also return how often what occurred in the steps (NUMERICS section 11): True for each result, ``"sum"`` for all
        together.

    Returns
    -------
    codes : unsigned array
        In `out` or the outer format; shape of the operands without the last axis.
    flags : uint8 array
        Only if `return_flags`.
    counts : Counts
        Only if `counts`: int64 arrays of the result's shape, or ints.

    Raises
    ------
    TypeError
        If codes are not unsigned, or another argument has the wrong type.
    ValueError
        If shapes do not fit, a code is wider than its format, or another argument is out of range or names nothing.
    """
    operand = as_format(operand, "operand")
    x, y = as_codes(a, operand, "a"), as_codes(b, operand, "b")
    for argument, codes in (("a", x), ("b", y)):
        if codes.ndim == 0:
            raise ValueError(f"{argument}: got a scalar, must have at least one axis to reduce")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"a, b: got {x.shape[-1]} and {y.shape[-1]} products on the last axis, must be equal")
    shape = same_shape("a, b", x.shape[:-1], y.shape[:-1])
    plan = plan_of(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    check_length(x.shape[-1], modes)
    destination = None if out is None else as_format(out, "out")
    start = as_start(initial, plan, shape)
    with_flags, counting = as_flag(return_flags, "return_flags"), as_counting(counts)
    if isinstance(plan, Accumulator):
        plan.refuse(return_flags=with_flags, counts=counting is not None)
        total = dot_codes(x, y, shape, operand=operand, rule=allowed(plan, modes), start=start)
        return total[()] if destination is None else convert(total, FP32, destination, **last_rounding(shape, modes))
    if destination is not None and not destination.has_inf:  # which the kernels have not
        options = {"operand": operand, "reduction": plan, "initial": start, **arguments_of(modes)}
        last = last_rounding(shape, modes)
        if not with_flags and counting is None:
            return convert(dot(x, y, **options), plan.outer, destination, **last)
        total, *found = dot(x, y, return_flags=with_flags, counts=counts, **options)
        if not with_flags:
            return convert(total, plan.outer, destination, **last), *found
        codes, raised = convert(total, plan.outer, destination, return_flags=True, **last)
        return codes, raised | found[0], *found[1:]
    x, y = (np.broadcast_to(codes, shape + codes.shape[-1:]) for codes in (x, y))
    # The library takes signalling NaNs for quiet ones.
    is_quiet = counting is None or not (operand.is_signalling(x).any() or operand.is_signalling(y).any())
    is_quiet = is_quiet and (counting is None or start is None or not plan.outer.is_signalling(start).any())
    if not with_flags and x.size and is_quiet:
        result = np.empty(shape, code_dtype(destination or plan.outer))
        sink = None if counting is None else CountSink(counting.form, shape, has_rows=False)
        rows, columns = (codes.reshape(-1, codes.shape[-1]) for codes in carried_codes(operand, x, y))
        begin = None if start is None else np.broadcast_to(start, shape).ravel()
        formats = kernels.Formats.of(carrier(operand), plan, destination or plan.outer, rounding=modes)
        if kernels.dot(rows, columns, begin, result.reshape(-1), formats, sink=sink):
            if sink is None:
                return result[()]
            return result[()], sink.counts(*steps_of(plan, x.shape[-1]))
    x, y = np.moveaxis(x, -1, 0), np.moveaxis(y, -1, 0)
    tally = None if counting is None else Tally(shape)
    options = {"operand": operand, "plan": plan, "start": start, "out": destination, "rounding": modes}
    codes, flags = reduce_codes(x, y, shape, with_flags=with_flags, tally=tally, **options)
    answer = (codes, flags) if with_flags else (codes,)
    if counting is not None and tally is not None:
        return (*answer, counts_in_form(tally.counts(), counting.form))
    return answer if with_flags else codes


@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: Literal[False] = ...,
    counted_rows: None = ...,
    **options: Unpack[ReductionOptions],
) -> Codes: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: Literal[True, "rows", "sum"],
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ReductionOptions],
) -> tuple[Codes, Counts]: ...
@overload
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    counts: bool | str,
    counted_rows: int | slice | ArrayLike | None = ...,
    **options: Unpack[ReductionOptions],
) -> Codes | tuple[Codes, Counts]: ...
def matmul(
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
) -> Codes | tuple[Codes, Counts]:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of codes; every element is a `dot`, with its parameters and errors.

    Parameters
    ----------
    counts : bool, "rows" or "sum"
        Also return how often what occurred in the steps (NUMERICS section 11): True for each result, ``"rows"`` for
        each row of `a`, ``"sum"`` for all together. The codes are the same with and without.
    counted_rows : int, slice or array of ints, optional
        Which rows of `a` are counted, the same ones of every matrix of a batch; all unless given. An int n is n rows,
        evenly spread: row i * M // n for i from 0 to n - 1. The others cost what they cost without `counts`.

    Returns
    -------
    codes : unsigned array of shape (..., M, N)
        In `out` or the outer format.
    counts : Counts
        Only if `counts`: int64 arrays of shape (..., M, N) or (..., M), with `counted_rows` in place of M, or ints.
    """
    operand = as_format(operand, "operand")
    x, y = as_codes(a, operand, "a"), as_codes(b, operand, "b")
    shape = matmul_shape(x, y)
    plan = plan_of(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    check_length(x.shape[-1], modes)
    destination = None if out is None else as_format(out, "out")
    start = as_start(initial, plan, shape)
    counting = as_counting(counts, counted_rows, shape[-2])
    if isinstance(plan, Accumulator):
        plan.refuse(counts=counting is not None)
        total = matmul_codes(x, y, shape, operand=operand, rule=allowed(plan, modes), start=start)
        return total if destination is None else convert(total, FP32, destination, **last_rounding(shape, modes))
    if counting is None:
        return multiplied(x, y, start, shape, operand=operand, plan=plan, destination=destination, modes=modes)
    return counted(x, y, start, shape, counting, operand=operand, plan=plan, destination=destination, modes=modes)
