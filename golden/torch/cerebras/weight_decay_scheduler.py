"""Schedules of the weight decay: the curves, with their own parameters."""

from __future__ import annotations

from typing import Any

from golden.torch.cerebras import compositions, curves, cycles
from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.schedule import Scheduler

__all__ = [
    "ChainedWD",
    "ConstantWD",
    "CosineAnnealingWD",
    "CosineAnnealingWarmRestartsWD",
    "CosineDecayWD",
    "CyclicWD",
    "ExponentialWD",
    "InverseExponentialTimeDecayWD",
    "InverseSquareRootDecayWD",
    "LambdaWD",
    "LinearWD",
    "MultiStepWD",
    "MultiplicativeWD",
    "OneCycleWD",
    "PiecewiseConstantWD",
    "PolynomialWD",
    "ScalePerParamWD",
    "SequentialWD",
    "StepWD",
    "WeightDecayScheduler",
]


class WeightDecayScheduler(Scheduler):
    """A schedule of the weight decay."""

    param_group_key = "weight_decay"


class ConstantWD(WeightDecayScheduler, curves.ConstantScheduler):
    """As `golden.torch.optim.scheduler.ConstantScheduler`."""


class PolynomialWD(WeightDecayScheduler, curves.PolynomialScheduler):
    """As `golden.torch.optim.scheduler.PolynomialScheduler`."""


class LinearWD(WeightDecayScheduler, curves.LinearScheduler):
    """As `golden.torch.optim.scheduler.LinearScheduler`."""


class ExponentialWD(WeightDecayScheduler, curves.ExponentialScheduler):
    """As `golden.torch.optim.scheduler.ExponentialScheduler`."""


class InverseExponentialTimeDecayWD(WeightDecayScheduler, curves.InverseExponentialTimeDecayScheduler):
    """As `golden.torch.optim.scheduler.InverseExponentialTimeDecayScheduler`."""


class InverseSquareRootDecayWD(WeightDecayScheduler, curves.InverseSquareRootDecayScheduler):
    """As `golden.torch.optim.scheduler.InverseSquareRootDecayScheduler`."""


class CosineDecayWD(WeightDecayScheduler, curves.CosineDecayScheduler):
    """As `golden.torch.optim.scheduler.CosineDecayScheduler`."""


class CosineAnnealingWD(WeightDecayScheduler, curves.CosineAnnealingScheduler):
    """As `golden.torch.optim.scheduler.CosineAnnealingScheduler`."""


class CosineAnnealingWarmRestartsWD(WeightDecayScheduler, curves.CosineAnnealingWarmRestartsScheduler):
    """As `golden.torch.optim.scheduler.CosineAnnealingWarmRestartsScheduler`."""


class MultiStepWD(WeightDecayScheduler, curves.MultiStepScheduler):
    """As `golden.torch.optim.scheduler.MultiStepScheduler`."""


class StepWD(WeightDecayScheduler, curves.StepScheduler):
    """As `golden.torch.optim.scheduler.StepScheduler`."""


class MultiplicativeWD(WeightDecayScheduler, curves.MultiplicativeScheduler):
    """As `golden.torch.optim.scheduler.MultiplicativeScheduler`."""


class LambdaWD(WeightDecayScheduler, curves.LambdaScheduler):
    """As `golden.torch.optim.scheduler.LambdaScheduler`."""


class CyclicWD(WeightDecayScheduler, cycles.CyclicScheduler):
    """As `golden.torch.optim.scheduler.CyclicScheduler`."""


class OneCycleWD(WeightDecayScheduler, cycles.OneCycleScheduler):
    """As `golden.torch.optim.scheduler.OneCycleScheduler`."""


class SequentialWD(WeightDecayScheduler, compositions.SequentialScheduler):
    """As `golden.torch.optim.scheduler.SequentialScheduler`."""


class ChainedWD(WeightDecayScheduler, compositions.ChainedScheduler):
    """As `golden.torch.optim.scheduler.ChainedScheduler`."""


class ScalePerParamWD(WeightDecayScheduler, compositions.ScalePerParamScheduler):
    """As `golden.torch.optim.scheduler.ScalePerParamScheduler`."""


class PiecewiseConstantWD(WeightDecayScheduler, compositions.PiecewiseConstantScheduler):
    """`vals` one after another, from `milestones` on."""

    def __init__(self, optimizer: Optimizer, vals: Any, milestones: Any, param_group_tags: Any = None) -> None:
        super().__init__(optimizer, ConstantWD, vals, milestones, param_group_tags)
