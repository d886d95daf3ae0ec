"""How a matrix product runs on a card: in which tiles, in which memory, and the arguments of its kernels.

Nothing here touches a card or needs PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from golden.cuda.axes import Axes, merged, packed
from golden.cuda.scales import Scales, Steps, bound_fields, choose, first_beyond
from golden.cuda.structures import STAGE, Packing, Product, SourceFields, target
from golden.formats import FP32, FloatFormat
from golden.kernels.products import carrier
from golden.reduction import Reduction
from golden.rounding import Randomness, Rounding

__all__ = [
    "BFLOAT16",
    "COMMON",
    "FLOAT16",
    "FLOAT32",
    "THREADS",
    "Arrays",
    "Launch",
    "Matrix",
    "Panels",
    "Part",
    "ProductPlan",
    "choose_tile",
    "plan_product",
    "source_fields",
]

#: How elements lie in memory: the numbers of `Memory` in product.h.
FLOAT32, FLOAT16, BFLOAT16 = 0, 1, 2

#: Threads of a block, in every kernel.
THREADS = 256

_ALIGNMENT = 256  # bytes, of each part of the workspace
_MOST_BLOCKS = 2**31 - 1  # of a launch
_MOST_PRODUCTS = 2**31 - 2 * STAGE  # of a result: they are counted in 32 bits
_PACKED_AT_ONCE = 2 * STAGE  # products that a block of `pack` brings into a panel
# Cost of a step in a tile relative to one in the largest tile: smaller ones read more from shared memory.
_TILES = {128: 1.0, 64: 1.15, 32: 2.0}
_LARGEST_HEAVY_TILE = 64  # of steps in doubles or with random bits, which need more registers for a sum


#: The kernels that are the same in all variants: `pack`, `round_values`, `round_blocks`, `softmax16`.
COMMON = None


class Matrix(NamedTuple):
    """Where a batch of matrices lies; strides count elements and may be 0 or negative.

    Parameters
    ----------
    address : int
        Of the first element.
    memory : int
        `FLOAT32`, `FLOAT16` or `BFLOAT16`.
    row_stride, column_stride : int
    axes : tuple of int
        A stride for each axis of the batch, 0 where it is broadcast.
    rows, columns : int
        Addresses of int64 tables on the same device that take the place of ``i * row_stride`` or of
        ``j * column_stride``; 0 where there is none.
    """

    address: int
    memory: int
    row_stride: int
    column_stride: int
    axes: tuple[int, ...] = ()
    rows: int = 0
    columns: int = 0

    def transposed(self) -> Matrix:
        """Return the same with rows and columns exchanged."""
        return self._replace(
            row_stride=self.column_stride, column_stride=self.row_stride, rows=self.columns, columns=self.rows
        )


class Arrays(NamedTuple):
    """The arrays of products of (M, K) by (K, N) matrices, on a card.

    Parameters
    ----------
    batch : tuple of int
        Lengths of the axes of the batch.
    shape : tuple of int
        M, K, N; each may be 0. With K = 0 the results are the initial values.
    a, b, result, initial : Matrix
        With as many axes as `batch`; `result` has no tables. Without `initial`, totals start from +0.
    """

    batch: tuple[int, ...]
    shape: tuple[int, int, int]
    a: Matrix
    b: Matrix
    result: Matrix
    initial: Matrix | None = None


class Launch(NamedTuple):
    """One launch: a kernel of a variant, how many blocks (along x alone), and its argument, a structure by value."""

    variant: Steps | None
    kernel: str
    blocks: int
    arguments: bytes


def _groups(count: int, size: int) -> int:
    return -(-count // size)


def choose_tile(batches: int, m: int, n: int, steps: Steps, processors: int) -> int:
    """Return the tile's side for which the busiest processor of the card has the least to do."""
    heavy = steps.mode in (Rounding.STOCHASTIC, Rounding.NEAREST_AWAY) or steps.chain == "generic"

    def cost(side: int) -> float:
        tiles = batches * _groups(m, side) * _groups(n, side)
        return _groups(tiles, processors) * side * side * _TILES[side]

    return min((side for side in _TILES if not heavy or side <= _LARGEST_HEAVY_TILE), key=cost)


class Part(NamedTuple):
    """A part of the workspace, in bytes."""

    begin: int
    size: int


@dataclass(frozen=True)
class Panels:
    """The packed form of an operand: its source, turned so that its rows are the lanes."""

    source: Matrix
    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    lanes: int
    exponent: int
    panels: Part
    largest: Part


@dataclass(frozen=True)
class ProductPlan:
    """A product that is ready to run, but for the address of its workspace."""

    reduction: Reduction
    scales: Scales
    tile: int
    axes: Axes
    m: int
    n: int
    k: int
    a: Panels
    b: Panels
    initial: Matrix | None
    initial_format: FloatFormat
    result: Matrix
    first_index: int
    #: Bytes of memory on the card, aligned to 256, that the launches need. It needs no initial contents.
    workspace_bytes: int

    @property
    def halves(self) -> bool:
        """Whether panels hold codes of two bytes."""
        return self.scales.steps.chain in ("float16", "bfloat16")

    @property
    def depth(self) -> int:
        """Products of a panel, whole stages."""
        return _groups(self.k, STAGE) * STAGE

    def launches(self, workspace: int) -> Iterator[Launch]:
        """Yield the launches, one after the other on one stream, none if there are no results."""
        if not (self.axes.count and self.m and self.n):
            return
        if self.k:
            for panels in (self.a, self.b):
                matrices = math.prod(panels.lengths)
                blocks = matrices * _groups(panels.lanes, self.tile) * _groups(self.depth, _PACKED_AT_ONCE)
                yield Launch(COMMON, "pack", blocks, bytes(self._packing(panels, workspace)))
        product = self._product(workspace)
        yield Launch(self.scales.steps, f"multiply_{self.tile}", self.blocks, bytes(product))

    @property
    def blocks(self) -> int:
        """Tiles of all results."""
        return self.axes.count * _groups(self.m, self.tile) * _groups(self.n, self.tile)

    def _packing(self, panels: Panels, workspace: int) -> Packing:
        return Packing(
            source=source_fields(panels.source),
            lengths=self.axes.padded(panels.lengths, 1),
            lanes=panels.lanes,
            k=self.k,
            width=self.tile,
            depth=self.depth,
            panels=workspace + panels.panels.begin,
            largest=workspace + panels.largest.begin if panels.largest.size else None,
            target=target(carrier(self.reduction.factors), panels.exponent),
            halves=self.halves,
        )

    def _product(self, workspace: int) -> Product:
        formats, scales, random = self.reduction, self.scales, self.reduction.random or Randomness()
        inner, outer = target(formats.inner, scales.inner), target(formats.outer, scales.total)
        if self.halves:
            inner = target(formats.inner)
        safe, factor, smallest, growth = bound_fields(formats.inner, scales.inner, formats.rounding)
        generic = scales.steps.chain == "generic"
        chunk = self.k if formats.chunk is None else min(formats.chunk, self.k)
        bounded = bool(self.a.largest.size)
        padded = self.axes.padded
        return Product(
            lengths=padded(self.axes.lengths, 1),
            m=self.m, n=self.n, k=self.k, depth=self.depth, chunk=max(1, chunk),
            row_tiles=_groups(self.m, self.tile),
            column_tiles=_groups(self.n, self.tile),
            a=workspace + self.a.panels.begin,
            b=workspace + self.b.panels.begin,
            largest_a=workspace + self.a.largest.begin if bounded else None,
            largest_b=workspace + self.b.largest.begin if bounded else None,
            a_axes=padded(self.a.steps, 0),
            b_axes=padded(self.b.steps, 0),
            initial=SourceFields() if self.initial is None else source_fields(self.initial),
            result=self.result.address,
            result_row=self.result.row_stride,
            result_column=self.result.column_stride,
            result_axes=padded(self.result.axes, 0),
            result_memory=self.result.memory,
            initial_target=target(self.initial_format),
            inner=inner,
            outer=outer,
            destination=target(formats.result),
            inner_limit=math.inf if generic else first_beyond(formats.inner, scales.inner),
            outer_limit=math.inf if generic else first_beyond(formats.outer, scales.total),
            join_factor=math.ldexp(1.0, scales.total - scales.inner),
            safe=safe, product_factor=factor, smallest=smallest, growth=growth,
            mode=formats.rounding.value,
            last_mode=formats.out_rounding.value,
            key=(random.seed & 0xFFFFFFFF, random.seed >> 32),
            call=random.call,
            random_bits=random.random_bits,
            first_index=self.first_index & 0xFFFFFFFF,
            batch_index=self.m * self.n & 0xFFFFFFFF,
            row_index=self.n & 0xFFFFFFFF,
        )  # fmt: skip


def source_fields(matrix: Matrix) -> SourceFields:
    """Return where a batch of matrices lies as the kernels have it."""
    axes = Axes.padded(matrix.axes, 0)
    return SourceFields(
        matrix.address, matrix.rows or None, matrix.columns or None, matrix.row_stride, matrix.column_stride, axes,
        matrix.memory,
    )  # fmt: skip


def _aligned(size: int) -> int:
    return _groups(size, _ALIGNMENT) * _ALIGNMENT


def _with_rows_merged(arrays: Arrays) -> Arrays:
    """Make rows of the last axes of the batch where one matrix `b` serves all of them."""
    batch, (m, k, n), a, b, result, initial = arrays
    stacked = [each for each in (a, initial, result) if each is not None]
    while batch:
        length = batch[-1]
        fits = all(not each.rows and (m == 1 or each.axes[-1] == m * each.row_stride) for each in stacked)
        if length != 1 and (b.axes[-1] != 0 or not fits):
            break
        if m == 1:
            a, result = (each._replace(row_stride=each.axes[-1]) for each in (a, result))
            initial = None if initial is None else initial._replace(row_stride=initial.axes[-1])
        batch, m = batch[:-1], m * length
        a, b, result = (each._replace(axes=each.axes[:-1]) for each in (a, b, result))
        initial = None if initial is None else initial._replace(axes=initial.axes[:-1])
        stacked = [each for each in (a, initial, result) if each is not None]
    return Arrays(batch, (m, k, n), a, b, result, initial)


def plan_product(
    reduction: Reduction,
    arrays: Arrays,
    *,
    initial_format: FloatFormat | None = None,
    processors: int = 132,
    native: tuple[bool, bool] = (True, True),
    first_index: int = 0,
    tile: int | None = None,
) -> ProductPlan:
    """Plan products of (M, K) by (K, N) matrices.

    Parameters
    ----------
    reduction : Reduction
        The format of the results must have infinities. Values of narrow operands are rounded to their format already.
    arrays : Arrays
    initial_format : FloatFormat, optional
        Initial values are rounded to it first, if given, and then to the outer format.
    processors : int
        Multiprocessors of the card.
    native : tuple of bool
        Whether float16 and bfloat16 may run in the card's own fused steps (from sm_53 and sm_80 on).
    first_index : int
        Output index of the first result, where something is rounded stochastically (NUMERICS section 10). The others
        are numbered from there in row-major order over batch, M and N.
    tile : int, optional
        128, 64 or 32: the side of a tile instead of the one that suits the sizes.

    Raises
    ------
    ValueError
        If the strides along the batch need more axes than the kernels know, there are more products or more tiles than
        they count, or subnormals are to be flushed.
    """
    if reduction.flushes:
        raise ValueError("subnormals: got 'flush', must be 'keep' for the kernels of cards")
    lengths, (m, k, n), a, b, result, initial = _with_rows_merged(arrays)
    given = [a, b, result] if initial is None else [a, b, result, initial]
    axes, strides = merged(lengths, [each.axes for each in given])
    a, b, result, *rest = (each._replace(axes=along) for each, along in zip(given, strides, strict=True))
    scales = choose(reduction, *native)
    side = tile or choose_tile(axes.count, m, n, scales.steps, processors)
    depth, end = _groups(k, STAGE) * STAGE, 0

    def part(size: int) -> Part:
        nonlocal end
        begin, end = end, end + _aligned(size)
        return Part(begin, size)

    # A step that cannot overflow without notice, or has no other form, asks for no bounds.
    bounded = scales.steps.chain == "scaled"
    element = 2 if scales.steps.chain in ("float16", "bfloat16") else 4

    def panels(matrix: Matrix, lanes: int, exponent: int) -> Panels:
        different, steps = packed(axes, matrix.axes)
        count = math.prod(different) * _groups(lanes, side)
        whole = part(count * depth * side * element)
        largest = part(count * depth // STAGE * 4 if bounded else 0)
        return Panels(matrix, different, steps, lanes, exponent, whole, largest)

    first, second = panels(a, m, scales.a), panels(b.transposed(), n, scales.b)
    plan = ProductPlan(
        reduction, scales, side, axes, m, n, k, first, second, rest[0] if rest else None, initial_format or FP32,
        result, first_index, end,
    )  # fmt: skip
    if k > _MOST_PRODUCTS:
        raise ValueError(f"shape: got {k} products for each result, must be at most {_MOST_PRODUCTS} on a card")
    if plan.blocks > _MOST_BLOCKS:
        raise ValueError(
            f"batch: got {arrays.batch} products of {m} by {n} results, which are {plan.blocks} tiles, at most "
            f"{_MOST_BLOCKS} fit a launch; split the batch, with first_index"
        )
    return plan
