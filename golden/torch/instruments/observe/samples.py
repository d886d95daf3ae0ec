"""The part of a product that is counted: a few rows of its result, with all that they are made of.

Rows are numbered through all matrices of a product. Of each kind of product, the functions give pieces: small matrix
products whose results are rows of the whole one, bit for bit. Everything stays on the device of the tensors, and
nothing waits for it: rows are tensors, so that a card may choose one itself, the first whose results are not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from golden.torch.products.windows import Geometry, tables

__all__ = [
    "Piece",
    "Product",
    "Rows",
    "Shape",
    "chosen_rows",
    "first_row",
    "of_convolution",
    "of_kernels",
    "of_matrices",
    "of_transposed",
]

_MOST_MATRICES = 4  # of a batch from which rows are taken


class Shape(NamedTuple):
    """A product of `matrices` matrices: `rows` rows of `columns` results each, every one a sum of `length` products."""

    matrices: int
    rows: int
    columns: int
    length: int


class Rows(NamedTuple):
    """Rows of one matrix of a product: its number, a tensor of one element, and theirs within it; int64."""

    matrix: Tensor
    within: Tensor


class Piece(NamedTuple):
    """Rows of a result: ``initial + left @ right``, with the shapes (m, N), (m, K) and (K, N)."""

    left: Tensor
    right: Tensor
    initial: Tensor | None


class Product(NamedTuple):
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
    piece: Callable[[Rows], Piece]
    bad_rows: Callable[[Tensor], Tensor] | None


def chosen_rows(shape: Shape, count: int, step: int, device: torch.device | None = None) -> list[Rows]:
    """Return `count` rows, or all if they are fewer: spread evenly, and others in every step."""
    matrices = min(shape.matrices, _MOST_MATRICES)
    of_each = min(shape.rows, max(1, count // matrices)) if matrices else 0
    within = _spread(shape.rows, of_each, step, device)
    return [Rows(matrix, within) for matrix in _spread(shape.matrices, matrices, step, device).split(1) if of_each]


def _spread(total: int, count: int, step: int, device: torch.device | None) -> Tensor:
    numbers = torch.arange(count, dtype=torch.int64, device=device)
    return (_over(numbers * total, max(1, count)) + step).remainder(max(1, total)).sort().values


def _over(numbers: Tensor, divisor: int) -> Tensor:
    return numbers.div(divisor, rounding_mode="floor")


def first_row(bad: Tensor, shape: Shape) -> Rows:
    """Return the first row for which something holds, given for all rows in order; row 0 if it never does."""
    number = bad.flatten().to(torch.uint8).argmax(0, keepdim=True)
    return Rows(_over(number, shape.rows), number.remainder(shape.rows))


def _places(numbers: Tensor, lengths: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return where elements are that are counted along axes of these lengths, the last of which varies fastest."""
    found = []
    for length in reversed(lengths):
        found.append(numbers.remainder(length))
        numbers = _over(numbers, length)
    return tuple(reversed(found))


def of_matrices(a: Tensor, b: Tensor, initial: Tensor | None) -> Product:
    """Return the product ``initial + a @ b``, (..., M, K) by (..., K, N)."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = (*batch, a.shape[-2], b.shape[-1])
    is_shared = prod(b.shape[:-2]) == 1  # one matrix for the whole batch, whose rows form one product
    matrices = (1, prod(batch)) if is_shared else (prod(batch), 1)
    shape = Shape(matrices[0], matrices[1] * a.shape[-2], b.shape[-1], a.shape[-1])

    def piece(rows: Rows) -> Piece:
        places = _places(rows.matrix * shape.rows + rows.within, whole[:-1])
        if is_shared:
            right = b.reshape(b.shape[-2:])
        else:
            right = b.expand(*batch, *b.shape[-2:])[_places(rows.matrix, tuple(batch))][0]
        start = None if initial is None else initial.expand(whole)[places]
        return Piece(a.expand(*whole[:-1], a.shape[-1])[places], right, start)

    return Product((a, b), shape, piece, lambda values: values.isfinite().all(-1).logical_not())


class _Windows:
    """The padded values of a tensor (B, C, ...) as a vector, and where its windows begin in it.

    Attributes
    ----------
    data : Tensor
    items, groups, elements, positions : Tensor
        Where the items, the groups, the elements of a window and the positions begin.
    """

    def __init__(self, x: Tensor, size: tuple[int, ...], geometry: Geometry) -> None:
        sides = list(zip(geometry.sides[::2], geometry.sides[1::2], strict=True))
        around = [side for pair in reversed(sides) for side in pair]
        padded = (F.pad(x, around) if any(around) else x).contiguous()
        counts = geometry.positions(tuple(x.shape[2:]), size)
        key = (tuple(padded.shape), size, counts, geometry.steps, geometry.gaps, geometry.groups)
        self.data = padded.flatten()
        if x.is_cuda:
            from golden.torch.products.gpu.devices import constant  # not before there is a card to use it

            found = [constant(x.device, ("begin", at, *key), lambda at=at: tables(*key)[at]) for at in range(4)]  # type: ignore[misc]
        else:
            found = [torch.from_numpy(each) for each in tables(*key)]
        self.items, self.groups, self.elements, self.positions = found


def of_convolution(x: Tensor, kernels: Tensor, bias: Tensor | None, geometry: Geometry) -> Product:
    """Return a convolution: a matrix for each group, rows for windows, columns for output channels."""
    groups, size = geometry.groups, tuple(kernels.shape[2:])
    places = prod(geometry.positions(tuple(x.shape[2:]), size))
    shape = Shape(groups, x.shape[0] * places, kernels.shape[0] // max(1, groups), prod(kernels.shape[1:]))

    def piece(rows: Rows) -> Piece:
        windows = _Windows(x, size, geometry)
        starts = windows.items[_over(rows.within, places)] + windows.groups[rows.matrix]
        starts = starts + windows.positions[rows.within.remainder(places)]
        right = kernels.reshape(groups, shape.columns, shape.length)[rows.matrix][0].mT
        start = None
        if bias is not None:
            start = bias.reshape(groups, shape.columns)[rows.matrix].expand(len(rows.within), shape.columns)
        return Piece(windows.data[starts[:, None] + windows.elements], right, start)

    def bad(values: Tensor) -> Tensor:
        each = values.reshape(len(values), groups, -1, prod(values.shape[2:]))
        return each.isfinite().all(2).logical_not().transpose(0, 1)

    return Product((x, kernels), shape, piece, bad)


def of_kernels(gradient: Tensor, x: Tensor, size: tuple[int, ...], geometry: Geometry) -> Product:
    """Return the gradient of kernels: a row for each element of a window, a column for each output channel."""
    groups, places = geometry.groups, prod(gradient.shape[2:])
    channels, columns = x.shape[1] // max(1, groups), gradient.shape[1] // max(1, groups)
    shape = Shape(groups, channels * prod(size), columns, x.shape[0] * places)

    def piece(rows: Rows) -> Piece:
        windows = _Windows(x, size, geometry)
        starts = windows.groups[rows.matrix] + windows.elements[rows.within]
        left = windows.data[starts[:, None] + (windows.items[:, None] + windows.positions).flatten()]
        each = gradient.reshape(len(x), groups, columns, places)[:, rows.matrix][:, 0]
        return Piece(left, each.transpose(1, 2).reshape(shape.length, columns), None)

    def bad(values: Tensor) -> Tensor:
        return values.reshape(groups, len(values) // groups, -1).isfinite().all(1).logical_not()

    return Product((x, gradient), shape, piece, bad)


def of_transposed(g: Tensor, kernels: Tensor, geometry: Geometry) -> Product:
    """Return a transposed convolution before overlaps are added: a row for each input position."""
    groups, places = geometry.groups, prod(g.shape[2:])
    shape = Shape(groups, g.shape[0] * places, prod(kernels.shape[1:]), kernels.shape[0] // max(1, groups))

    def piece(rows: Rows) -> Piece:
        each = g.reshape(len(g), groups, shape.length, places)
        left = each[_over(rows.within, places), rows.matrix, :, rows.within.remainder(places)]
        return Piece(left, kernels.reshape(groups, shape.length, shape.columns)[rows.matrix][0], None)

    return Product((g, kernels), shape, piece, None)
