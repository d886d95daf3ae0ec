"""Where tensors of a run are: on the CPU, or on a CUDA device."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from golden.torch.common.notices import say_once

__all__ = ["batch_for", "device_of_kind", "state_to"]


def device_of_kind(kind: str, argument: str) -> torch.device:
    """Return where a backend of a kind computes: GPU on the current CUDA device if there is one, all else on the CPU.

    Where the products of another kind than CPU run on the CPU, it is said once. The bits are the same.
    """
    if kind == "GPU" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if kind == "GPU":
        say_once(
            f"{argument}: got 'GPU', but PyTorch finds no CUDA device; the exact products run on the CPU, and so does "
            "everything else. A build of PyTorch for CUDA and NVIDIA's driver are needed: see https://pytorch.org"
        )
    elif kind != "CPU":
        say_once(f"{argument}: got {kind!r}; the exact products run on the CPU, and so does this run")
    return torch.device("cpu")


def batch_for(model: nn.Module, batch: Any) -> Any:
    """Return a structure of tensors on the CUDA device of a model; as it is, if the model is on none."""
    first = next(model.parameters(), None)
    if first is None or first.device.type != "cuda":
        return batch
    device = first.device
    return pytree.tree_map_only(torch.Tensor, lambda each: each.to(device, non_blocking=True), batch)


def state_to(optimizer: Optimizer, device: torch.device) -> None:
    """Move the state of an optimizer after its parameters; counters, which have no axes, stay."""
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                state[name] = value.to(device)
