"""Dot products of blocks: exact products, sums in the formats of a reduction, scales applied at every promotion."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from golden.arrays.chain import Chain
from golden.arrays.checks import as_codes, as_flag, as_format, code_dtype, same_shape
from golden.arrays.conversion import convert
from golden.arrays.operands import carrier
from golden.arrays.rounding import PLAIN, Flags, Float64, codes_to_float64, float64_to_codes
from golden.formats import FloatFormat
from golden.kernels import products as kernels
from golden.mx.blocks import Codes, as_blocks, scale_values
from golden.reduction import Reduction

__all__ = ["dot"]


class _Blocks(NamedTuple):
    """Blocks of codes, (..., blocks, elements of a block), their scales, (..., blocks), and the format of the codes."""

    scales: Float64
    codes: Codes
    element: FloatFormat

    def column(self, number: int) -> Float64:
        """Return the values of one element of every block."""
        return codes_to_float64(self.codes[..., number], self.element)

    def in_chunks(self, chunk: int) -> _Blocks:
        """Return the same elements in blocks of a chunk, each with its scale."""
        count, block = self.codes.shape[-2:]
        codes = self.codes.reshape(*self.codes.shape[:-2], count * block // chunk, chunk)
        return _Blocks(np.repeat(self.scales, block // chunk, axis=-1), codes, self.element)


def _as_operand(pair: tuple[ArrayLike, ArrayLike], element: FloatFormat, argument: str) -> _Blocks:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"{argument}: got {pair!r}, must be a tuple of scales and codes, as quantize returns it")
    scales, codes = as_blocks(*pair, element, f"{argument}: ")
    return _Blocks(scale_values(scales), codes, element)


def _as_elements(element: FloatFormat | str | tuple[Any, Any]) -> tuple[FloatFormat, FloatFormat]:
    if not isinstance(element, tuple):
        element = element, element
    if len(element) != 2:
        raise ValueError(f"element: got {len(element)} formats, must be one, or two: those of a and of b")
    return as_format(element[0], "element"), as_format(element[1], "element")


def _as_plan(level: int, reduction: Reduction | None, element: FloatFormat, block: int) -> Reduction:
    if reduction is None:
        return Reduction.for_level(level, element, chunk=max(block, 1))
    if not isinstance(reduction, Reduction):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction or None")
    if not reduction.is_chain and block and (reduction.chunk is None or block % reduction.chunk):
        raise ValueError(f"reduction: got a chunk of {reduction.chunk}, must divide the block of {block}")
    return reduction


def _by_kernels(a: _Blocks, b: _Blocks, inner: FloatFormat) -> Float64 | None:
    """Return the partial sum of every block in the inner format; None if the kernels do not serve it."""
    wide = carrier(a.element) if carrier(a.element).holds(carrier(b.element)) else carrier(b.element)
    if not (wide.holds(a.element) and wide.holds(b.element) and a.codes.size):
        return None
    x, y = (np.asarray(convert(each.codes, each.element, wide)).reshape(-1, each.codes.shape[-1]) for each in (a, b))
    sums = np.empty(a.codes.shape[:-1], code_dtype(inner))
    formats = kernels.Formats(wide, inner, None, inner, inner, is_step=True)
    return codes_to_float64(sums, inner) if kernels.dot(x, y, None, sums.reshape(-1), formats) else None


def _partial_sums(a: _Blocks, b: _Blocks, inner: FloatFormat, chain: Chain) -> Float64:
    """Return the partial sum of every block in the inner format, as values, and note the flags."""
    sums = None if chain.with_flags else _by_kernels(a, b, inner)
    if sums is not None:
        return sums
    inside = Chain(a.codes.shape[:-1], chain.with_flags)
    sums = np.zeros(inside.shape)
    for number in range(a.codes.shape[-1]):
        sums = inside.step(a.column(number), b.column(number), sums, inner, PLAIN)
    chain.flags = chain.flags | np.bitwise_or.reduce(inside.flags, axis=-1)
    return sums


def _reduce(a: _Blocks, b: _Blocks, total: Float64, plan: Reduction, chain: Chain) -> Float64:
    count, block = a.codes.shape[-2:]
    if plan.is_chain:
        for number in range(count):
            for k in range(block):
                x, y = (codes_to_float64(each.codes[..., number, k], each.element) for each in (a, b))
                # Powers of two: exact in float64, as the product is.
                x, y = x * a.scales[..., number], y * b.scales[..., number]
                total = chain.step(x, y, total, plan.outer, PLAIN)
        return total
    if count and block:
        a, b = (each.in_chunks(plan.chunk or block) for each in (a, b))
        sums, scales = _partial_sums(a, b, plan.inner, chain), a.scales * b.scales
        for number in range(sums.shape[-1]):
            total = chain.step(sums[..., number], scales[..., number], total, plan.outer, PLAIN)
    return total


def dot(
    a: tuple[ArrayLike, ArrayLike],
    b: tuple[ArrayLike, ArrayLike],
    *,
    element: FloatFormat | str | tuple[FloatFormat | str, FloatFormat | str],
    level: int = 1,
    reduction: Reduction | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    return_flags: bool = False,
) -> Codes | tuple[Codes, Flags]:
    """Sum the products of two arrays of blocks over the last axis.

    Products are exact. Within a chunk, products of elements are summed in the inner format, one rounding each, in order
    of k, as in `golden.dot`. A partial sum joins the total in one fused step with both scales as its factor,
    ``round_outer(partial * (scale_a * scale_b) + total)``, which a promotion of `golden.dot` does with 1.0. At level 0
    there are no chunks: every step is ``round(a * b * (scale_a * scale_b) + total)`` in float32.

    Parameters
    ----------
    a, b : tuple of scales and codes
        As `quantize` returns them, with blocks of one length; the axes before the last broadcast.
    element : FloatFormat or str, or a tuple of two
        Format of the elements, or those of `a` and of `b`.
    level : int
        Precision optimization level 0, 1 or 2, of which the chunk is the block.
    reduction : Reduction, optional
        In place of `level`. Its chunk divides the block.
    initial : unsigned array or int, optional
        Codes in the outer format from which the total starts, +0 unless given; it broadcasts to the result.
    out : FloatFormat or str, optional
        Converts the result once more; the outer format of the reduction unless given.
    return_flags : bool
        Also return a uint8 array: the OR of the flags of all steps, promotions and the conversion.

    Returns
    -------
    codes : unsigned array
        In `out` or the outer format; shape of the codes without the last axis.
    flags : uint8 array
        Only if `return_flags`.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If shapes or blocks do not fit, a name names no format, or the chunk does not divide the block.

    Examples
    --------
    >>> from golden import mx
    >>> blocks = mx.quantize(64 * [0.3], "float8_e4m3fn")
    >>> hex(dot(blocks, blocks, element="float8_e4m3fn", out="bfloat16"))
    '0x40c8'
    """
    elements = _as_elements(element)
    x, y = _as_operand(a, elements[0], "a"), _as_operand(b, elements[1], "b")
    if x.codes.shape[-2:] != y.codes.shape[-2:]:
        raise ValueError(
            f"a, b: got {x.codes.shape[-2]} blocks of {x.codes.shape[-1]} and {y.codes.shape[-2]} of "
            f"{y.codes.shape[-1]}, must be equal"
        )
    shape = same_shape("a, b", x.codes.shape[:-2], y.codes.shape[:-2])
    plan = _as_plan(level, reduction, elements[0], x.codes.shape[-1])
    destination = None if out is None else as_format(out, "out")
    start = np.zeros((), code_dtype(plan.outer)) if initial is None else as_codes(initial, plan.outer, "initial")
    if same_shape("initial", start.shape, shape) != shape:
        raise ValueError(f"initial: got shape {start.shape}, must broadcast to the result's shape {shape}")
    chain = Chain(shape, as_flag(return_flags, "return_flags"))
    if x.codes.shape[-1] == 0:
        codes = np.broadcast_to(start, shape).copy()
    else:
        chain.note_signalling(plan.outer.is_signalling(start))
        for each in (x, y):
            chain.note_signalling(each.element.is_signalling(each.codes).any(axis=(-1, -2)))
        x, y = (
            each._replace(
                scales=np.broadcast_to(each.scales, (*shape, *each.scales.shape[-1:])),
                codes=np.broadcast_to(each.codes, (*shape, *each.codes.shape[-2:])),
            )
            for each in (x, y)
        )
        with np.errstate(all="ignore"):
            begin = np.broadcast_to(codes_to_float64(start, plan.outer), shape)
            codes = float64_to_codes(_reduce(x, y, begin, plan, chain), plan.outer)
    if destination is not None:
        codes, raised = convert(codes, plan.outer, destination, return_flags=True)
        chain.flags = chain.flags | raised
    return (codes[()], chain.flags[()]) if return_flags else codes[()]
