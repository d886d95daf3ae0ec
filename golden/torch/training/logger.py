"""The base of loggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.torch.training.callback import Callback

__all__ = ["Logger"]


class Logger(Callback):
    """Base of a logger: a callback that also takes figures. It is asked on process 0 only."""

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Take figures by their names."""

    def log_step(self, row: Mapping[str, Any], step: int) -> None:
        """Take what the run tells of a step: ``loss`` and ``loss_scale`` among others; numbers go to `log_metrics`."""
        self.log_metrics({name: each for name, each in row.items() if isinstance(each, (int, float))}, step)

    def flush(self) -> None:
        """Write what is not yet on disk; run at the end of `fit` and of a validation, whatever ends them."""
