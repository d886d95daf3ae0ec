"""Speaks when a run no longer learns: losses that are no numbers, steps that are all skipped."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal

from torch import nn

from golden.torch.common.arguments import check_count
from golden.torch.training.callback import Callback
from golden.torch.training.run import Run

__all__ = ["CheckLoss", "Divergence"]

_ADVICE = "go back to a checkpoint before step {step}, and lower the learning rate or set max_gradient_norm"


class Divergence(Callback):
    """Tells once that a run has diverged. Every `Trainer` has one that warns, unless its callbacks hold another.

    Parameters
    ----------
    steps : int
        Number of consecutive steps whose loss is NaN or infinite, or which are skipped because gradients overflow
        although the loss scale is as small as it may be.
    action : "warn", "error" or "ignore"
        What happens then. An error ends `fit`, and no checkpoint is written.

    Raises
    ------
    FloatingPointError
        In `fit`, with ``action="error"``.
    """

    def __init__(self, steps: int = 20, action: Literal["warn", "error", "ignore"] = "warn") -> None:
        check_count(steps, "steps")
        if action not in ("warn", "error", "ignore"):
            raise ValueError(f"action: got {action!r}, must be 'warn', 'error' or 'ignore'")
        self.steps, self.action = steps, action
        self._last = self._skipped = 0
        self._bad_losses = self._bad_scales = 0
        self._told: set[str] = set()

    def on_fit_start(self, trainer: Run, train_dataloader: Any, val_dataloader: Any, loop: Any) -> None:
        """Begin to count."""
        self._last, self._skipped = trainer.step, trainer.scaler.get_num_skipped_steps()
        self._bad_losses = self._bad_scales = 0

    def on_train_batch_end(
        self, trainer: Run, model: nn.Module, outputs: dict[str, Any], batch: Any, batch_idx: int
    ) -> None:
        """Look at the step, once its last batch is done."""
        if trainer.step == self._last:
            return
        self._last = trainer.step
        loss, scaler = trainer.losses[-1], trainer.scaler
        is_skipped = scaler.get_num_skipped_steps() > self._skipped
        self._skipped = scaler.get_num_skipped_steps()
        is_smallest = trainer.precision.loss_scaling_factor != "dynamic" or (
            scaler.get_non_clamped_scale() < scaler.get_scale()
        )
        self._bad_losses = 0 if math.isfinite(loss) else self._bad_losses + 1
        self._bad_scales = self._bad_scales + 1 if is_skipped and is_smallest else 0
        since = trainer.step - self.steps + 1
        if self._bad_losses >= self.steps:
            self._speak("loss", f"it has been {loss} or the like for {self.steps} steps, since step {since}", since)
        if self._bad_scales >= self.steps:
            least = "its smallest, " if trainer.precision.loss_scaling_factor == "dynamic" else ""
            self._speak(
                "loss scale",
                f"it is at {least}{scaler.get_scale():g}, and all {self.steps} steps since step {since} were skipped "
                f"({scaler.get_skip_reason()})",
                since,
            )

    def _speak(self, what: str, happened: str, since: int) -> None:
        if self.action == "ignore" or what in self._told:
            return
        self._told.add(what)
        text = f"{what}: {happened}; the run does not recover by itself: {_ADVICE.format(step=since)}"
        if self.action == "error":
            raise FloatingPointError(text)
        warnings.warn(text, stacklevel=6)


class CheckLoss(Divergence):
    """Ends a run at its first loss that is NaN or infinite."""

    def __init__(self) -> None:
        super().__init__(steps=1, action="error")
