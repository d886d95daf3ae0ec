"""Schedules made of schedules: one after another, multiplied, scaled by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.schedule import Scheduler, Tags
from golden.torch.common.arguments import check_items

__all__ = ["ChainedScheduler", "PiecewiseConstantScheduler", "ScalePerParamScheduler", "SequentialScheduler"]


class _Composed(Scheduler):
    """A schedule that keeps others, which advance with it and set nothing themselves."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Scheduler], last_epoch: int = -1, param_group_tags: Tags = None
    ) -> None:
        self.schedulers = list(schedulers)
        for at, each in enumerate(self.schedulers):
            if not isinstance(each, Scheduler):
                raise TypeError(f"schedulers: got {each!r} at {at}, must be a scheduler of cstorch.optim")
            if each.optimizer is not optimizer:
                raise ValueError(f"schedulers: the one at {at} is of another optimizer, must be of the same")
            if each.param_group_key != self.param_group_key:
                raise ValueError(
                    f"schedulers: the one at {at} sets {each.param_group_key}, must set {self.param_group_key}"
                )
        super().__init__(optimizer, None, last_epoch, param_group_tags)
        for at, each in enumerate(self.schedulers):
            if each.param_group_tags != self.param_group_tags:
                raise ValueError(f"param_group_tags: the scheduler at {at} has others, must have the same")

    def settings(self) -> dict[str, Any]:
        """Return its own parameters and, by number, class and parameters of the schedulers."""
        named = {str(at): {"class": type(each).__name__, **each.settings()} for at, each in enumerate(self.schedulers)}
        return {**super().settings(), **named}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, with the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [each.state_dict() for each in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        for each, state in zip(self.schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)
        super().load_state_dict(state_dict)


class SequentialScheduler(_Composed):
    """One schedule after another, each from its own step 0; milestones are the steps at which the next begins."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[Scheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
        param_group_tags: Tags = None,
    ) -> None:
        milestones = np.asarray(check_items(milestones, "milestones", "ints")).tolist()
        if not all(isinstance(each, int) for each in milestones):
            raise TypeError(f"milestones: got {milestones}, must be a list of ints")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"milestones: got {len(milestones)} for {len(schedulers)} schedulers, must be one fewer")
        if sorted(milestones) != milestones:
            raise ValueError(f"milestones: got {milestones}, must ascend: each scheduler begins where another ends")
        self.milestones = milestones
        super().__init__(optimizer, schedulers, last_epoch, param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        reached = [at for at, milestone in enumerate([0, *self.milestones]) if step >= milestone]
        begun = [0, *self.milestones][reached[-1]]
        return self.schedulers[reached[-1]].value_at(step - begun)


class PiecewiseConstantScheduler(SequentialScheduler):
    """One value after another."""

    def __init__(
        self,
        optimizer: Optimizer,
        constant_cls: Callable[..., Scheduler],
        vals: Sequence[float],
        milestones: Sequence[int],
        param_group_tags: Tags = None,
    ) -> None:
        named = {its: own for own, its in getattr(self, "renamed", {}).items()}
        schedulers = [
            constant_cls(optimizer, value, param_group_tags=param_group_tags)
            for value in check_items(vals, named.get("vals", "vals"), "numbers")
        ]
        super().__init__(optimizer, schedulers, milestones, param_group_tags=param_group_tags)


class ChainedScheduler(_Composed):
    """The first schedule times each other, as a share of what that started with."""

    def __init__(self, schedulers: Sequence[Scheduler], param_group_tags: Tags = None) -> None:
        schedulers = list(schedulers)
        if not schedulers:
            raise ValueError("schedulers: got none, must be at least one")
        for at, each in enumerate(schedulers[1:], 1):
            if isinstance(each, Scheduler) and not _start_of(each):
                raise ValueError(
                    f"schedulers: the one at {at} starts with 0, must start with another value, of which it is a share"
                )
        super().__init__(schedulers[0].optimizer, schedulers, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        value = self.schedulers[0].value_at(step)
        for each in self.schedulers[1:]:
            value *= each.value_at(step) / _start_of(each)
        return value


def _start_of(scheduler: Scheduler) -> float:
    return float(getattr(scheduler, "initial_val", None) or scheduler.value_at(0))


class ScalePerParamScheduler(_Composed):
    """A schedule times ``adjust_learning_rate`` (or ``adjust_val``) of each group, 1 where it has none."""

    def __init__(self, optimizer: Optimizer, scheduler: Scheduler, param_group_tags: Tags = None) -> None:
        self.adjustment_scalars = [
            group.get("adjust_learning_rate", group.get("adjust_val", 1.0)) for group in optimizer.param_groups
        ]
        super().__init__(optimizer, [scheduler], param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step of a group that is not scaled."""
        return self.schedulers[0].value_at(step)

    def get(self) -> list[Tensor | None]:
        """Return the value of every group."""
        scaled = zip(super().get(), self.adjustment_scalars, strict=True)
        return [None if value is None else value * scale for value, scale in scaled]
