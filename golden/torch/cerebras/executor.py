"""The run under way, as those see it who ask the backend for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from golden.torch.cerebras.cluster import CSConfig

__all__ = ["Executor"]


class Executor(Protocol):
    """A data executor that is being iterated, such as `golden.torch.utils.data.DataExecutor`.

    Attributes
    ----------
    cs_config : CSConfig or None
        Its ``precision_opt_level`` is the level of the run.
    writer : object
        Where scalars are written, None for nowhere.
    num_steps : int
        Steps of the run.
    """

    cs_config: CSConfig | None
    writer: Any
    num_steps: int

    @property
    def iteration(self) -> int:
        """The step under way, from 0; -1 before the first."""

    @property
    def user_iteration(self) -> int:
        """The step under way, from 1."""

    @property
    def is_pre_initial_step(self) -> bool:
        """Whether the run has not made its first step yet."""

    @property
    def is_initial_step(self) -> bool:
        """Whether the step under way is the first."""

    @property
    def on_final_iteration(self) -> bool:
        """Whether the step under way is the last."""

    @property
    def is_checkpoint_step(self) -> bool:
        """Whether checkpoint closures run at the end of this step."""

    @property
    def artifact_dir(self) -> Path:
        """Folder of this run below that of the backend."""
