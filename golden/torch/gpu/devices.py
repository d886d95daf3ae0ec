"""The cards of this machine, by PyTorch's devices, and launches on them."""

from __future__ import annotations

import torch

from golden.cuda.launching import CudaDevice, Device
from golden.cuda.plan import THREADS, Launch, ProductPlan

__all__ = ["cards", "device_of", "launch", "run"]

#: Those that have been used, by their numbers.
cards: dict[int, Device] = {}


def device_of(device: torch.device) -> Device:
    """Return the card of a device.

    Raises
    ------
    ImportError, RuntimeError
        If what loads kernels is not installed, or does not know the card.
    """
    index = device.index or 0
    card = cards.get(index)
    if card is None:
        card = cards[index] = CudaDevice(index)
    return card


def launch(card: Device, made: Launch) -> None:
    """Launch a kernel on the card's current stream."""
    card.launch(card.kernel(made.variant, made.kernel), made.blocks, THREADS, 0, made.arguments)


def run(card: Device, device: torch.device, plan: ProductPlan) -> None:
    """Launch the kernels of a product; their workspace is PyTorch's, which keeps it as long as the stream needs it."""
    workspace = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device)
    for each in plan.launches(workspace.data_ptr()):
        launch(card, each)
