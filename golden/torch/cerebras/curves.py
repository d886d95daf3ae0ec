"""Schedules in closed form over the number of the step, from 0."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.schedule import Scheduler, Tags

__all__ = [
    "ConstantScheduler",
    "CosineAnnealingScheduler",
    "CosineAnnealingWarmRestartsScheduler",
    "CosineDecayScheduler",
    "ExponentialScheduler",
    "InverseExponentialTimeDecayScheduler",
    "InverseSquareRootDecayScheduler",
    "LambdaScheduler",
    "LinearScheduler",
    "MultiStepScheduler",
    "MultiplicativeScheduler",
    "PolynomialScheduler",
    "StepScheduler",
]


class ConstantScheduler(Scheduler):
    """Always `val`."""

    def __init__(
        self, optimizer: Optimizer, val: float, total_iters: int | None = None, param_group_tags: Tags = None
    ) -> None:
        self.val = val
        super().__init__(optimizer, total_iters, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return self.val


class PolynomialScheduler(Scheduler):
    """From `initial_val` to `end_val` in `total_iters` steps, by a power of the share that is left.

    With `cycle` the original stretches the curve to the next multiple of `total_iters`, but ends it there all the same.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        end_val: float,
        total_iters: int,
        power: float = 1.0,
        cycle: bool = False,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.end_val, self.power, self.cycle = initial_val, end_val, power, cycle
        self._steps = total_iters
        super().__init__(optimizer, total_iters, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        if step >= self._steps:
            return self.end_val
        stretch = math.ceil((step + 1) / self._steps) if self.cycle else 1
        left = 1 - step / (self._steps * stretch)
        return float(left**self.power * (self.initial_val - self.end_val) + self.end_val)


class LinearScheduler(PolynomialScheduler):
    """A straight line from `initial_val` to `end_val` in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        end_val: float,
        total_iters: int,
        cycle: bool = False,
        param_group_tags: Tags = None,
    ) -> None:
        super().__init__(optimizer, initial_val, end_val, total_iters, 1.0, cycle, param_group_tags)


class ExponentialScheduler(Scheduler):
    """`initial_val` times `decay_rate` once in `total_iters` steps, smoothly or, with `staircase`, at once."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        total_iters: int,
        decay_rate: float,
        staircase: bool = False,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.decay_rate, self.staircase, self._steps = initial_val, decay_rate, staircase, total_iters
        super().__init__(optimizer, total_iters, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        power = step // self._steps if self.staircase else step / self._steps
        return float(self.initial_val * self.decay_rate**power)


class InverseExponentialTimeDecayScheduler(Scheduler):
    """`initial_val` over 1 plus `decay_rate` times ``step ** step_exponent / total_iters``."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        step_exponent: int,
        total_iters: int,
        decay_rate: float,
        staircase: bool = False,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.step_exponent, self.decay_rate = initial_val, step_exponent, decay_rate
        self.staircase, self._steps = staircase, total_iters
        super().__init__(optimizer, total_iters, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        share = step**self.step_exponent / self._steps
        return self.initial_val / (1 + self.decay_rate * (math.floor(share) if self.staircase else share))


class InverseSquareRootDecayScheduler(Scheduler):
    """`initial_val` times `scale` over the root of the step, which counts as `warmup_steps` at least."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float = 1.0,
        scale: float = 1.0,
        warmup_steps: float = 1.0,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.scale, self.warmup_steps = initial_val, scale, warmup_steps
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return self.initial_val * self.scale / math.sqrt(max(self.warmup_steps, step))


class CosineDecayScheduler(Scheduler):
    """Half a cosine from `initial_val` to `end_val` in `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        end_val: float,
        total_iters: int,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.end_val, self._steps = initial_val, end_val, total_iters
        super().__init__(optimizer, total_iters, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        left = (1 + math.cos(math.pi * min(step, self._steps) / self._steps)) / 2
        return left * (self.initial_val - self.end_val) + self.end_val


class CosineAnnealingScheduler(Scheduler):
    """A cosine between `initial_val` and `eta_min`, `T_max` steps down and as many up again."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        T_max: int,
        eta_min: float = 0.0,
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.T_max, self.eta_min = initial_val, T_max, eta_min
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return (1 + math.cos(math.pi * step / self.T_max)) / 2 * (self.initial_val - self.eta_min) + self.eta_min


class CosineAnnealingWarmRestartsScheduler(Scheduler):
    """Half a cosine from `initial_val` to `eta_min`, anew after every `T_0` steps.

    The original takes ``T_mult=1`` alone. After the first restart it takes a multiple of `T_0` for the steps since that
    restart, which is put right here.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        param_group_tags: Tags = None,
    ) -> None:
        if T_mult != 1:
            raise ValueError(f"T_mult: got {T_mult}, must be 1")
        self.initial_val, self.T_0, self.T_mult, self.eta_min = initial_val, T_0, T_mult, eta_min
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        since = step % self.T_0
        return (1 + math.cos(math.pi * since / self.T_0)) / 2 * (self.initial_val - self.eta_min) + self.eta_min


class MultiStepScheduler(Scheduler):
    """`initial_val` times `gamma` for every milestone that is reached."""

    def __init__(
        self,
        optimizer: Optimizer,
        initial_val: float,
        gamma: float,
        milestones: list[int],
        param_group_tags: Tags = None,
    ) -> None:
        self.initial_val, self.gamma, self.milestones = initial_val, gamma, list(milestones)
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.gamma ** bisect.bisect_right(sorted(self.milestones), step))


class StepScheduler(Scheduler):
    """`initial_val` times `gamma` after every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, initial_val: float, step_size: int, gamma: float, param_group_tags: Tags = None
    ) -> None:
        self.initial_val, self.step_size, self.gamma = initial_val, step_size, gamma
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.gamma ** (step // self.step_size))


class MultiplicativeScheduler(Scheduler):
    """`initial_val` times `coefficient` after every step."""

    def __init__(
        self, optimizer: Optimizer, initial_val: float, coefficient: float, param_group_tags: Tags = None
    ) -> None:
        self.initial_val, self.coefficient = initial_val, coefficient
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.coefficient**step)


class LambdaScheduler(Scheduler):
    """The product of `initial_val` times each function that `set_value_lambda`, to be overridden, returns."""

    def __init__(self, optimizer: Optimizer, initial_val: float, param_group_tags: Tags = None) -> None:
        self.initial_val = initial_val
        super().__init__(optimizer, param_group_tags=param_group_tags)

    def set_value_lambda(self) -> list[Callable[[Tensor], Any]]:
        """Return functions of the step, a tensor of int64; these come from the original."""
        return [lambda epoch: epoch / 30, lambda epoch: 0.95**epoch]

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        epoch = torch.tensor(step)
        return math.prod(self.initial_val * float(each(epoch)) for each in self.set_value_lambda())
