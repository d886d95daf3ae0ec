"""The observation of a run of the Trainer."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import nn

from golden.torch.instruments.observe.observation import Observation, ObservationSettings
from golden.torch.instruments.observe.report import ObservationReport
from golden.torch.settings.scopes import scopes
from golden.torch.training.callback import Callback
from golden.torch.training.run import Run

__all__ = ["ObservedRun"]


class ObservedRun(Callback):
    """Observes the steps of `fit`, and writes into the folder of the run, if there is one; event files need one."""

    def __init__(self, settings: ObservationSettings, folder: Path | None) -> None:
        if settings.tensorboard and folder is None:
            raise ValueError("observe: got tensorboard=True without a model_dir, must be False then")
        self.settings, self.folder = settings, folder
        self.report: ObservationReport | None = None
        self._observation: Observation | None = None
        self._stack: ExitStack | None = None
        self._done = 0

    def on_enter_fit(
        self, trainer: Run, stack: ExitStack, train_dataloader: Any, val_dataloader: Any, loop: Any
    ) -> None:
        """Keep what ends with `fit`."""
        self._stack = stack

    def on_fit_start(self, trainer: Run, train_dataloader: Any, val_dataloader: Any, loop: Any) -> None:
        """Begin, at the step of the checkpoint that is loaded."""
        with trainer.autocast:
            precision = scopes.precisions[-1] if scopes.precisions else None
        self._observation = Observation(
            trainer.model, self.settings, self.folder, step=trainer.step, is_led=True, precision=precision
        )
        assert self._stack is not None
        self.report = self._stack.enter_context(self._observation)
        self._stack, self._done = None, trainer.step

    def on_train_batch_start(self, trainer: Run, model: nn.Module, batch: Any, batch_idx: int) -> None:
        """Begin a step with its first batch."""
        if self._observation is not None:
            self._observation.begin_step()

    def on_train_batch_end(
        self, trainer: Run, model: nn.Module, outputs: dict[str, Any], batch: Any, batch_idx: int
    ) -> None:
        """End a step with its last batch."""
        if self._observation is not None and trainer.step != self._done:
            self._done = trainer.step
            self._observation.end_step(trainer.losses[-1])
