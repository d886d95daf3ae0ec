"""The observer of one step: it takes every exact product as it runs, and changes none of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from golden.reduction import Reduction
from golden.torch.instruments.observe.attribution import Attribution
from golden.torch.instruments.observe.samples import (
    Piece,
    Shape,
    chosen_rows,
    of_convolution,
    of_kernels,
    of_matrices,
    of_transposed,
)
from golden.torch.instruments.observe.tallies import Key, Tally
from golden.torch.products.operators.registered import values_of
from golden.torch.products.windows import Geometry
from golden.torch.settings.scopes import Settings, scopes

__all__ = ["Observer"]

if TYPE_CHECKING:
    from golden.torch.instruments.observe.card_samples import CardProduct
    from golden.torch.instruments.observe.card_tallies import CardTally

Values = NDArray[np.float32]
# Whether each row of a result, numbered as in `samples`, has a value that is not finite.
_BadRows = Callable[[Values], NDArray[np.bool_]]
_Pieces = Callable[[NDArray[np.int64] | None], tuple[Shape, list[Piece]]]


class Observer:
    """Gathers the products of a step.

    Parameters
    ----------
    model : nn.Module
    step : int
        Number of the step, from 1.
    rows : int
        Rows of each product that are counted.
    """

    def __init__(self, model: nn.Module, step: int, rows: int) -> None:
        self.step = step
        self.tallies: dict[Key, Tally] = {}
        self._model, self._rows = model, rows
        self._was_training = model.training
        self.precision: Settings | None = None  # in force at the first product
        self._attribution = Attribution(model)
        self.note_gradient_of = self._attribution.note_gradient_of
        self.note_node = self._attribution.note_node

    def matrix_product(
        self, a: Tensor, b: Tensor, initial: Tensor | None, reduction: Reduction, result: Tensor
    ) -> None:
        """Take ``initial + a @ b``."""
        if card := _card_of(result, reduction):
            self._on_card(card.of_matrices(a, b, initial), result, reduction)
            return
        x, y, start = values_of(a), values_of(b), None if initial is None else values_of(initial)
        self._product(
            (a, b), (x, y), result, reduction,
            lambda rows: of_matrices(x, y, start, rows),
            lambda values: np.logical_not(np.isfinite(values).all(-1)),
        )  # fmt: skip

    def convolution(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        settings: tuple[Geometry, Reduction],
        result: Tensor,
    ) -> None:
        """Take a convolution."""
        geometry, reduction = settings
        if card := _card_of(result, reduction):
            self._on_card(card.of_convolution(x, weight, bias, geometry), result, reduction)
            return
        data, kernels, start = values_of(x), values_of(weight), None if bias is None else values_of(bias)

        def bad(values: Values) -> NDArray[np.bool_]:
            each = values.reshape(len(values), geometry.groups, -1, int(np.prod(values.shape[2:])))
            return np.swapaxes(np.logical_not(np.isfinite(each).all(2)), 0, 1)

        self._product(
            (x, weight), (data, kernels), result, reduction,
            lambda rows: of_convolution(data, kernels, start, geometry, rows), bad,
        )  # fmt: skip

    def transposed(self, x: Tensor, weight: Tensor, settings: tuple[Geometry, Reduction], result: Tensor) -> None:
        """Take a transposed convolution."""
        geometry, reduction = settings
        if card := _card_of(result, reduction):
            self._on_card(card.of_transposed(x, weight, geometry), result, reduction)
            return
        data, kernels = values_of(x), values_of(weight)
        self._product(
            (x, weight), (data, kernels), result, reduction,
            lambda rows: of_transposed(data, kernels, geometry, rows), None,
        )  # fmt: skip

    def kernel_product(
        self,
        gradient: Tensor,
        x: Tensor,
        size: tuple[int, ...],
        settings: tuple[Geometry, Reduction],
        result: Tensor,
    ) -> None:
        """Take the gradient of kernels."""
        geometry, reduction = settings
        if card := _card_of(result, reduction):
            self._on_card(card.of_kernels(gradient, x, size, geometry), result, reduction)
            return
        g, data = values_of(gradient), values_of(x)

        def bad(values: Values) -> NDArray[np.bool_]:
            each = values.reshape(geometry.groups, len(values) // geometry.groups, -1)
            return np.logical_not(np.isfinite(each).all(1))

        self._product(
            (x, gradient), (data, g), result, reduction,
            lambda rows: of_kernels(g, data, size, geometry, rows), bad,
        )  # fmt: skip

    def _product(
        self,
        operands: tuple[Tensor, Tensor],
        values: tuple[Values, Values],
        result: Tensor,
        reduction: Reduction,
        pieces: _Pieces,
        bad_rows: _BadRows | None,
    ) -> None:
        shape = pieces(None)[0]
        tally = self._tally(operands, shape, reduction)
        if tally is None:
            return
        results, not_finite = values_of(result), tally.output.not_finite
        tally.left.add(values[0])
        tally.right.add(values[1])
        tally.output.add(results)
        rows = chosen_rows(shape, self._rows, self.step)
        tally.rows += shape.matrices * shape.rows
        tally.rows_counted += len(rows)
        tally.counted.add(pieces(rows)[1], reduction)
        is_new = tally.output.not_finite > not_finite and not tally.witness.results
        if is_new and bad_rows is not None and not tally.left.not_finite + tally.right.not_finite:
            first = np.flatnonzero(bad_rows(results))[:1]
            tally.witness.add(pieces(first)[1], reduction)

    def _on_card(self, product: CardProduct, result: Tensor, reduction: Reduction) -> None:
        shape = product.shape
        tally = self._tally(product.operands, shape, reduction)
        if tally is not None:
            tally.rows += shape.matrices * shape.rows
            tally.rows_counted += tally.on_card(result.device).add(product, result, reduction, self._rows, self.step)

    def _tally(self, operands: tuple[Tensor, Tensor], shape: Shape, reduction: Reduction) -> Tally | None:
        """Return the tally of a product that runs now, None if the product is not looked at."""
        self._was_training |= self._model.training
        if self._was_training and not self._model.training:  # a validation between two steps
            return None
        if self.precision is None and scopes.precisions:
            self.precision = scopes.precisions[-1]
        if not shape.matrices * shape.rows * shape.columns:
            return None
        place = self._attribution.place(*operands, shape)
        if place is None:
            return None
        tally = self.tallies.setdefault(place[:3], Tally(reduction, shape))
        return tally if tally.takes_next(recomputed=place.is_recomputed) else None

    def settle(self) -> None:
        """Read what cards have counted: for each card this waits once."""
        on_cards: dict[torch.device, list[tuple[Tally, CardTally]]] = {}
        for tally in self.tallies.values():
            for device, card in tally.cards.items():
                on_cards.setdefault(device, []).append((tally, card))
            tally.cards.clear()
        for pairs in on_cards.values():
            records = torch.stack([card.record for _, card in pairs]).cpu().numpy()
            for (tally, card), record in zip(pairs, records, strict=True):
                card.settle(tally, record)


def _card_of(result: Tensor, reduction: Reduction) -> ModuleType | None:
    """Return what looks at a product on a card, None if a copy is looked at here."""
    if not result.is_cuda:
        return None
    from golden.torch.instruments.observe import card_samples
    from golden.torch.products.gpu.counting import is_counted  # not before there is a card to use it

    return card_samples if is_counted(reduction, result.numel()) else None
