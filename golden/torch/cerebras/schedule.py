"""The base of all schedules: a value of an optimizer's groups for each step, in closed form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from golden.torch.amp.scale import isfinite
from golden.torch.cerebras.optimizer import Group, Optimizer
from golden.torch.common.arguments import check_count

__all__ = ["Scheduler"]

Tags = str | None | Iterable[str | None]

#: Parameters of curves that are numbers of steps, and the least of each that a curve can take.
_STEPS = {
    "total_iters": 0,
    "warmup_steps": 0,
    **dict.fromkeys(("T_0", "T_max", "step_size", "step_size_up", "step_size_down"), 1),
}


_NO_SETTINGS = ("optimizer", "last_epoch", "schedulers")


class Scheduler(ABC):
    """Set a value of the parameter groups after every step; a subclass is a curve over the number of the step.

    The value is set for step 0 when the scheduler is made, and for the next step by `step`. After an optimizer step
    that the gradient scaler skipped, `step` stays where it is.

    Parameters
    ----------
    optimizer : Optimizer
        One of `golden.torch.optim`.
    total_iters : int, optional
        Steps of the curve, where it has an end; a sequence of schedules reads it.
    last_epoch : int
        The step before the first.
    param_group_tags : str, None or list of them, optional
        Only groups with one of these ``tags``; ``[None]`` are those without any. All groups unless given.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or no group has one of the tags.
    """

    #: Which entry of the group is set.
    param_group_key: ClassVar[str] = ""
    #: Parameters of the curve that must be larger than elsewhere.
    _least_steps: ClassVar[Mapping[str, int]] = {}
    optimizer: Any

    def __init__(
        self, optimizer: Optimizer, total_iters: int | None = None, last_epoch: int = -1, param_group_tags: Tags = None
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"optimizer: got {type(optimizer).__name__}, must be an optimizer of cstorch.optim")
        self.optimizer, self.total_iters = optimizer, total_iters
        if isinstance(param_group_tags, str):
            param_group_tags = [param_group_tags]
        self.param_group_tags = None if param_group_tags is None else set(param_group_tags)
        if not any(map(self._applies, optimizer.param_groups)):
            known = {tag for group in optimizer.param_groups for tag in group.get("tags") or [None]}
            raise ValueError(
                f"param_group_tags: got {self.param_group_tags}, must be among the tags of the groups, {known}"
            )
        self.last_epoch = last_epoch + 1
        self._set()

    def __post_init__(self, optimizer: Optimizer, param_group_tags: Tags) -> None:
        """Begin, where the parameters of a curve are the fields of a data class; raise an error if one has no sense."""
        parameters: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        for each in parameters:
            given = getattr(self, each.name)
            if each.name in _STEPS and isinstance(given, int):
                check_count(given, each.name, self._least_steps.get(each.name, _STEPS[each.name]))
            elif isinstance(given, float) and not math.isfinite(given):
                raise ValueError(f"{self._called(each.name)}: got {given}, must be finite")
        Scheduler.__init__(self, optimizer, getattr(self, "total_iters", None), param_group_tags=param_group_tags)

    def _called(self, parameter: str) -> str:
        """Return the name by which the caller knows a parameter of the curve."""
        return parameter

    def _applies(self, group: Group) -> bool:
        return self.param_group_tags is None or bool(self.param_group_tags & set(group.get("tags") or [None]))

    @abstractmethod
    def value_at(self, step: int) -> float:
        """Return the value for a step, from 0."""

    def get(self) -> list[Tensor | None]:
        """Return the value of every group, None where this scheduler sets none."""
        value = torch.tensor(float(self.value_at(self.last_epoch)))
        return [value if self._applies(group) else None for group in self.optimizer.param_groups]

    def get_last_value(self) -> list[Tensor | None]:
        """Return the values that are set."""
        return self._last_value

    def _set(self) -> None:
        self._last_value = self.get()
        for group, value in zip(self.optimizer.param_groups, self._last_value, strict=True):
            if value is not None:
                group[self.param_group_key] = value

    def advance(self) -> None:
        """Go to the next step without setting its value."""
        self.last_epoch += 1

    def step(self, *_: Any, **__: Any) -> None:
        """Set the value for the next step; arguments of PyTorch's schedulers are accepted."""
        if isfinite(self.optimizer):
            self.advance()
            self._set()

    def settings(self) -> dict[str, Any]:
        """Return the parameters of the curve, which a run that goes on must share."""
        return {name: each for name, each in vars(self).items() if name[:1] != "_" and name not in _NO_SETTINGS}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: the number of the step."""
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, and set the value.

        Raises
        ------
        ValueError
            If it has no ``last_epoch``.
        """
        if "last_epoch" not in state_dict:
            raise ValueError(f"state_dict: got {sorted(state_dict)}, must have last_epoch")
        self.last_epoch = int(state_dict["last_epoch"])
        self._set()
