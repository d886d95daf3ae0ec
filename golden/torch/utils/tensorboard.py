"""``SummaryWriter`` for scripts that write to TensorBoard; needs the package ``tensorboard``."""

from __future__ import annotations

from typing import Any

import torch

try:
    from torch.utils import tensorboard as _tensorboard
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "golden.torch.utils.tensorboard needs the package tensorboard, which is not installed: pip install tensorboard",
        name="tensorboard",
    ) from error

__all__ = ["SummaryWriter"]


class SummaryWriter(_tensorboard.SummaryWriter):
    """The writer of PyTorch, which also takes tensors.

    Parameters
    ----------
    *args, **kwargs
        Of ``torch.utils.tensorboard.SummaryWriter``.
    base_step : int
        Accepted; steps are written as they are given.
    """

    def __init__(self, *args: Any, base_step: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def add_tensor(self, tag: str, tensor: torch.Tensor, global_step: int | None = None, walltime: Any = None) -> None:
        """Write the values of a tensor as a histogram."""
        self.add_histogram(tag, tensor.detach().float(), global_step, walltime=walltime)
