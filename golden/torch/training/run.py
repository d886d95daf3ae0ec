"""The run, as the parts of a training see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from golden.torch.amp import precision as contexts
from golden.torch.amp.configuration import MixedPrecision
from golden.torch.amp.grad_scaler import GradScaler
from golden.torch.training.callback import Logger
from golden.torch.training.saving import Checkpoint

__all__ = ["Run"]


class Run(Protocol):
    """The members of a `Trainer` that parts of the training use; the parameters of `Trainer` describe most of them.

    Attributes
    ----------
    losses : list of float
        The loss of every step of this `fit`.
    last_validation : tuple of int and dict, or None
        The step of the latest validation, and its result.
    under_way : str or None
        What has drawn random numbers and is not complete: no checkpoint of this moment could be gone on from.
    """

    model: nn.Module
    optimizer: Optimizer | None
    loss: Callable[[Any, Any], Tensor] | None
    precision: MixedPrecision
    autocast: contexts.precision
    scaler: GradScaler
    schedulers: list[Any]
    model_dir: Path | None
    checkpoint: Checkpoint
    log_steps: int
    loggers: list[Logger]
    losses: list[float]
    last_validation: tuple[int, dict[str, float]] | None
    under_way: str | None

    @property
    def step(self) -> int:
        """Steps trained, the skipped ones included."""

    def call(self, hook: str, *arguments: Any) -> None:
        """Call a hook of all callbacks and loggers."""

    def log_metrics(self, **metrics: Any) -> None:
        """Hand figures to the loggers, as of the step that is done."""

    def save_checkpoint(self) -> None:
        """Write a checkpoint of the step that is done."""
