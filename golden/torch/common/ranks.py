"""The processes of a data-parallel run: distributed ranks of ``torch.distributed``, or one process alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["average_gradients", "highest_rank_where", "message", "rank", "world_size"]


def world_size() -> int:
    """Return the number of processes, 1 without ``torch.distributed``."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the distributed rank of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def message(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return numbers where the processes can exchange them: on the CPU, unless their backend knows CUDA alone."""
    only_cuda = "cpu:" not in dist.get_backend_config()
    return torch.tensor(values, dtype=dtype, device="cuda" if only_cuda else "cpu")


def highest_rank_where(condition: bool) -> int | None:
    """Return the highest distributed rank on which a condition holds, or None. Every process must ask."""
    if world_size() == 1:
        return 0 if condition else None
    found = message(rank() if condition else -1)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return None if found < 0 else int(found)


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace every gradient by its mean over the processes, summed in fp32. All must have the same parameters.

    Where a parameter has no gradient, though it has one elsewhere, zero counts. Gradients travel in one message.
    """
    parameters, ranks = list(parameters), world_size()
    if ranks == 1 or not parameters:
        return
    has_gradient = message([each.grad is not None for each in parameters], torch.int32)
    dist.all_reduce(has_gradient, dist.ReduceOp.MAX)
    used = [each for each, used_somewhere in zip(parameters, has_gradient.tolist(), strict=True) if used_somewhere]
    flat = torch.cat(
        [(torch.zeros_like(each) if each.grad is None else each.grad).reshape(-1).float() for each in used]
    )
    dist.all_reduce(flat)
    flat /= ranks
    for parameter, mean in zip(used, torch.split(flat, [each.numel() for each in used]), strict=True):
        parameter.grad = mean.view_as(parameter).to(parameter.dtype)
