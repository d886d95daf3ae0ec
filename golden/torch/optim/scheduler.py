"""All schedules by their own names, for any entry of a parameter group: a subclass sets ``param_group_key``."""

from golden.torch.cerebras.compositions import (
    ChainedScheduler,
    PiecewiseConstantScheduler,
    ScalePerParamScheduler,
    SequentialScheduler,
)
from golden.torch.cerebras.curves import (
    ConstantScheduler,
    CosineAnnealingScheduler,
    CosineAnnealingWarmRestartsScheduler,
    CosineDecayScheduler,
    ExponentialScheduler,
    InverseExponentialTimeDecayScheduler,
    InverseSquareRootDecayScheduler,
    LambdaScheduler,
    LinearScheduler,
    MultiplicativeScheduler,
    MultiStepScheduler,
    PolynomialScheduler,
    StepScheduler,
)
from golden.torch.cerebras.cycles import CyclicScheduler, OneCycleScheduler
from golden.torch.cerebras.schedule import Scheduler

__all__ = [
    "ChainedScheduler",
    "ConstantScheduler",
    "CosineAnnealingScheduler",
    "CosineAnnealingWarmRestartsScheduler",
    "CosineDecayScheduler",
    "CyclicScheduler",
    "ExponentialScheduler",
    "InverseExponentialTimeDecayScheduler",
    "InverseSquareRootDecayScheduler",
    "LambdaScheduler",
    "LinearScheduler",
    "MultiStepScheduler",
    "MultiplicativeScheduler",
    "OneCycleScheduler",
    "PiecewiseConstantScheduler",
    "PolynomialScheduler",
    "ScalePerParamScheduler",
    "Scheduler",
    "SequentialScheduler",
    "StepScheduler",
]
