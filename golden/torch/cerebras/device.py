"""The device of a backend: the CPU, or for the kind GPU a CUDA device if there is one."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from golden.torch.cerebras.kinds import BackendType
from golden.torch.common.devices import device_of_kind

__all__ = ["Device", "device"]


class Device:
    """The device of ``with backend.device:`` and ``backend.torch_device``.

    Parameters
    ----------
    backend_type : BackendType
        GPU: the current CUDA device, if there is one. All else: the CPU.
    """

    def __init__(self, backend_type: BackendType = BackendType.CPU) -> None:
        if not isinstance(backend_type, BackendType):
            raise TypeError(f"backend_type: got {backend_type!r}, must be one of BackendType; `device` takes names")
        kind = "GPU" if backend_type.is_gpu else "CPU"  # CSX has no device of its own, and nothing to say about it
        self.torch_device = device_of_kind(kind, "backend")

    @property
    def type(self) -> str:
        """``"cpu"`` or ``"cuda"``."""
        return self.torch_device.type

    def move_to_device(self, struct: Any) -> Any:
        """Return a structure of modules and tensors with each of them on this device."""
        kinds = (torch.nn.Module, torch.Tensor)
        return pytree.tree_map_only(kinds, lambda each: each.to(self.torch_device), struct)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"


def device(backend_type: str) -> Device:
    """Return the device of a backend of that kind: ``with cstorch.device("CSX"): model = Model()``.

    Raises
    ------
    ValueError
        If `backend_type` is not ``"CPU"``, ``"GPU"`` or ``"CSX"``.
    """
    return Device(BackendType.from_str(backend_type))
