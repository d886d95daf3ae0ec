"""How a call of `fit` ends other than after its steps: stopped by a signal, or with nothing left to do."""

from __future__ import annotations

import sys
import warnings

from golden.torch.common.ranks import rank
from golden.torch.training.interruption import RunStopped, name_of
from golden.torch.training.loop import Ending
from golden.torch.training.run import Run

__all__ = ["stopped", "warn_of_no_step"]


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

    Parameters
    ----------
    ending : Ending
        The end of the call.
    step, epoch : int
        Where the run is.
    of_fit : bool
        Whether `fit` was told the length, not the loop.
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
