"""The interface of an example: a model, data, a loss and a measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils.data import Dataset

__all__ = ["Task"]


@dataclass(frozen=True)
class Task:
    """A model to train and what to train it on.

    Parameters
    ----------
    model : nn.Module
        With the weights that the seed of PyTorch gave it.
    loss : callable
        ``loss(outputs, targets)``, a scalar.
    train, validation : Dataset
        Pairs of inputs and targets.
    measure_name, measure
        What is reported after the training: ``measure(outputs, targets)``, a number for each example.
    notes : tuple of str
        What the log of the run shall tell about the data.
    """

    model: nn.Module
    loss: Callable[[Any, Any], Tensor]
    train: Dataset[Any]
    validation: Dataset[Any]
    measure_name: str
    measure: Callable[[Any, Any], Tensor]
    notes: tuple[str, ...] = ()
