"""Schedules in closed form over the number of the step, from 0."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

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


@dataclass(eq=False, repr=False)
class ConstantScheduler(Scheduler):
    """Always `val`."""

    optimizer: InitVar[Optimizer]
    val: float
    total_iters: int | None = None
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return self.val


@dataclass(eq=False, repr=False)
class PolynomialScheduler(Scheduler):
    """From `initial_val` to `end_val` in `total_iters` steps, by a power of the share that is left.

    With `cycle` the original stretches the curve to the next multiple of `total_iters`, but ends it there all the same.
    """

    optimizer: InitVar[Optimizer]
    initial_val: float
    end_val: float
    total_iters: int
    power: float = 1.0
    cycle: bool = False
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        if step >= self.total_iters:
            return self.end_val
        stretch = math.ceil((step + 1) / self.total_iters) if self.cycle else 1
        left = 1 - step / (self.total_iters * stretch)
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


@dataclass(eq=False, repr=False)
class ExponentialScheduler(Scheduler):
    """`initial_val` times `decay_rate` once in `total_iters` steps, smoothly or, with `staircase`, at once."""

    _least_steps: ClassVar = {"total_iters": 1}
    optimizer: InitVar[Optimizer]
    initial_val: float
    total_iters: int
    decay_rate: float
    staircase: bool = False
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        power = step // self.total_iters if self.staircase else step / self.total_iters
        return float(self.initial_val * self.decay_rate**power)


@dataclass(eq=False, repr=False)
class InverseExponentialTimeDecayScheduler(Scheduler):
    """`initial_val` over 1 plus `decay_rate` times ``step ** step_exponent / total_iters``."""

    _least_steps: ClassVar = {"total_iters": 1}
    optimizer: InitVar[Optimizer]
    initial_val: float
    step_exponent: int
    total_iters: int
    decay_rate: float
    staircase: bool = False
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        share = step**self.step_exponent / self.total_iters
        return self.initial_val / (1 + self.decay_rate * (math.floor(share) if self.staircase else share))


@dataclass(eq=False, repr=False)
class InverseSquareRootDecayScheduler(Scheduler):
    """`initial_val` times `scale` over the root of the step, which counts as `warmup_steps` at least."""

    optimizer: InitVar[Optimizer]
    initial_val: float = 1.0
    scale: float = 1.0
    warmup_steps: float = 1.0
    param_group_tags: InitVar[Tags] = None

    def __post_init__(self, optimizer: Optimizer, param_group_tags: Tags) -> None:
        if not self.warmup_steps > 0:
            raise ValueError(f"warmup_steps: got {self.warmup_steps}, must be above 0")
        super().__post_init__(optimizer, param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return self.initial_val * self.scale / math.sqrt(max(self.warmup_steps, step))


@dataclass(eq=False, repr=False)
class CosineDecayScheduler(Scheduler):
    """Half a cosine from `initial_val` to `end_val` in `total_iters` steps."""

    _least_steps: ClassVar = {"total_iters": 1}
    optimizer: InitVar[Optimizer]
    initial_val: float
    end_val: float
    total_iters: int
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        left = (1 + math.cos(math.pi * min(step, self.total_iters) / self.total_iters)) / 2
        return left * (self.initial_val - self.end_val) + self.end_val


@dataclass(eq=False, repr=False)
class CosineAnnealingScheduler(Scheduler):
    """A cosine between `initial_val` and `eta_min`, `T_max` steps down and as many up again."""

    optimizer: InitVar[Optimizer]
    initial_val: float
    T_max: int
    eta_min: float = 0.0
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return (1 + math.cos(math.pi * step / self.T_max)) / 2 * (self.initial_val - self.eta_min) + self.eta_min


@dataclass(eq=False, repr=False)
class CosineAnnealingWarmRestartsScheduler(Scheduler):
    """Half a cosine from `initial_val` to `eta_min`, anew after every `T_0` steps.

    The original takes ``T_mult=1`` alone. After the first restart it takes a multiple of `T_0` for the steps since that
    restart, which is put right here.
    """

    optimizer: InitVar[Optimizer]
    initial_val: float
    T_0: int
    T_mult: int = 1
    eta_min: float = 0.0
    param_group_tags: InitVar[Tags] = None

    def __post_init__(self, optimizer: Optimizer, param_group_tags: Tags) -> None:
        if self.T_mult != 1:
            raise ValueError(f"T_mult: got {self.T_mult}, must be 1")
        super().__post_init__(optimizer, param_group_tags)

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        since = step % self.T_0
        return (1 + math.cos(math.pi * since / self.T_0)) / 2 * (self.initial_val - self.eta_min) + self.eta_min


@dataclass(eq=False, repr=False)
class MultiStepScheduler(Scheduler):
    """`initial_val` times `gamma` for every milestone that is reached."""

    optimizer: InitVar[Optimizer]
    initial_val: float
    gamma: float
    milestones: list[int]
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.gamma ** bisect.bisect_right(sorted(self.milestones), step))


@dataclass(eq=False, repr=False)
class StepScheduler(Scheduler):
    """`initial_val` times `gamma` after every `step_size` steps."""

    optimizer: InitVar[Optimizer]
    initial_val: float
    step_size: int
    gamma: float
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.gamma ** (step // self.step_size))


@dataclass(eq=False, repr=False)
class MultiplicativeScheduler(Scheduler):
    """`initial_val` times `coefficient` after every step."""

    optimizer: InitVar[Optimizer]
    initial_val: float
    coefficient: float
    param_group_tags: InitVar[Tags] = None

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        return float(self.initial_val * self.coefficient**step)


@dataclass(eq=False, repr=False)
class LambdaScheduler(Scheduler):
    """The product of `initial_val` times each function that `set_value_lambda`, to be overridden, returns."""

    optimizer: InitVar[Optimizer]
    initial_val: float
    param_group_tags: InitVar[Tags] = None

    def set_value_lambda(self) -> list[Callable[[Tensor], Any]]:
        """Return functions of the step, a tensor of int64; these come from the original."""
        return [lambda epoch: epoch / 30, lambda epoch: 0.95**epoch]

    def value_at(self, step: int) -> float:
        """Return the value for a step."""
        epoch = torch.tensor(step)
        return math.prod(self.initial_val * float(each(epoch)) for each in self.set_value_lambda())
