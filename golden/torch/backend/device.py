"""The device of a backend: always the CPU, where the exact kernels run."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from golden.torch.backend.kinds import BackendType

__all__ = ["Device", "device"]


class Device:
    """The device of ``with backend.device:`` and ``backend.torch_device``: the CPU, the only one of the kernels."""

    def __init__(self) -> None:
        self.torch_device = torch.device("cpu")

    @property
    def type(self) -> str:
        """``"cpu"``."""
        return self.torch_device.type

    def move_to_device(self, struct: Any) -> Any:
        """Return a structure of modules and tensors with each of them on the CPU."""
        kinds = (torch.nn.Module, torch.Tensor)
        return pytree.tree_map_only(kinds, lambda each: each.to(self.torch_device), struct)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return "device(type='cpu')"


def device(backend_type: str) -> Device:
    """Return the device of a backend of that kind: ``with cstorch.device("CSX"): model = Model()``.

    Raises
    ------
    ValueError
        If `backend_type` is not ``"CPU"``, ``"GPU"`` or ``"CSX"``.
    """
    BackendType.from_str(backend_type)
    return Device()
