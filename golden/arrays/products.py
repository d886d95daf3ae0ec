"""Reductions of code arrays and of values (NUMERICS section 5)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.accumulator import Accumulator
from golden.arrays.accumulators import dot_codes, matmul_codes, multiply, totals_of
from golden.arrays.chain import last_rounding, reduce_codes
from golden.arrays.checks import as_codes, as_flag, as_format, as_values, code_dtype, same_shape
from golden.arrays.conversion import convert, decode, encode, quantize
from golden.arrays.operands import carried_codes, carried_indexed, carried_values, carrier
from golden.arrays.rounding import Flags
from golden.formats import FP32, FloatFormat
from golden.kernels import products as kernels
from golden.philox import MOST_STEPS
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, ReductionRounding, Rounding

__all__ = ["dot", "indexed_values", "matmul", "matmul_values"]

Codes = NDArray[Any]


_plan_for_level = lru_cache(maxsize=256)(Reduction.for_level)


def _plan(
    operand: FloatFormat, level: int, chunk: int | None, reduction: Reduction | Accumulator | None
) -> Reduction | Accumulator:
    if reduction is None:
        plain = type(level) is int and (chunk is None or type(chunk) is int)  # what the cache tells apart
        return (_plan_for_level if plain else Reduction.for_level)(level, operand, chunk=chunk)
    if isinstance(reduction, Accumulator):
        reduction.check_operand(operand)
    elif not isinstance(reduction, Reduction):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction, one of golden.accumulators, or None")
    return reduction


def _arguments(modes: ReductionRounding, *, with_last: bool = False) -> dict[str, Any]:
    """Return the modes as arguments, the last conversion to nearest even unless `with_last`."""
    last = {"out_rounding": modes.out_rounding} if with_last else {}
    seeds = {"seed": modes.seed, "call": modes.call, "random_bits": modes.random_bits}
    return {"rounding": modes.rounding, **last, **seeds}


def _check_length(length: int, rounding: ReductionRounding) -> None:
    if length > MOST_STEPS and rounding.is_random:
        raise ValueError(f"a, b: got {length} products a result, must be at most {MOST_STEPS} to round stochastically")


def _check_initial(start: NDArray[Any], shape: tuple[int, ...]) -> None:
    if start.shape != shape and same_shape("initial", start.shape, shape) != shape:
        raise ValueError(f"initial: got shape {start.shape}, must broadcast to the result's shape {shape}")


def _as_start(initial: ArrayLike | None, plan: Reduction | Accumulator, shape: tuple[int, ...]) -> Codes | None:
    if initial is None:
        return None
    start = as_codes(initial, plan.outer, "initial")
    _check_initial(start, shape)
    return start


def _matmul_shape(x: NDArray[Any], y: NDArray[Any]) -> tuple[int, ...]:
    for argument, given in (("a", x), ("b", y)):
        if given.ndim < 2:
            raise ValueError(f"{argument}: got shape {given.shape}, must have at least two axes")
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a, b: got shapes {x.shape} and {y.shape}, must be (..., M, K) and (..., K, N)")
    return (*same_shape("a, b", x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])


def _allowed(rule: Accumulator, modes: ReductionRounding) -> Accumulator:
    rule.refuse(nearest_even=modes.rounding is Rounding.NEAREST_EVEN)
    return rule


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
) -> Codes | tuple[Codes, Flags]:
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

    Returns
    -------
    codes : unsigned array
        In `out` or the outer format; shape of the operands without the last axis.
    flags : uint8 array
        Only if `return_flags`.

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
    plan = _plan(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    _check_length(x.shape[-1], modes)
    destination = None if out is None else as_format(out, "out")
    start = _as_start(initial, plan, shape)
    if isinstance(plan, Accumulator):
        plan.refuse(return_flags=as_flag(return_flags, "return_flags"))
        total = dot_codes(x, y, shape, operand=operand, rule=_allowed(plan, modes), start=start)
        return total[()] if destination is None else convert(total, FP32, destination, **last_rounding(shape, modes))
    if destination is not None and not destination.has_inf:  # which the kernels have not
        options = {"operand": operand, "reduction": plan, "initial": start, **_arguments(modes)}
        last = last_rounding(shape, modes)
        if not as_flag(return_flags, "return_flags"):
            return convert(dot(x, y, **options), plan.outer, destination, **last)
        total, raised = dot(x, y, return_flags=True, **options)
        codes, more = convert(total, plan.outer, destination, return_flags=True, **last)
        return codes, raised | more
    x, y = (np.broadcast_to(codes, shape + codes.shape[-1:]) for codes in (x, y))
    if not as_flag(return_flags, "return_flags") and x.size:
        result = np.empty(shape, code_dtype(destination or plan.outer))
        rows, columns = (codes.reshape(-1, codes.shape[-1]) for codes in carried_codes(operand, x, y))
        begin = None if start is None else np.broadcast_to(start, shape).ravel()
        formats = kernels.Formats.of(carrier(operand), plan, destination or plan.outer, rounding=modes)
        if kernels.dot(rows, columns, begin, result.reshape(-1), formats):
            return result[()]
    x, y = np.moveaxis(x, -1, 0), np.moveaxis(y, -1, 0)
    codes, flags = reduce_codes(
        x, y, shape, operand=operand, plan=plan, start=start, out=destination, with_flags=return_flags, rounding=modes
    )
    return (codes, flags) if return_flags else codes


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
) -> Codes:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of codes; every element is a `dot`, with its parameters and errors.

    Returns
    -------
    unsigned array of shape (..., M, N)
        Codes in `out` or the outer format.
    """
    operand = as_format(operand, "operand")
    x, y = as_codes(a, operand, "a"), as_codes(b, operand, "b")
    shape = _matmul_shape(x, y)
    plan = _plan(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    _check_length(x.shape[-1], modes)
    destination = None if out is None else as_format(out, "out")
    start = _as_start(initial, plan, shape)
    if isinstance(plan, Accumulator):
        total = matmul_codes(x, y, shape, operand=operand, rule=_allowed(plan, modes), start=start)
        return total if destination is None else convert(total, FP32, destination, **last_rounding(shape, modes))
    if destination is not None and not destination.has_inf:  # which the kernels have not
        total = matmul(x, y, operand=operand, reduction=plan, initial=start, **_arguments(modes))
        return convert(total, plan.outer, destination, **last_rounding(shape, modes))
    if x.shape[-1]:
        result = np.empty(shape, code_dtype(destination or plan.outer))
        formats = kernels.Formats.of(carrier(operand), plan, destination or plan.outer, rounding=modes)
        if kernels.matmul(*carried_codes(operand, x, y), start, result, formats):
            return result
    batch = shape[:-2]
    x = np.moveaxis(np.broadcast_to(x, batch + x.shape[-2:]), -1, 0)[..., :, np.newaxis]
    y = np.moveaxis(np.broadcast_to(y, batch + y.shape[-2:]), -2, 0)[..., np.newaxis, :]
    return reduce_codes(
        x, y, shape, operand=operand, plan=plan, start=start, out=destination, with_flags=False, rounding=modes
    )[0]


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
) -> NDArray[np.float32]:
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

    Returns
    -------
    float32 array of shape (..., M, N)
        Values of `out` or the outer format; the canonical NaN for every NaN.

    Raises
    ------
    TypeError
        If values are not float32 (or float16), or another argument has the wrong type.
    ValueError
        If shapes do not fit, or another argument is out of range or names nothing.
    """
    operand = as_format(operand, "operand")
    x, y = as_values(a, "a"), as_values(b, "b")
    shape = _matmul_shape(x, y)
    plan = _plan(operand, level, chunk, reduction)
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    _check_length(x.shape[-1], modes)
    destination = plan.outer if out is None else as_format(out, "out")
    start = None if initial is None else as_values(initial, "initial")
    if start is not None:
        _check_initial(start, shape)
    if isinstance(plan, Accumulator):
        begin = totals_of(start, shape)
        if multiply(quantize(x, operand), quantize(y, operand), begin, operand, _allowed(plan, modes)):
            return quantize(begin.view(np.float32), destination, **last_rounding(shape, modes))
    elif not destination.has_inf:  # which the kernels have not
        result = matmul_values(x, y, operand=operand, reduction=plan, initial=start, **_arguments(modes))
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
        **_arguments(modes, with_last=True),
    )
    return decode(codes, destination)


def indexed_values(
    a: kernels.Indexed,
    b: kernels.Indexed,
    *,
    operand: FloatFormat,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
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
    plan, destination = reduction or _plan_for_level(level, operand, chunk=chunk), out or operand
    modes = ReductionRounding.of(rounding, out_rounding, seed, call, random_bits)
    _check_length(len(a.columns), modes)
    if len(a.columns) and np.prod(shape):
        result = np.empty(shape, np.float32)
        formats = kernels.Formats.of(carrier(operand), plan, destination, as_values=True, rounding=modes)
        if destination.has_inf and kernels.matmul_indexed(*carried_indexed(operand, a, b), initial, result, formats):
            return result
    options: dict[str, Any] = {"operand": operand, "reduction": plan, "initial": initial, "out": destination}
    return matmul_values(a.matrices(), b.matrices(), **options, **_arguments(modes, with_last=True))
