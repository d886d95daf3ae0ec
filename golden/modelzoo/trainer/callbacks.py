"""The parts of a `Trainer`, and the base class of your own callbacks.

The callbacks of the Model Zoo that have no effect here can be imported, too; the others say why they cannot.
"""

from golden.torch.amp.configuration import MixedPrecision
from golden.torch.training.callback import Callback
from golden.torch.training.divergence import CheckLoss, Divergence
from golden.torch.training.loggers import Logging
from golden.torch.training.loop import TrainingLoop, ValidationLoop
from golden.torch.training.saving import Checkpoint, KeepNCheckpoints
from golden.torch.training.zoo_callbacks import (
    ComputeNorm,
    GlobalFlags,
    LoadCheckpointStates,
    LogOptimizerParamGroup,
    ScopedTrainFlags,
    ScopedValidateFlags,
)
from golden.torch.training.zoo_callbacks import callback_named as __getattr__  # noqa: F401 - for the other names

__all__ = [
    "Callback",
    "CheckLoss",
    "Checkpoint",
    "ComputeNorm",
    "Divergence",
    "GlobalFlags",
    "KeepNCheckpoints",
    "LoadCheckpointStates",
    "LogOptimizerParamGroup",
    "Logging",
    "MixedPrecision",
    "ScopedTrainFlags",
    "ScopedValidateFlags",
    "TrainingLoop",
    "ValidationLoop",
]
