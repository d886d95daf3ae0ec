"""The part of a product that is counted, as `samples` has it, of tensors on a CUDA device: nothing here waits for it.

Rows are chosen by tensors of the device, so that it may choose one itself: the first whose results are not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from golden.torch.instruments.observe.samples import (
    MOST_MATRICES,
    Shape,
    shape_of_convolution,
    shape_of_kernels,
    shape_of_matrices,
    shape_of_transposed,
)
from golden.torch.products.gpu.convolutions import Windows, padded
from golden.torch.products.windows import Geometry

__all__ = [
    "CardPiece",
    "CardProduct",
    "Rows",
    "chosen_rows",
    "first_row",
    "of_convolution",
    "of_kernels",
    "of_matrices",
    "of_transposed",
]


class Rows(NamedTuple):
    """Rows of one matrix of a product: its number, a tensor of one element, and theirs within it; int64."""

    matrix: Tensor
    within: Tensor


class CardPiece(NamedTuple):
    """Rows of a result: ``initial + left @ right``, with the shapes (m, N), (m, K) and (K, N)."""

    left: Tensor
    right: Tensor
    initial: Tensor | None


class CardProduct(NamedTuple):
    """A product.

    Parameters
    ----------
    operands : tuple of Tensor
        The left one and the right one.
    shape : Shape
    piece : callable
        Gives the piece with some rows.
    bad_rows : callable, optional
        Tells of a result which of its rows are not finite, in order.
    """

    operands: tuple[Tensor, Tensor]
    shape: Shape
    piece: Callable[[Rows], CardPiece]
    bad_rows: Callable[[Tensor], Tensor] | None


def chosen_rows(shape: Shape, count: int, step: int, device: torch.device) -> list[Rows]:
    """Return the rows of `samples.chosen_rows`."""
    matrices = min(shape.matrices, MOST_MATRICES)
    of_each = min(shape.rows, max(1, count // matrices)) if matrices else 0
    within = _spread(shape.rows, of_each, step, device)
    return [Rows(matrix, within) for matrix in _spread(shape.matrices, matrices, step, device).split(1) if of_each]


def _spread(total: int, count: int, step: int, device: torch.device) -> Tensor:
    numbers = torch.arange(count, dtype=torch.int64, device=device)
    return ((numbers * total).div(max(1, count), rounding_mode="floor") + step).remainder(max(1, total)).sort().values


def first_row(bad: Tensor, shape: Shape) -> Rows:
    """Return the first row for which something holds, given for all rows in order; row 0 if it never does."""
    number = bad.flatten().to(torch.uint8).argmax(0, keepdim=True)
    return Rows(number.div(shape.rows, rounding_mode="floor"), number.remainder(shape.rows))


def _places(numbers: Tensor, lengths: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return where elements are that are counted along axes of these lengths, the last of which varies fastest."""
    found = []
    for length in reversed(lengths):
        found.append(numbers.remainder(length))
        numbers = numbers.div(length, rounding_mode="floor")
    return tuple(reversed(found))


def of_matrices(a: Tensor, b: Tensor, initial: Tensor | None) -> CardProduct:
    """Return the product ``initial + a @ b``, (..., M, K) by (..., K, N)."""
    return CardProduct(
        (a, b),
        shape_of_matrices(a.shape, b.shape),
        partial(_matrices, a, b, initial),
        lambda values: values.isfinite().all(-1).logical_not(),
    )


def _matrices(a: Tensor, b: Tensor, initial: Tensor | None, rows: Rows) -> CardPiece:
    """Return rows of ``initial + a @ b``, (..., M, K) by (..., K, N)."""
    shape = shape_of_matrices(a.shape, b.shape)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = (*batch, a.shape[-2], b.shape[-1])
    places = _places(rows.matrix * shape.rows + rows.within, whole[:-1])
    if prod(b.shape[:-2]) == 1:
        right = b.reshape(b.shape[-2:])
    else:
        right = b.expand(*batch, *b.shape[-2:])[_places(rows.matrix, tuple(batch))][0]
    start = None if initial is None else initial.expand(whole)[places]
    return CardPiece(a.expand(*whole[:-1], a.shape[-1])[places], right, start)


def of_convolution(x: Tensor, kernels: Tensor, bias: Tensor | None, geometry: Geometry) -> CardProduct:
    """Return a convolution."""

    def bad(values: Tensor) -> Tensor:
        each = values.reshape(len(values), geometry.groups, -1, prod(values.shape[2:]))
        return each.isfinite().all(2).logical_not().transpose(0, 1)

    shape = shape_of_convolution(x.shape, kernels.shape, geometry)
    return CardProduct((x, kernels), shape, partial(_convolution, x, kernels, bias, geometry), bad)


def _convolution(x: Tensor, kernels: Tensor, bias: Tensor | None, geometry: Geometry, rows: Rows) -> CardPiece:
    """Return rows of a convolution."""
    shape = shape_of_convolution(x.shape, kernels.shape, geometry)
    size = tuple(kernels.shape[2:])
    counts = geometry.positions(tuple(x.shape[2:]), size)
    data, groups = padded(x, geometry.sides).contiguous(), geometry.groups
    windows = Windows(data, size, counts, geometry)
    item = rows.within.div(prod(counts), rounding_mode="floor")
    starts = windows.offsets("each item")[item] + rows.matrix * windows.group
    starts = starts + windows.offsets("positions")[rows.within.remainder(prod(counts))]
    left = data.flatten()[starts[:, None] + windows.offsets("elements")]
    right = kernels.reshape(groups, shape.columns, shape.length)[rows.matrix][0].mT
    start = None
    if bias is not None:
        start = bias.reshape(groups, shape.columns)[rows.matrix].expand(len(rows.within), shape.columns)
    return CardPiece(left, right, start)


def of_kernels(gradient: Tensor, x: Tensor, size: tuple[int, ...], geometry: Geometry) -> CardProduct:
    """Return the gradient of kernels."""

    def bad(values: Tensor) -> Tensor:
        each = values.reshape(geometry.groups, len(values) // geometry.groups, -1)
        return each.isfinite().all(1).logical_not()

    shape = shape_of_kernels(gradient.shape, x.shape, size, geometry)
    return CardProduct((x, gradient), shape, partial(_kernels, gradient, x, size, geometry), bad)


def _kernels(gradient: Tensor, x: Tensor, size: tuple[int, ...], geometry: Geometry, rows: Rows) -> CardPiece:
    """Return rows of the gradient of kernels."""
    shape = shape_of_kernels(gradient.shape, x.shape, size, geometry)
    counts = tuple(gradient.shape[2:])
    data, groups = padded(x, geometry.sides).contiguous(), geometry.groups
    windows = Windows(data, size, counts, geometry)
    starts = rows.matrix * windows.group + windows.offsets("elements")[rows.within]
    left = data.flatten()[starts[:, None] + windows.offsets("items")]
    each = gradient.reshape(len(x), groups, shape.columns, prod(counts))[:, rows.matrix][:, 0]
    return CardPiece(left, each.transpose(1, 2).reshape(shape.length, shape.columns), None)


def of_transposed(g: Tensor, kernels: Tensor, geometry: Geometry) -> CardProduct:
    """Return a transposed convolution."""
    shape = shape_of_transposed(g.shape, kernels.shape, geometry)
    return CardProduct((g, kernels), shape, partial(_transposed, g, kernels, geometry), None)


def _transposed(g: Tensor, kernels: Tensor, geometry: Geometry, rows: Rows) -> CardPiece:
    """Return rows of a transposed convolution, before overlaps are added."""
    shape = shape_of_transposed(g.shape, kernels.shape, geometry)
    places, groups = prod(g.shape[2:]), geometry.groups
    each = g.reshape(len(g), groups, shape.length, places)
    item = rows.within.div(places, rounding_mode="floor")
    left = each[item, rows.matrix, :, rows.within.remainder(places)]
    return CardPiece(left, kernels.reshape(groups, shape.length, shape.columns)[rows.matrix][0], None)
