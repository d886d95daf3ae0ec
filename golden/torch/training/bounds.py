"""How a call of `fit` begins and ends.

It begins at a checkpoint or afresh. It may end early: a signal stops it, or there is nothing left to do.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import EllipsisType
from typing import Any

import torch.distributed as dist
from torch import nn

from golden.torch.common.processes import rank, seed_everything, world_size
from golden.torch.training.checkpoint import newest_checkpoint
from golden.torch.training.interruption import RunStopped, name_of
from golden.torch.training.loop import Ending
from golden.torch.training.run import Run

__all__ = ["begin_afresh", "checkpoint_to_load", "stopped", "warn_of_no_step"]


def checkpoint_to_load(
    model_dir: Path | None,
    ckpt_path: str | Path | EllipsisType | None,
    resume: bool | str | Path,
    *,
    autoload: bool,
) -> Path | None:
    """Return the checkpoint to go on from, None to begin; `ckpt_path` and `resume` are those of `Trainer.fit`.

    With `autoload`, the newest checkpoint is taken, if there is one, when neither is given.
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


def stopped(trainer: Run, signal: int) -> RunStopped:
    """Say in one line how a signal has ended the run; return the error to raise."""
    saved = "no step was trained"
    if trainer.losses:
        saved = "nothing is saved without a model_dir"
        if trainer.model_dir is not None:
            folder = trainer.model_dir / "checkpoints" / f"step_{trainer.step:08}"
            saved = f"{folder} is saved, resume to go on from there"
    if rank() == 0:
        print(f"stopped by {name_of(signal)} after step {trainer.step}: {saved}", file=sys.stderr)
    return RunStopped(128 + signal)


def warn_of_no_step(ending: Ending, step: int, epoch: int, *, of_fit: bool) -> None:
    """Warn that a call of `fit` has made no step, because the run had come to the end of this call before.

    With `of_fit`, `fit` was told the length, and not the loop.
    """
    if rank():
        return
    if step >= ending.step:
        unit, done, end, argument = "step", step, int(ending.step), "steps" if of_fit else "loop.max_steps"
    else:
        unit, done, end, argument = "epoch", epoch, int(ending.epoch), "epochs" if of_fit else "loop.num_epochs"
    warnings.warn(
        f"{argument}: got {end} for a run that has made {_count(done, unit)} already: this fit makes no step; it is "
        f"counted from the beginning of the run, must be more than {done}, "
        f"as {done + end} for {_count(end, unit)} more",
        stacklevel=3,
    )


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
