"""Where a run begins: at a checkpoint that is asked for or found, or afresh."""

from __future__ import annotations

from pathlib import Path
from types import EllipsisType
from typing import Any

import torch.distributed as dist
from torch import nn

from golden.torch.common.random_state import seed_everything
from golden.torch.common.ranks import rank, world_size
from golden.torch.training.checkpoint import newest_checkpoint

__all__ = ["begin_afresh", "checkpoint_to_load"]


def checkpoint_to_load(
    model_dir: Path | None,
    ckpt_path: str | Path | EllipsisType | None,
    resume: bool | str | Path,
    *,
    autoload: bool,
) -> Path | None:
    """Return the checkpoint to go on from, None to begin.

    Parameters
    ----------
    model_dir : Path or None
        Folder of the run.
    ckpt_path, resume
        As `Trainer.fit` has them; one of them.
    autoload : bool
        Whether to take the newest checkpoint, if there is one, when neither is given.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or both are given.
    FileNotFoundError
        If the newest is asked for, and there is none.
    """
    if resume is not False and ckpt_path is not ...:
        raise ValueError(f"ckpt_path: got {ckpt_path!r} beside resume {resume!r}, must be one of the two")
    given: Any = ckpt_path if resume is False else resume
    if given is ...:
        given = autoload and _has_checkpoints(model_dir)
    if given is None or given is False:
        return None
    if given is True:
        if model_dir is None:
            raise ValueError("model_dir: got None, must be the folder of the run to resume")
        return newest_checkpoint(model_dir / "checkpoints")
    if not isinstance(given, (str, Path)):
        argument = "ckpt_path" if resume is False else "resume"
        raise TypeError(f"{argument}: got {given!r}, must be the folder of a checkpoint, as a str or a Path")
    return Path(given)


def begin_afresh(model: nn.Module, model_dir: Path | None, seed: int | None) -> None:
    """Refuse to mix two runs; give all processes the weights of the first, and each its own seed."""
    if _has_checkpoints(model_dir):
        raise FileExistsError(
            f"model_dir: {model_dir} has the checkpoints of a run; pass resume=True to go on with it, or "
            "choose another folder, or delete this one"
        )
    if world_size() > 1:
        for each in (*model.parameters(), *model.buffers()):
            dist.broadcast(each.detach(), src=0)
    if seed is not None:
        seed_everything(seed + rank())  # every process drops out its own units


def _has_checkpoints(model_dir: Path | None) -> bool:
    return model_dir is not None and any((model_dir / "checkpoints").glob("step_*"))
