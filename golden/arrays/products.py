"""Fused steps and reductions on code arrays (NUMERICS sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from golden.arrays.checks import as_codes, as_float64, as_format, same_shape
from golden.arrays.conversion import convert, decode, encode
from golden.arrays.rounding import Flags, Float64, codes_to_float64, float64_to_codes, is_signalling
from golden.arrays.steps import fused_step, step_flags
from golden.flags import Flag
from golden.formats import FloatFormat
from golden.reduction import DEFAULT_CHUNK, Reduction

__all__ = ["dot", "matmul", "matmul_values", "multiply_accumulate"]

Codes = NDArray[Any]


def multiply_accumulate(
    a: ArrayLike,
    b: ArrayLike,
    acc: ArrayLike,
    *,
    operand: FloatFormat | str,
    accumulator: FloatFormat | str,
    return_flags: bool = False,
) -> Codes | tuple[Codes, Flags]:
    """One fused step ``round(a * b + acc)``, one rounding, elementwise.

    Parameters
    ----------
    a, b : unsigned arrays or Python ints
        Codes in `operand`; the three arguments broadcast.
    acc : unsigned array or Python int
        Codes in `accumulator`, which is also the format of the result.
    operand, accumulator : FloatFormat or str
    return_flags : bool
        Also return a uint8 array of `Flag` bits.

    Raises
    ------
    TypeError
        If an argument is not unsigned codes.
    ValueError
        If a code is wider than its format, the shapes do not broadcast, or a name names no format.
    """
    operand, accumulator = as_format(operand, "operand"), as_format(accumulator, "accumulator")
    given = as_codes(a, operand, "a"), as_codes(b, operand, "b"), as_codes(acc, accumulator, "acc")
    shape = same_shape("a, b, acc", *(codes.shape for codes in given))
    chain = _Chain(shape, return_flags)
    with np.errstate(all="ignore"):
        x, y = codes_to_float64(given[0], operand), codes_to_float64(given[1], operand)
        result = chain.step(x, y, codes_to_float64(given[2], accumulator), accumulator)
    for codes, fmt in zip(given, (operand, operand, accumulator), strict=True):
        chain.note_signalling(is_signalling(codes, fmt))
    codes = float64_to_codes(np.broadcast_to(result, shape), accumulator)[()]
    return (codes, chain.flags[()]) if return_flags else codes


@dataclass
class _Chain:
    """Steps that belong to one result each; it gathers their flags when asked to."""

    shape: tuple[int, ...]
    with_flags: bool
    flags: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.flags = np.zeros(self.shape, np.uint8)

    def step(self, a: Float64, b: Float64, acc: Float64, accumulator: FloatFormat) -> Float64:
        rounded, exact = fused_step(a, b, acc, accumulator)
        if self.with_flags:
            self.flags = self.flags | step_flags(a, b, acc, exact, rounded, accumulator)
        return rounded

    def note_signalling(self, signalling: NDArray[np.bool_] | np.bool_) -> None:
        self.flags = self.flags | signalling.astype(np.uint8) * np.uint8(Flag.INVALID)

    def reduce(
        self, length: int, pair: Callable[[int], tuple[Float64, Float64]], plan: Reduction, initial: Float64
    ) -> Float64:
        """Run the reduction of `length` pairs ``a[k], b[k]``; k is never re-ordered (NUMERICS section 5)."""
        total = np.broadcast_to(initial, self.shape)
        if plan.is_chain:
            for k in range(length):
                total = self.step(*pair(k), total, plan.outer)
            return total
        one = np.ones(self.shape)
        chunk = plan.chunk or max(length, 1)
        for start in range(0, length, chunk):
            partial = np.zeros(self.shape)
            for k in range(start, min(start + chunk, length)):
                partial = self.step(*pair(k), partial, plan.inner)
            total = self.step(partial, one, total, plan.outer)
        return total


def _plan(operand: FloatFormat, level: int, chunk: int | None, reduction: Reduction | None) -> Reduction:
    if reduction is None:
        return Reduction.for_level(level, operand, chunk=chunk)
    if not isinstance(reduction, Reduction):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction or None")
    return reduction


def _reduce(
    a: Codes,
    b: Codes,
    shape: tuple[int, ...],
    *,
    operand: FloatFormat,
    plan: Reduction,
    initial: ArrayLike | None,
    out: FloatFormat | str | None,
    with_flags: bool,
) -> tuple[Codes, Flags]:
    """Reduce over axis 0 of `a` and `b`, whose other axes broadcast to `shape`."""
    destination = plan.outer if out is None else as_format(out, "out")
    start = as_codes(0 if initial is None else initial, plan.outer, "initial")
    if same_shape("initial", start.shape, shape) != shape:
        raise ValueError(f"initial: got shape {start.shape}, must broadcast to the result's shape {shape}")
    chain = _Chain(shape, with_flags)
    length = a.shape[0]
    if with_flags and length:
        chain.note_signalling(is_signalling(start, plan.outer))
        chain.note_signalling(is_signalling(a, operand).any(axis=0))
        chain.note_signalling(is_signalling(b, operand).any(axis=0))
    if length == 0:
        codes = np.broadcast_to(start, shape).copy()
    else:
        with np.errstate(all="ignore"):
            x, y = codes_to_float64(a, operand), codes_to_float64(b, operand)
            total = chain.reduce(length, lambda k: (x[k], y[k]), plan, codes_to_float64(start, plan.outer))
            codes = float64_to_codes(total, plan.outer)
    # Also into the outer format itself: the initial value that an empty reduction gives may be any NaN.
    if out is not None:
        codes, raised = convert(codes, plan.outer, destination, return_flags=True)
        chain.flags = chain.flags | raised
    return codes[()], chain.flags[()]


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    return_flags: bool = False,
) -> Codes | tuple[Codes, Flags]:
    """Sum ``a[..., k] * b[..., k]`` over the last axis, in the order and formats of a precision level.

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
    reduction : Reduction, optional
        In place of `level` and `chunk`.
    initial : unsigned array or int, optional
        Codes in the outer format from which the total starts, +0 unless given; it broadcasts to the result.
    out : FloatFormat or str, optional
        Converts the result once more; the outer format of the reduction unless given.
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
        If codes are not unsigned, or `level`, `chunk` or `reduction` has the wrong type.
    ValueError
        If shapes do not fit, a code is wider than its format, `level` is not 0, 1 or 2, or `chunk` is below 1.
    """
    operand = as_format(operand, "operand")
    x, y = as_codes(a, operand, "a"), as_codes(b, operand, "b")
    for argument, codes in (("a", x), ("b", y)):
        if codes.ndim == 0:
            raise ValueError(f"{argument}: got a scalar, must have at least one axis to reduce")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"a, b: got {x.shape[-1]} and {y.shape[-1]} products on the last axis, must be equal")
    shape = same_shape("a, b", x.shape[:-1], y.shape[:-1])
    x, y = (np.moveaxis(np.broadcast_to(codes, shape + codes.shape[-1:]), -1, 0) for codes in (x, y))
    plan = _plan(operand, level, chunk, reduction)
    codes, flags = _reduce(x, y, shape, operand=operand, plan=plan, initial=initial, out=out, with_flags=return_flags)
    return (codes, flags) if return_flags else codes


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
) -> Codes:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of codes; every element is a `dot`, with its parameters and errors.

    Returns
    -------
    unsigned array of shape (..., M, N)
        Codes in `out` or the outer format.
    """
    operand = as_format(operand, "operand")
    x, y = as_codes(a, operand, "a"), as_codes(b, operand, "b")
    for argument, codes in (("a", x), ("b", y)):
        if codes.ndim < 2:
            raise ValueError(f"{argument}: got shape {codes.shape}, must have at least two axes")
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(f"a, b: got shapes {x.shape} and {y.shape}, must be (..., M, K) and (..., K, N)")
    batch = same_shape("a, b", x.shape[:-2], y.shape[:-2])
    shape = (*batch, x.shape[-2], y.shape[-1])
    x = np.moveaxis(np.broadcast_to(x, batch + x.shape[-2:]), -1, 0)[..., :, np.newaxis]
    y = np.moveaxis(np.broadcast_to(y, batch + y.shape[-2:]), -2, 0)[..., np.newaxis, :]
    plan = _plan(operand, level, chunk, reduction)
    return _reduce(x, y, shape, operand=operand, plan=plan, initial=initial, out=out, with_flags=False)[0]


def matmul_values(
    a: ArrayLike,
    b: ArrayLike,
    *,
    operand: FloatFormat | str,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
) -> NDArray[np.float32]:
    """Matrix product ``(..., M, K) @ (..., K, N)`` of values: `matmul` with its operands encoded, its result decoded.

    Parameters
    ----------
    a, b : float16, float32 or float64 arrays
        Values, each rounded once to `operand`; the axes before the last two broadcast.
    initial : float array, optional
        Values from which the totals start, each rounded once to the outer format; it broadcasts to the result.
    operand, level, chunk, reduction, out
        As for `dot`.

    Returns
    -------
    float32 array of shape (..., M, N)
        Values of `out` or of the outer format.

    Raises
    ------
    TypeError
        If `a`, `b` or `initial` are not floating point; and as for `dot`.
    ValueError
        As for `dot`.
    """
    operand = as_format(operand, "operand")
    plan = _plan(operand, level, chunk, reduction)
    x, y = (encode(as_float64(values, name), operand) for name, values in (("a", a), ("b", b)))
    start = None if initial is None else encode(as_float64(initial, "initial"), plan.outer)
    codes = matmul(x, y, operand=operand, reduction=plan, initial=start, out=out)
    return decode(codes, plan.outer if out is None else out)
