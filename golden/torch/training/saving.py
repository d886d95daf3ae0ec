"""The schedule of checkpoints, and which of them stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from golden.torch.common.arguments import check_count, check_flags
from golden.torch.common.processes import rank
from golden.torch.training.callback import Callback
from golden.torch.training.checkpoint import prune_checkpoints

__all__ = ["Checkpoint", "KeepNCheckpoints"]


@dataclass(frozen=True)
class Checkpoint:
    """The schedule by which a run saves itself.

    Parameters
    ----------
    steps : int, optional
        Steps between checkpoints; one more is written at the end. None or 0: only that one.
    keep : int, optional
        Number of newest checkpoints that stay. None: all.
    autoload_last_checkpoint : bool
        Whether `fit` goes on from the newest checkpoint in `model_dir` if there is one and nothing else is said.
    save_initial_checkpoint : bool
        Whether the model is saved before its first step, too.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    steps: int | None = None
    keep: int | None = None
    autoload_last_checkpoint: bool = True
    save_initial_checkpoint: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None:
            check_count(self.steps, "steps", 0)
        if self.keep is not None:
            check_count(self.keep, "keep")
        for name in ("autoload_last_checkpoint", "save_initial_checkpoint"):
            check_flags(**{name: getattr(self, name)})


class KeepNCheckpoints(Callback):
    """Deletes all checkpoints but the newest, as ``Checkpoint(keep=n)`` does.

    Parameters
    ----------
    n : int, optional
        How many stay; None for all.
    """

    def __init__(self, n: int | None = None) -> None:
        if n is not None:
            check_count(n, "n")
        self.n = n

    def on_after_save_checkpoint(self, trainer: Any, ckpt_path: Any) -> None:
        """Delete surplus checkpoints."""
        if self.n is not None and rank() == 0:
            prune_checkpoints(Path(ckpt_path).parent, self.n)
