"""The observer of one step: it takes every exact product as it runs, and changes none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from golden.reduction import Reduction
from golden.torch.instruments.observe.attribution import Attribution
from golden.torch.instruments.observe.samples import (
    Product,
    of_convolution,
    of_kernels,
    of_matrices,
    of_transposed,
)
from golden.torch.instruments.observe.tallies import Key, Tally
from golden.torch.products.windows import Geometry
from golden.torch.settings.scopes import Settings, scopes

__all__ = ["Observer"]

if TYPE_CHECKING:
    from golden.torch.instruments.observe.card_tallies import CardTally


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
        self.cards: dict[torch.device, dict[Key, CardTally]] = {}  # what nobody has read yet
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
        self._take(of_matrices(a, b, initial), result, reduction)

    def convolution(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, settings: tuple[Geometry, Reduction], result: Tensor
    ) -> None:
        """Take a convolution."""
        self._take(of_convolution(x, weight, bias, settings[0]), result, settings[1])

    def transposed(self, x: Tensor, weight: Tensor, settings: tuple[Geometry, Reduction], result: Tensor) -> None:
        """Take a transposed convolution."""
        self._take(of_transposed(x, weight, settings[0]), result, settings[1])

    def kernel_product(
        self, gradient: Tensor, x: Tensor, size: tuple[int, ...], settings: tuple[Geometry, Reduction], result: Tensor
    ) -> None:
        """Take the gradient of kernels."""
        self._take(of_kernels(gradient, x, size, settings[0]), result, settings[1])

    def _take(self, product: Product, result: Tensor, reduction: Reduction) -> None:
        """Count a product that runs now, unless it is not looked at."""
        self._was_training |= self._model.training
        if self._was_training and not self._model.training:  # a validation between two steps
            return
        if self.precision is None and scopes.precisions:
            self.precision = scopes.precisions[-1]
        shape = product.shape
        if not shape.matrices * shape.rows * shape.columns:
            return
        place = self._attribution.place(*product.operands, shape)
        if place is None:
            return
        key = place[:3]
        tally = self.tallies.setdefault(key, Tally(reduction, shape))
        if not tally.takes_next(recomputed=place.is_recomputed):
            return
        tally.rows += shape.matrices * shape.rows
        counting: Tally | CardTally = tally
        if _is_on_card(result, reduction):
            from golden.torch.instruments.observe.card_tallies import CardTally  # not before there is a card to use it

            cards = self.cards.setdefault(result.device, {})
            counting = cards[key] = cards.get(key) or CardTally(result.device)
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            tally.rows_counted += counting.add(product, result, reduction, self._rows, self.step)

    def settle(self) -> None:
        """Read what cards have counted: for each card this waits once."""
        for cards in self.cards.values():
            records = torch.stack([card.record for card in cards.values()]).cpu().numpy()
            for (key, card), record in zip(cards.items(), records, strict=True):
                card.settle(self.tallies[key], record)
        self.cards.clear()


def _is_on_card(result: Tensor, reduction: Reduction) -> bool:
    """Return whether a card counts a product; otherwise the CPU samples a copy."""
    if not result.is_cuda:
        return False
    from golden.torch.products.gpu.counting import is_counted  # not before there is a card to use it

    return is_counted(reduction, result.numel())
