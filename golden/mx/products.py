"""Dot products of blocks: exact products, sums in the formats of a reduction, scales applied at every promotion."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from golden.arrays.chain import Chain, Marks
from golden.arrays.checks import as_codes, as_flag, as_format, code_dtype, same_shape
from golden.arrays.conversion import convert
from golden.arrays.counting import Tally, as_counting, counts_in_form
from golden.arrays.rounding import PLAIN, Float64, codes_to_float64, float64_to_codes
from golden.counts import Counts
from golden.formats import FloatFormat
from golden.kernels import products as kernels
from golden.mx.blocks import Codes, as_block_format, as_blocks, as_tensor_scale, scale_values
from golden.mx.recipes import BlockFormat
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

    def signalling(self, k: int, number: int | slice = slice(None)) -> Marks:
        """Tell where element k of every block, or of one block, is a signalling NaN."""
        return np.asarray(self.element.is_signalling(self.codes[..., number, k]))

    def in_chunks(self, chunk: int) -> _Blocks:
        """Return the same elements in blocks of a chunk, each with its scale."""
        count, block = self.codes.shape[-2:]
        codes = self.codes.reshape(*self.codes.shape[:-2], count * block // chunk, chunk)
        return _Blocks(np.repeat(self.scales, block // chunk, axis=-1), codes, self.element)


def _as_operand(
    given: tuple[Any, ...], element: FloatFormat, blocks_of: BlockFormat | None, argument: str
) -> tuple[_Blocks, np.float32]:
    """Return the blocks of an operand, and the scale of its tensor: 1 where there is none."""
    if not isinstance(given, tuple) or len(given) not in ((2,) if blocks_of is None else (2, 3)):
        raise TypeError(f"{argument}: got {given!r}, must be a tuple of scales and codes, as quantize returns it")
    scales, codes = as_blocks(given[0], given[1], element, f"{argument}: ", blocks_of)
    of_tensor = as_tensor_scale(given[2], blocks_of, may_be_nan=True) if len(given) == 3 else None
    return _Blocks(scale_values(scales, blocks_of), codes, element), of_tensor or np.float32(1)


def _as_elements(element: Any) -> tuple[FloatFormat, FloatFormat, BlockFormat | None]:
    if not isinstance(element, tuple):
        element = element, element
    if len(element) != 2:
        raise ValueError(f"element: got {len(element)} formats, must be one, or two: for a and for b")
    (first, blocks), (second, others) = (as_block_format(each, "element") for each in element)
    if blocks != others:
        raise ValueError(f"element: got {element[0]} and {element[1]}, must be nvfp4 for both or for none")
    return first, second, blocks


def _as_plan(level: int, reduction: Reduction | None, element: FloatFormat, block: int) -> Reduction:
    if reduction is None:
        return Reduction.for_level(level, element, chunk=max(block, 1))
    if not isinstance(reduction, Reduction):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction or None")
    if reduction != Reduction(reduction.inner, reduction.chunk, reduction.outer):
        raise ValueError(
            f"reduction: got {reduction}, must have inner, chunk and outer alone: blocks have no other parts"
        )
    if not reduction.is_chain and block and (reduction.chunk is None or block % reduction.chunk):
        raise ValueError(f"reduction: got a chunk of {reduction.chunk}, must divide the block of {block}")
    return reduction


def _by_kernels(a: _Blocks, b: _Blocks, inner: FloatFormat) -> Float64 | None:
    """Return the partial sum of every block in the inner format; None if the kernels do not serve it."""
    first, second = kernels.carrier(a.element), kernels.carrier(b.element)
    wide = first if first.holds(second) else second
    if not (wide.holds(a.element) and wide.holds(b.element) and a.codes.size):
        return None
    x, y = (np.asarray(convert(each.codes, each.element, wide)).reshape(-1, each.codes.shape[-1]) for each in (a, b))
    sums = np.empty(a.codes.shape[:-1], code_dtype(inner))
    call = kernels.call_of_chain(wide, inner)
    return codes_to_float64(sums, inner) if kernels.dot(x, y, None, sums.reshape(-1), call) else None


def _partial_sums(a: _Blocks, b: _Blocks, inner: FloatFormat, chain: Chain, inside: Chain) -> Float64:
    """Return the partial sum of every block in the inner format, as values, and note the flags."""
    sums = None if chain.with_flags or chain.tally is not None else _by_kernels(a, b, inner)
    if sums is not None:
        return sums
    sums = np.zeros(inside.shape)
    for number in range(a.codes.shape[-1]):
        marks = a.signalling(number) | b.signalling(number)
        sums = inside.step(a.column(number), b.column(number), sums, inner, PLAIN, signalling=marks)
    chain.flags = chain.flags | np.bitwise_or.reduce(inside.flags, axis=-1)
    return sums


def _reduce(
    a: _Blocks, b: _Blocks, total: Float64, marks: Marks, plan: Reduction, chain: Chain
) -> tuple[Float64, Counts | None]:
    """Return the total, and the counts of all steps if the chain has a tally; `marks` are of the initial value."""
    count, block = a.codes.shape[-2:]
    none = np.zeros_like(marks)
    if plan.is_chain:
        for number, k in itertools.product(range(count), range(block)):
            x, y = (codes_to_float64(each.codes[..., number, k], each.element) for each in (a, b))
            found = a.signalling(k, number) | b.signalling(k, number) | (none if number or k else marks)
            # Powers of two: exact in float64, as the product is.
            x, y = x * a.scales[..., number], y * b.scales[..., number]
            total = chain.step(x, y, total, plan.outer, PLAIN, signalling=found)
        return total, None if chain.tally is None else chain.tally.counts()
    a, b = (each.in_chunks(plan.chunk or block) for each in (a, b))
    shape = a.codes.shape[:-1]
    inside = Chain(shape, chain.with_flags, tally=None if chain.tally is None else Tally(shape))
    sums, scales = _partial_sums(a, b, plan.inner, chain, inside), a.scales * b.scales
    for number in range(shape[-1]):
        found = none if number else marks
        options: dict[str, Any] = {"signalling": found, "is_promotion": True}
        total = chain.step(sums[..., number], scales[..., number], total, plan.outer, PLAIN, **options)
    if chain.tally is None or inside.tally is None:
        return total, None
    # In the counts of the steps within chunks, the last axis is the chunks of a result.
    return total, counts_in_form(inside.tally.counts(), "rows") + chain.tally.counts()


def dot(
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    *,
    element: FloatFormat | BlockFormat | str | tuple[FloatFormat | str, FloatFormat | str],
    level: int = 1,
    reduction: Reduction | None = None,
    initial: ArrayLike | None = None,
    out: FloatFormat | str | None = None,
    return_flags: bool = False,
    counts: bool | str = False,
) -> Codes | tuple[Any, ...]:
    """Sum the products of two arrays of blocks over the last axis.

    Products are exact. Within a chunk, products of elements are summed in the inner format, one rounding each, in order
    of k, as in `golden.dot`. A partial sum joins the total in one fused step with both scales as its factor,
    ``round_outer(partial * (scale_a * scale_b) + total)``, which a promotion of `golden.dot` does with 1.0. At level 0
    there are no chunks: every step is ``round(a * b * (scale_a * scale_b) + total)`` in float32.

    With NVFP4, the total starts from +0, and one more promotion joins it to the initial value,
    ``round_outer(total * alpha + initial)``, where alpha is the product of both scales of the tensors in float32.

    Parameters
    ----------
    a, b : tuple of scales and codes
        As `quantize` returns them, with blocks of one length; the axes before the last broadcast. Of NVFP4, the scale
        of the tensor is a third part, 1 unless given.
    element : FloatFormat, BlockFormat or str, or a tuple of two
        Format of the elements, or those of `a` and of `b`; NVFP4 for both or for none.
    level : int
        Precision optimization level 0, 1 or 2, of which the chunk is the block.
    reduction : Reduction, optional
        In place of `level`: `inner`, `chunk` and `outer` alone. The chunk divides the block.
    initial : unsigned array or int, optional
        Codes in the outer format from which the total starts, +0 unless given; it broadcasts to the result.
    out : FloatFormat or str, optional
        Converts the result once more; the outer format of the reduction unless given.
    return_flags : bool
        Also return a uint8 array: the OR of the flags of all steps, promotions and the conversion.
    counts : bool or "sum"
        Also return what occurred in the steps: for each result, or in total. By NumPy, hence slower.

    Returns
    -------
    codes : unsigned array
        In `out` or the outer format; shape of the codes without the last axis.
    flags : uint8 array
        Only if `return_flags`.
    counts : Counts
        Only if `counts`: int64 arrays of the result's shape, or ints. A partial sum times both scales is the addend of
        its promotion.

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
    *elements, blocks_of = _as_elements(element)
    x, of_x = _as_operand(a, elements[0], blocks_of, "a")
    y, of_y = _as_operand(b, elements[1], blocks_of, "b")
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
    counting = as_counting(counts)
    if counting is not None and blocks_of is not None:
        raise ValueError(f"counts: got {counts!r}, must be False for {blocks_of}: its steps are not counted")
    chain = Chain(shape, as_flag(return_flags, "return_flags"), tally=None if counting is None else Tally(shape))
    found = None if chain.tally is None else chain.tally.counts()
    if 0 in x.codes.shape[-2:]:
        codes = np.broadcast_to(start, shape).copy()
    else:
        x, y = (
            each._replace(
                scales=np.broadcast_to(each.scales, (*shape, *each.scales.shape[-1:])),
                codes=np.broadcast_to(each.codes, (*shape, *each.codes.shape[-2:])),
            )
            for each in (x, y)
        )
        marks = np.broadcast_to(np.asarray(plan.outer.is_signalling(start)), shape)
        with np.errstate(all="ignore"):
            begin = np.broadcast_to(codes_to_float64(start, plan.outer), shape)
            if blocks_of is None:
                total, found = _reduce(x, y, begin, marks, plan, chain)
            else:
                nothing = np.zeros(shape, bool)
                total, _ = _reduce(x, y, np.zeros(shape), nothing, plan, chain)
                alpha = np.broadcast_to(np.float64(of_x * of_y), shape)
                total = chain.step(total, alpha, begin, plan.outer, PLAIN, signalling=marks, is_promotion=True)
            codes = float64_to_codes(total, plan.outer)
    if destination is not None:
        codes, raised = convert(codes, plan.outer, destination, return_flags=True)
        chain.flags = chain.flags | raised
    answer: tuple[Any, ...] = (codes[()], chain.flags[()]) if return_flags else (codes[()],)
    if counting is not None and found is not None:
        answer = (*answer, counts_in_form(found, counting.form))
    return answer if len(answer) > 1 else answer[0]
