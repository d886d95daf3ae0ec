"""The cards of this machine by PyTorch's devices, and tensors as their kernels see them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from golden.cuda.launching import CudaDevice, Device
from golden.cuda.plan import BFLOAT16, FLOAT16, FLOAT32, Matrix

__all__ = ["MEMORY", "cards", "check_device", "constant", "device_of", "matrix_of", "readable", "refuse_in_capture"]

#: How the kernels name the dtypes that they read and write.
MEMORY = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}


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


# They are never given up: a CUDA graph keeps addresses, and owns nothing.
_constants: dict[tuple[object, ...], torch.Tensor] = {}


def check_device(**tensors: torch.Tensor | None) -> None:
    """Raise, naming the arguments, unless all tensors are on one device: a kernel would read any address."""
    devices = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        raise ValueError(
            f"{', '.join(devices)}: got tensors on {', '.join(map(str, devices.values()))}, must be on one device"
        )


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose memory holds its values in a dtype that the kernels read."""
    return (tensor if tensor.dtype in MEMORY else tensor.to(torch.float32)).resolve_neg()


def matrix_of(tensor: torch.Tensor) -> Matrix:
    """Return where a tensor of at least two axes lies; it must live until the kernels have been launched."""
    *axes, row_stride, column_stride = tensor.stride()
    return Matrix(tensor.data_ptr(), MEMORY[tensor.dtype], row_stride, column_stride, tuple(axes))


def refuse_in_capture(what: str) -> None:
    """Raise if a CUDA graph is captured, for what waits for the card: CUDA would end the capture, and not say why."""
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(
            f"device: {what} while a CUDA graph is captured, must be before; run the step once before the capture, "
            "with the same shapes, formats and modes"
        )


def constant(device: torch.device, key: tuple[object, ...], make: Callable[[], NDArray[Any]]) -> torch.Tensor:
    """Return an array on a device, made and copied there when it is first asked for by this key, before any capture."""
    found = _constants.get((device, *key))
    if found is None:
        refuse_in_capture("a table would be copied to the card")
        found = _constants[device, *key] = torch.from_numpy(np.array(make())).to(device)
    return found
