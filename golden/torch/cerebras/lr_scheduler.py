"""Schedules of the learning rate: the curves under the names and parameters of PyTorch."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from golden.torch.cerebras import compositions, curves, cycles
from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.schedule import Scheduler

__all__ = [
    "ChainedLR",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CosineDecayLR",
    "CyclicLR",
    "ExponentialLR",
    "InverseExponentialTimeDecayLR",
    "InverseSquareRootDecayLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PiecewiseConstantLR",
    "PolynomialLR",
    "ScalePerParamLR",
    "SequentialLR",
    "StepLR",
]


class LRScheduler(Scheduler, torch.optim.lr_scheduler.LRScheduler):
    """A schedule of the learning rate.

    Subclasses have the parameters of their curve, in the same order. Some have other names: ``learning_rate`` for
    ``val``, ``initial_learning_rate`` and ``end_learning_rate`` for ``initial_val`` and ``end_val``. ``base_lr`` and
    ``max_lr`` stand for ``base_val`` and ``max_val``, ``learning_rates`` for ``vals``.
    """

    param_group_key = "lr"
    #: Parameter of the learning rate's schedule -> of the curve.
    renamed: ClassVar[dict[str, str]] = {
        "learning_rate": "val",
        "initial_learning_rate": "initial_val",
        "end_learning_rate": "end_val",
        "base_lr": "base_val",
        "max_lr": "max_val",
        "learning_rates": "vals",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for own, name in self.renamed.items():
            if own in kwargs and name in kwargs:
                raise ValueError(f"{own}: got {kwargs[own]} beside {name} {kwargs[name]}, two names of one parameter")
        super().__init__(*args, **{self.renamed.get(name, name): value for name, value in kwargs.items()})

    def _called(self, parameter: str) -> str:
        return next((own for own, its in self.renamed.items() if its == parameter), parameter)

    def __getattr__(self, name: str) -> Any:
        if name in LRScheduler.renamed:
            return getattr(self, LRScheduler.renamed[name])
        raise AttributeError(f"{name}: {type(self).__name__} has no such attribute")

    def get_last_lr(self) -> list[Any]:
        """Return the learning rate of every group, a tensor without axes."""
        return self.get_last_value()

    def get_lr(self) -> list[Any]:
        """Return the learning rate of every group for the step under way."""
        return self.get()


class ConstantLR(LRScheduler, curves.ConstantScheduler):
    """Always `learning_rate`."""


class PolynomialLR(LRScheduler, curves.PolynomialScheduler):
    """As `golden.torch.optim.scheduler.PolynomialScheduler`."""


class LinearLR(LRScheduler, curves.LinearScheduler):
    """As `golden.torch.optim.scheduler.LinearScheduler`."""


class ExponentialLR(LRScheduler, curves.ExponentialScheduler):
    """As `golden.torch.optim.scheduler.ExponentialScheduler`."""


class InverseExponentialTimeDecayLR(LRScheduler, curves.InverseExponentialTimeDecayScheduler):
    """As `golden.torch.optim.scheduler.InverseExponentialTimeDecayScheduler`."""


class InverseSquareRootDecayLR(LRScheduler, curves.InverseSquareRootDecayScheduler):
    """As `golden.torch.optim.scheduler.InverseSquareRootDecayScheduler`."""


class CosineDecayLR(LRScheduler, curves.CosineDecayScheduler):
    """As `golden.torch.optim.scheduler.CosineDecayScheduler`."""


class CosineAnnealingLR(LRScheduler, curves.CosineAnnealingScheduler):
    """As `golden.torch.optim.scheduler.CosineAnnealingScheduler`."""


class CosineAnnealingWarmRestarts(LRScheduler, curves.CosineAnnealingWarmRestartsScheduler):
    """As `golden.torch.optim.scheduler.CosineAnnealingWarmRestartsScheduler`."""


class MultiStepLR(LRScheduler, curves.MultiStepScheduler):
    """As `golden.torch.optim.scheduler.MultiStepScheduler`."""


class StepLR(LRScheduler, curves.StepScheduler):
    """As `golden.torch.optim.scheduler.StepScheduler`."""


class MultiplicativeLR(LRScheduler, curves.MultiplicativeScheduler):
    """As `golden.torch.optim.scheduler.MultiplicativeScheduler`."""


class LambdaLR(LRScheduler, curves.LambdaScheduler):
    """As `golden.torch.optim.scheduler.LambdaScheduler`."""


class CyclicLR(LRScheduler, cycles.CyclicScheduler):
    """As `golden.torch.optim.scheduler.CyclicScheduler`."""


class OneCycleLR(LRScheduler, cycles.OneCycleScheduler):
    """As `golden.torch.optim.scheduler.OneCycleScheduler`."""


class SequentialLR(LRScheduler, compositions.SequentialScheduler):
    """As `golden.torch.optim.scheduler.SequentialScheduler`."""


class PiecewiseConstantLR(LRScheduler, compositions.PiecewiseConstantScheduler):
    """`learning_rates` one after another, from `milestones` on."""

    def __init__(
        self, optimizer: Optimizer, learning_rates: Any, milestones: Any, param_group_tags: Any = None
    ) -> None:
        super().__init__(
            optimizer, ConstantLR, vals=learning_rates, milestones=milestones, param_group_tags=param_group_tags
        )


class ChainedLR(LRScheduler, compositions.ChainedScheduler):
    """As `golden.torch.optim.scheduler.ChainedScheduler`."""


#: Under the name of PyTorch.
ChainedScheduler = ChainedLR


class ScalePerParamLR(LRScheduler, compositions.ScalePerParamScheduler):
    """As `golden.torch.optim.scheduler.ScalePerParamScheduler`."""
