"""The cards of this machine, by PyTorch's devices."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from golden.cuda.launching import CudaDevice, Device

__all__ = ["cards", "device_of"]


class _PyTorch:
    """PyTorch's contexts and streams."""

    def on(self, index: int) -> AbstractContextManager[Any]:
        return torch.cuda.device(index)

    def stream(self, index: int) -> int:
        return int(torch.cuda.current_stream(index).cuda_stream)

    def is_capturing(self) -> bool:
        return torch.cuda.is_current_stream_capturing()


#: Those that have been used, by their numbers.
cards: dict[int, Device] = {}


def device_of(device: torch.device) -> Device:
    """Return the card of a device.

    Raises
    ------
    ImportError, RuntimeError
        If what compiles and loads kernels is not installed, or does not know the card.
    """
    index = device.index or 0
    card = cards.get(index)
    if card is None:
        about = torch.cuda.get_device_properties(index)
        capability = about.major, about.minor
        card = cards[index] = CudaDevice(index, about.name, capability, about.multi_processor_count, _PyTorch())
    return card
