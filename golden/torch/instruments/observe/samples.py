"""The part of a product that is counted: a few rows of its result, with all that they are made of.

Rows are numbered through all matrices of a product. Of each kind of product, the functions give pieces: small matrix
products whose results are rows of the whole one, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.torch.products.windows import Geometry, padded, tables

__all__ = [
    "MOST_MATRICES",
    "Piece",
    "Shape",
    "chosen_rows",
    "of_convolution",
    "of_kernels",
    "of_matrices",
    "of_transposed",
    "shape_of_convolution",
    "shape_of_kernels",
    "shape_of_matrices",
    "shape_of_transposed",
]

Values = NDArray[np.float32]
_Rows = NDArray[np.int64]
_Lengths = tuple[int, ...]

#: Matrices of a batch from which rows are taken.
MOST_MATRICES = 4


class Shape(NamedTuple):
    """A product of `matrices` matrices: `rows` rows of `columns` results each, every one a sum of `length` products."""

    matrices: int
    rows: int
    columns: int
    length: int


class Piece(NamedTuple):
    """Rows of a result: ``initial + left @ right``, with the shapes (m, N), (m, K) and (K, N)."""

    left: Values
    right: Values
    initial: Values | None


def chosen_rows(shape: Shape, count: int, step: int) -> _Rows:
    """Return the numbers of `count` rows, or of all if they are fewer: spread evenly, and others in every step."""
    matrices = min(shape.matrices, MOST_MATRICES)
    of_each = min(shape.rows, max(1, count // matrices)) if matrices else 0
    which = _spread(shape.matrices, matrices, step)
    return (which[:, np.newaxis] * shape.rows + _spread(shape.rows, of_each, step)).ravel()


def _spread(total: int, count: int, step: int) -> _Rows:
    return np.sort((np.arange(count, dtype=np.int64) * total // max(1, count) + step) % max(1, total))


def _by_matrix(rows: _Rows, shape: Shape) -> Iterator[tuple[int, _Rows]]:
    """Give each matrix from which rows are taken, and their numbers within it."""
    matrices, within = np.divmod(rows, shape.rows)
    for matrix in np.unique(matrices).tolist():
        yield matrix, within[matrices == matrix]


def shape_of_matrices(a: _Lengths, b: _Lengths) -> Shape:
    """Return the shape of a product of matrices (..., M, K) by (..., K, N)."""
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    if prod(b[:-2]) == 1:  # one matrix for the whole batch, whose rows form one product
        return Shape(1, prod(batch) * a[-2], b[-1], a[-1])
    return Shape(prod(batch), a[-2], b[-1], a[-1])


def shape_of_convolution(x: _Lengths, kernels: _Lengths, geometry: Geometry) -> Shape:
    """Return the sample of a convolution: a matrix for each group, rows for windows, columns for output channels."""
    places = prod(geometry.positions(x[2:], kernels[2:]))
    return Shape(geometry.groups, x[0] * places, kernels[0] // max(1, geometry.groups), prod(kernels[1:]))


def shape_of_kernels(gradient: _Lengths, x: _Lengths, size: _Lengths, geometry: Geometry) -> Shape:
    """Return the sample of a gradient of kernels: a row for each element of a window, a column for each channel."""
    groups = max(1, geometry.groups)
    return Shape(geometry.groups, x[1] // groups * prod(size), gradient[1] // groups, x[0] * prod(gradient[2:]))


def shape_of_transposed(g: _Lengths, kernels: _Lengths, geometry: Geometry) -> Shape:
    """Return the sample of a transposed convolution before overlaps are added: a row for each input position."""
    return Shape(geometry.groups, g[0] * prod(g[2:]), prod(kernels[1:]), kernels[0] // max(1, geometry.groups))


def of_matrices(a: Values, b: Values, initial: Values | None, rows: _Rows | None = None) -> tuple[Shape, list[Piece]]:
    """Return the shape of ``initial + a @ b``, (..., M, K) by (..., K, N), and pieces with these rows of it."""
    shape = shape_of_matrices(a.shape, b.shape)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = (*batch, a.shape[-2], b.shape[-1])
    if rows is None:
        return shape, []
    x, start = np.broadcast_to(a, (*whole[:-1], a.shape[-1])), None
    y = b.reshape(b.shape[-2:]) if shape.matrices == 1 else np.broadcast_to(b, (*batch, *b.shape[-2:]))
    if initial is not None:
        start = np.broadcast_to(initial, whole)
    pieces = []
    for matrix, within in _by_matrix(rows, shape):
        places = np.unravel_index(matrix * shape.rows + within, whole[:-1])
        right = y if y.ndim == 2 else y[np.unravel_index(matrix, batch)]
        pieces.append(Piece(x[places], right, None if start is None else start[places]))
    return shape, pieces


def _windows(
    x: Values, size: tuple[int, ...], geometry: Geometry
) -> tuple[Values, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Return padded values as a vector, and where items, groups, elements of a window and positions begin in it."""
    data, counts = padded(x, geometry), geometry.positions(x.shape[2:], size)
    return data.reshape(-1), tables(data.shape, size, counts, geometry.steps, geometry.gaps, geometry.groups)


def of_convolution(
    x: Values, kernels: Values, bias: Values | None, geometry: Geometry, rows: _Rows | None = None
) -> tuple[Shape, list[Piece]]:
    """Return the shape of a convolution, and pieces with these rows of it."""
    shape, size = shape_of_convolution(x.shape, kernels.shape, geometry), kernels.shape[2:]
    if rows is None:
        return shape, []
    places, outputs = prod(geometry.positions(x.shape[2:], size)), shape.columns
    data, (items, groups, window, positions) = _windows(x, size, geometry)
    matrices = kernels.reshape(geometry.groups, outputs, shape.length)
    pieces = []
    for group, within in _by_matrix(rows, shape):
        starts = items[within // places] + groups[group] + positions[within % places]
        start = None
        if bias is not None:
            start = np.broadcast_to(bias.reshape(geometry.groups, outputs)[group], (len(within), outputs))
        pieces.append(Piece(data[starts[:, np.newaxis] + window], matrices[group].T, start))
    return shape, pieces


def of_kernels(
    gradient: Values, x: Values, size: tuple[int, ...], geometry: Geometry, rows: _Rows | None = None
) -> tuple[Shape, list[Piece]]:
    """Return the shape of the gradient of kernels, and pieces with these rows of it."""
    shape = shape_of_kernels(gradient.shape, x.shape, size, geometry)
    if rows is None:
        return shape, []
    outputs, places = shape.columns, prod(gradient.shape[2:])
    data, (items, groups, window, positions) = _windows(x, size, geometry)
    begins = (items[:, np.newaxis] + positions).ravel()
    each = gradient.reshape(len(x), geometry.groups, outputs, places)
    pieces = []
    for group, within in _by_matrix(rows, shape):
        left = data[groups[group] + window[within][:, np.newaxis] + begins]
        pieces.append(Piece(left, each[:, group].transpose(0, 2, 1).reshape(-1, outputs), None))
    return shape, pieces


def of_transposed(
    g: Values, kernels: Values, geometry: Geometry, rows: _Rows | None = None
) -> tuple[Shape, list[Piece]]:
    """Return the shape of a transposed convolution before overlaps are added, and pieces with these rows of it."""
    shape = shape_of_transposed(g.shape, kernels.shape, geometry)
    if rows is None:
        return shape, []
    places, inputs = prod(g.shape[2:]), shape.length
    each = g.reshape(len(g), geometry.groups, inputs, places)
    matrices = kernels.reshape(geometry.groups, inputs, shape.columns)
    return shape, [
        Piece(each[within // places, group, :, within % places], matrices[group], None)
        for group, within in _by_matrix(rows, shape)
    ]
