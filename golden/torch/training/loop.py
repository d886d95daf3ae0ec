"""The length of a run, the batches of a step, and the interval between validations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from golden.torch.common.arguments import check_count, length_of

__all__ = ["Ending", "TrainingLoop", "ValidationLoop"]


@dataclass(frozen=True)
class ValidationLoop:
    """The extent of a validation.

    Parameters
    ----------
    eval_steps : int, optional
        Batches of one validation; None for all.
    """

    eval_steps: int | None = None

    def __post_init__(self) -> None:
        if self.eval_steps is not None:
            check_count(self.eval_steps, "eval_steps")


@dataclass(frozen=True)
class Ending:
    """The end of a call of `fit`: a step or an epoch, counted from the beginning of the run."""

    step: float = math.inf
    epoch: float = math.inf

    def reached(self, step: int, epoch: int) -> bool:
        """Return whether a run that has come so far is at its end."""
        return step >= self.step or epoch >= self.epoch


@dataclass(frozen=True)
class TrainingLoop:
    """The length of a run; a step is one update of the weights.

    Parameters
    ----------
    num_steps : int, optional
        Steps of one call of `fit`.
    max_steps : int, optional
        Steps of the whole run, those before a resume included.
    num_epochs : int, optional
        Epochs of the whole run; not beside `num_steps`.
    steps_per_epoch : int, optional
        Steps in an epoch, even if the data loader has more batches.
    eval_frequency : int, float or None
        Steps between validations. A float up to 1.0 is a part of the run: 0.5 validates in its middle and at
        its end. None or 0: never.
    eval_steps : int, optional
        Batches of a validation; None for all.
    grad_accum_steps : int
        Batches whose gradients are added up for one step; the loss of the step is the mean of theirs. The last step of
        an epoch has fewer if the number of batches is no multiple.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    num_steps: int | None = None
    max_steps: int | None = None
    num_epochs: int | None = None
    steps_per_epoch: int | None = None
    eval_frequency: int | float | None = 1.0
    eval_steps: int | None = None
    grad_accum_steps: int = 1

    def __post_init__(self) -> None:
        for name in ("num_steps", "max_steps", "num_epochs", "steps_per_epoch"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        check_count(self.grad_accum_steps, "grad_accum_steps")
        if self.num_steps is not None and self.num_epochs is not None:
            raise ValueError(
                f"num_epochs: got {self.num_epochs} beside num_steps {self.num_steps}, must be None then; a run ends "
                "after steps or after epochs"
            )
        frequency = self.eval_frequency
        if isinstance(frequency, float):
            if not 0 <= frequency <= 1:
                raise ValueError(
                    f"eval_frequency: got {frequency}, must be an int of steps, or a part of the run from 0.0 to 1.0"
                )
        elif frequency is not None:
            check_count(frequency, "eval_frequency", 0)
        ValidationLoop(self.eval_steps)

    @property
    def val_loop(self) -> ValidationLoop:
        """The extent of a validation within the run."""
        return ValidationLoop(self.eval_steps)

    def ending(self, step: int) -> Ending:
        """Return when a call of `fit` ends that begins after this step.

        Raises
        ------
        ValueError
            If the loop does not say it.
        """
        steps = [self.max_steps, None if self.num_steps is None else step + self.num_steps]
        given = [each for each in steps if each is not None]
        if not given and self.num_epochs is None:
            raise ValueError("loop: has no length, must have num_steps, max_steps or num_epochs")
        return Ending(min(given, default=math.inf), math.inf if self.num_epochs is None else self.num_epochs)

    def steps_of_epoch(self, loader: Iterable[Any]) -> int | None:
        """Return how many steps an epoch has, None if the data loader does not know its length."""
        batches = length_of(loader)
        if batches is None:
            return self.steps_per_epoch
        whole = -(-batches // self.grad_accum_steps)
        return whole if self.steps_per_epoch is None else min(whole, self.steps_per_epoch)

    def total(self, ending: Ending, loader: Iterable[Any]) -> int | None:
        """Return after how many steps the run ends, None if that is not known before."""
        epoch = self.steps_of_epoch(loader)
        by_epochs = math.inf if epoch is None or ending.epoch == math.inf else ending.epoch * epoch
        total = min(ending.step, by_epochs)
        return None if total == math.inf else int(total)

    def validates_after(self, step: int, begun: int, total: int | None) -> bool:
        """Return whether a validation is due after this step of a run that `fit` began at step `begun`."""
        if not self.eval_frequency:
            return False
        if not isinstance(self.eval_frequency, float):
            return step % self.eval_frequency == 0 or step == total
        if total is None:
            return False  # at the end of fit, whenever that is
        every = max(1, round(self.eval_frequency * (total - begun)))
        return (step - begun) % every == 0 or step == total
