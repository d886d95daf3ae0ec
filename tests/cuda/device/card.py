"""The card that the tests run on: a real one, or one in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import torch

from golden.cuda.structures import Product
from golden.torch.products.gpu import devices

__all__ = ["IN_MEMORY", "faulty", "waits"]

#: A card in memory has the CPU's bits in what PyTorch computes; a real one in what `golden.torch` computes.
IN_MEMORY = hasattr(torch.ops, "card") and hasattr(torch.ops.card, "waits")


def waits() -> int:
    """Return how often the program has waited for a card in memory; of a real one nobody knows."""
    return torch.ops.card.waits() if IN_MEMORY else 0


class _Everything(set[object]):
    """The proofs that a card has passed, which it does not repeat."""

    def __contains__(self, each: object) -> bool:
        return True


@contextlib.contextmanager
def faulty() -> Iterator[None]:
    """Have the card round results of products to one fraction bit less."""
    card = devices.device_of(torch.device("cuda", 0))
    launch, size = card.launch, len(bytes(Product()))

    def run(kernel: object, grid: int, block: int, shared_bytes: int, arguments: bytes) -> None:
        if len(arguments) == size:
            fields = Product.from_buffer_copy(arguments)
            fields.destination.fraction_bits -= 1
            arguments = bytes(fields)
        launch(kernel, grid, block, shared_bytes, arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(card, "launch", run)
        patch.setattr(card, "checked", _Everything(), raising=False)
        yield
