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

from golden.torch.operators.windows import Geometry, padded, tables

__all__ = ["Piece", "Shape", "chosen_rows", "of_convolution", "of_kernels", "of_matrices", "of_transposed"]

Values = NDArray[np.float32]
_Rows = NDArray[np.int64]

_MOST_MATRICES = 4  # of a batch, from which rows are taken


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
    matrices = min(shape.matrices, _MOST_MATRICES)
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


def of_matrices(a: Values, b: Values, initial: Values | None, rows: _Rows | None = None) -> tuple[Shape, list[Piece]]:
    """Return the shape of ``initial + a @ b``, (..., M, K) by (..., K, N), and pieces with these rows of it."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    whole = (*batch, a.shape[-2], b.shape[-1])
    if prod(b.shape[:-2]) == 1:  # one matrix for the whole batch: its rows are those of one product
        shape = Shape(1, prod(whole[:-1]), b.shape[-1], a.shape[-1])
    else:
        shape = Shape(prod(batch), whole[-2], whole[-1], a.shape[-1])
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
    """Do so for a convolution: a matrix for each group, a row for each window, a column for each output channel."""
    size = kernels.shape[2:]
    places, outputs = prod(geometry.positions(x.shape[2:], size)), kernels.shape[0] // max(1, geometry.groups)
    shape = Shape(geometry.groups, len(x) * places, outputs, prod(kernels.shape[1:]))
    if rows is None:
        return shape, []
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
    """Do so for the gradient of kernels: a row for each element of a window, a column for each output channel."""
    outputs, places = gradient.shape[1] // max(1, geometry.groups), prod(gradient.shape[2:])
    shape = Shape(geometry.groups, x.shape[1] // max(1, geometry.groups) * prod(size), outputs, len(x) * places)
    if rows is None:
        return shape, []
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
    """Do so for a transposed convolution, before overlaps are added: a row for each position of the input."""
    places, inputs = prod(g.shape[2:]), kernels.shape[0] // max(1, geometry.groups)
    shape = Shape(geometry.groups, len(g) * places, prod(kernels.shape[1:]), inputs)
    if rows is None:
        return shape, []
    each = g.reshape(len(g), geometry.groups, inputs, places)
    matrices = kernels.reshape(geometry.groups, inputs, shape.columns)
    return shape, [
        Piece(each[within // places, group, :, within % places], matrices[group], None)
        for group, within in _by_matrix(rows, shape)
    ]
