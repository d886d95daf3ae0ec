"""``SummaryWriter`` for scripts that write to TensorBoard, by the package ``tensorboardX``."""

from __future__ import annotations

import importlib
from typing import Any

import torch

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """The writer of ``tensorboardX``, which also takes tensors.

    Parameters
    ----------
    *args, **kwargs
        Of ``tensorboardX.SummaryWriter``: the folder first.
    base_step : int
        Accepted; steps are written as they are given.

    Raises
    ------
    ModuleNotFoundError
        If ``tensorboardX`` is not installed; it says how to install it.
    """

    def __init__(self, *args: Any, base_step: int = 1, **kwargs: Any) -> None:
        try:
            package = importlib.import_module("tensorboardX")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "SummaryWriter: needs the package tensorboardX, which is not installed: "
                "pip install 'cbfloat[tensorboard]'",
                name="tensorboardX",
            ) from error
        self._writer = package.SummaryWriter(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_writer":  # not made: an error in the constructor
            raise AttributeError(name)
        return getattr(self._writer, name)

    def add_tensor(self, tag: str, tensor: torch.Tensor, global_step: int | None = None) -> None:
        """Write the values of a tensor as a histogram."""
        self._writer.add_histogram(tag, tensor.detach().float().numpy(), global_step)
