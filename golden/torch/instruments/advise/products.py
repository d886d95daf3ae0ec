"""How many products each module of a model has, forward and backward, and how large their sums become on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry

from golden.torch.instruments.audit import Recorder

__all__ = ["PASSES", "ProductCount", "Unit"]

_SAMPLE = 8  # rows, columns and matrices of a product whose sums are looked at

#: The passes of a layer; each has its own level.
PASSES = ("fwd", "bwd")


class Unit(NamedTuple):
    """One pass of one layer, for which a level is chosen."""

    layer: str
    run: str  # of PASSES


class ProductCount(Recorder):
    """Counts the single products of every unit.

    Attributes
    ----------
    products : dict of Unit to int
        In the order in which the units run first.
    fixed : int
        Products that have no level: sums of the gradients of biases and of broadcast operands, always in fp32.
    largest : dict of Unit to float
        The largest absolute value that a partial sum takes, of samples of the matrix products, in exact arithmetic.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: dict[Unit, int] = {}
        self.fixed = 0
        self.largest: dict[Unit, float] = {}

    def exact(self, operator: Any, args: tuple[Any, ...]) -> None:
        """Count the products of a call."""
        if _is_sum(args):
            self.fixed += _products(operator, args)
            return
        module, run = self.place()
        unit = Unit(module, "bwd" if run == "backward" else "fwd")
        self.products[unit] = self.products.get(unit, 0) + _products(operator, args)
        if operator._schema.name == "cbfloat::matrix_product":
            self.largest[unit] = max(self.largest.get(unit, 0.0), _largest_sum(*args[:2]))

    @contextmanager
    def counting(self, model: nn.Module) -> Iterator[None]:
        """Count what runs inside."""
        with self.following(model):
            yield


def _is_sum(args: tuple[Any, ...]) -> bool:
    """Return whether a product is a sum: its left factor is a row of ones."""
    left = args[0]
    return left.ndim == 2 and left.shape[0] == 1 and left.shape[1] > 0 and bool((left == 1).all())


def _largest_sum(left: Tensor, right: Tensor) -> float:
    """Return the largest partial sum of samples of a product."""
    if not left.numel() or not right.numel():
        return 0.0
    largest = 0.0
    for a, b in zip(_matrices(left), _matrices(right), strict=False):
        rows, columns = (_spread(each, _SAMPLE) for each in (a, b.mT))
        terms = rows.double().numpy()[:, None, :] * columns.double().numpy()[None, :, :]
        with np.errstate(invalid="ignore"):
            largest = max(largest, float(np.abs(np.cumsum(terms, axis=-1)).max()))
    return largest


def _matrices(given: Tensor) -> Tensor:
    return _spread(given.detach().reshape(-1, *given.shape[-2:]), _SAMPLE)


def _spread(given: Tensor, count: int) -> Tensor:
    return given[:: max(1, len(given) // count)][:count]


def _products(operator: Any, args: tuple[Any, ...]) -> int:
    shapes = tuple(each.to("meta") if isinstance(each, Tensor) else each for each in args)
    return int(flop_registry[operator.overloadpacket](*shapes, out_val=operator(*shapes))) // 2
