"""The counted rows are rows of the product itself, bit for bit, and their counts follow the contract."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden import reference
from golden.torch.instruments.observe import samples
from golden.torch.instruments.observe.observer import Observer
from golden.torch.instruments.observe.tallies import Counted
from golden.torch.settings.scopes import scopes

from ..oracle import array, normal, product


class _Seen(Observer):
    """Keeps the pieces of every product, and its result."""

    def __init__(self, rows=10_000):
        super().__init__(torch.nn.Identity(), 1, rows)
        self.seen = []

    def _take(self, product, result, summing):
        super()._take(product, result, summing)
        chosen = samples.chosen_rows(product.shape, self._rows, self.step)
        pieces = [product.piece(each) for each in chosen]
        self.seen.append((product.shape, numbers(chosen, product.shape), pieces, summing, array(result)))


def numbers(chosen, shape):
    """Return the numbers of chosen rows through all matrices."""
    return torch.cat([each.matrix * shape.rows + each.within for each in chosen]).numpy()


def observed(function, *operands, rows=10_000):
    """Return an observer's records of a product, forward and backward."""
    scopes.observer = observer = _Seen(rows)
    try:
        with cstorch.precision("cbfloat16", level=2):
            result = function(*operands)
            result.backward(normal(*result.shape, seed=9))
    finally:
        scopes.observer = None
    return observer


def results_of(pieces, summing):
    """Multiply pieces as the observer does, without counting."""
    return np.concatenate(
        [
            golden.matmul_values(
                array(left),
                array(right),
                reduction=summing,
                initial=None if start is None else golden.quantize(array(start), summing.result),
            )
            for left, right, start in pieces
        ]
    )


def rows_of(kind, result, shape):
    """Return the rows of a result in the order in which samples numbers them: (rows, columns)."""
    if kind == "convolution":  # (B, G * N, ...)
        each = result.reshape(len(result), shape.matrices, shape.columns, -1)
        return each.transpose(1, 0, 3, 2).reshape(-1, shape.columns)
    if kind == "kernels":  # (G * N, C, ...)
        return result.reshape(shape.matrices, shape.columns, -1).swapaxes(1, 2).reshape(-1, shape.columns)
    return result.reshape(-1, shape.columns)


def assert_rows_are_of_the_result(kind, one):
    shape, rows, pieces, summing, result = one
    wanted = rows_of(kind, result, shape)[rows]
    assert results_of(pieces, summing).view(np.uint32).tolist() == wanted.view(np.uint32).tolist()


def g(*shape, seed):
    return normal(*shape, seed=seed, grad=True)


MATRICES = {
    "linear": lambda: (cstorch.linear, g(6, 5, seed=1), g(3, 5, seed=2), g(3, seed=3)),
    "linear of a batch": lambda: (cstorch.linear, g(2, 6, 5, seed=1), g(3, 5, seed=2), g(3, seed=3)),
    "batched": lambda: (cstorch.matmul, g(7, 2, 6, 5, seed=1), g(7, 2, 5, 3, seed=2)),
    "broadcast": lambda: (cstorch.matmul, g(4, 1, 6, 5, seed=1), g(3, 5, 2, seed=2)),
    "shared left": lambda: (cstorch.matmul, g(6, 5, seed=1), g(4, 5, 2, seed=2)),
    "transposed views": lambda: (lambda x, y: cstorch.matmul(x.mT, y.mT), g(3, 5, 6, seed=1), g(3, 2, 5, seed=2)),
}
CONVOLUTIONS = {
    "plain": ({}, (2, 4, 6, 5), (6, 4, 3, 2)),
    "strided, padded, dilated": ({"stride": 2, "padding": (1, 2), "dilation": 2}, (3, 4, 9, 8), (2, 4, 3, 2)),
    "groups": ({"groups": 2, "padding": 1}, (2, 4, 5, 5), (6, 2, 3, 3)),
    "depthwise": ({"groups": 6, "padding": 1}, (2, 6, 4, 4), (6, 1, 3, 3)),
}


@pytest.mark.parametrize("rows", [10_000, 3])
@pytest.mark.parametrize("name", MATRICES)
def test_samples_of_matrices_are_rows_of_the_result(name, rows):
    seen = observed(*MATRICES[name](), rows=rows).seen
    assert len(seen) >= 3
    for one in seen:
        assert_rows_are_of_the_result("matrices", one)


@pytest.mark.parametrize("rows", [10_000, 3])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_samples_of_convolutions_are_rows_of_the_result(name, rows):
    settings, x, weight = CONVOLUTIONS[name]
    bias = g(weight[0], seed=3)
    seen = observed(lambda *given: cstorch.conv2d(*given, **settings), g(*x, seed=1), g(*weight, seed=2), bias).seen
    forward, _, of_kernels, of_bias = seen
    assert_rows_are_of_the_result("convolution", forward)
    assert_rows_are_of_the_result("kernels", of_kernels)
    assert_rows_are_of_the_result("matrices", of_bias)


@pytest.mark.parametrize("groups", [1, 2])
def test_samples_of_a_transposed_convolution_add_up_to_the_result(groups):
    """Its product has a row for each position, whose elements are added where windows overlap."""
    x, weight = normal(2, 4, 3, 2, seed=1), normal(4, 3, 2, 2, seed=2)
    seen = observed(lambda *given: cstorch.conv_transpose2d(*given, groups=groups), x.requires_grad_(), weight).seen
    *_, pieces, summing, result = seen[0]
    each = results_of(pieces, summing).reshape(groups, 2, 3, 2, 3, 2, 2)  # G, B, H, W, C, rows, columns of a kernel
    total = np.zeros((2, groups, 3, 4, 3), np.float32)
    for row, column in np.ndindex(2, 2):
        total[:, :, :, row : row + 3, column : column + 2] += each[..., row, column].transpose(1, 0, 4, 2, 3)
    wanted = golden.quantize(total.reshape(result.shape), summing.result)
    assert result.view(np.uint32).tolist() == wanted.view(np.uint32).tolist()


def test_samples_that_are_one_position_off_are_noticed(monkeypatch):
    right = samples.of_convolution

    def shifted(*given):
        product = right(*given)
        return product._replace(piece=lambda rows: product.piece(rows._replace(within=(rows.within + 1) % 16)))

    monkeypatch.setattr("golden.torch.instruments.observe.observer.of_convolution", shifted)
    with pytest.raises(AssertionError):
        test_samples_of_convolutions_are_rows_of_the_result("plain", 10_000)


def test_counted_of_all_rows_is_what_the_contract_counts():
    x, weight = normal(3, 40, seed=1, scale=300.0), normal(2, 40, seed=2, scale=300.0)
    scopes.observer = observer = _Seen()
    try:
        with cstorch.precision("float16", level=2):
            result = F.linear(x, weight)
    finally:
        scopes.observer = None
    ((_, tally),) = observer.tallies.items()
    wanted = Counted().counts
    for row in golden.encode(array(x), "float16").tolist():
        for column in golden.encode(array(weight), "float16").tolist():
            wanted += reference.dot(row, column, operand="float16", level=2, out="float16", counts=True)[2]
    assert tally.counted.counts == wanted
    assert wanted.products.overflow > 0
    assert (golden.encode(array(result), "float16") == product(x, weight.mT, "float16", 2)).all()


@pytest.mark.parametrize(("total", "count"), [(10, 3), (3, 3), (2, 5), (1, 1), (64, 16)])
def test_chosen_rows_are_different_rows_and_move_with_the_step(total, count):
    shape = samples.Shape(1, total, 4, 4)
    chosen = [numbers(samples.chosen_rows(shape, count, step), shape).tolist() for step in range(1, total + 1)]
    for rows in chosen:
        assert len(set(rows)) == len(rows) == min(total, count)
        assert set(rows) <= set(range(total))
    assert set().union(*chosen) == set(range(total))


def test_chosen_rows_of_many_matrices_are_of_four_of_them():
    shape = samples.Shape(100, 8, 4, 4)
    chosen = numbers(samples.chosen_rows(shape, 16, 1), shape)
    assert len(set((chosen // 8).tolist())) == 4
    assert len(set(chosen.tolist())) == 16
