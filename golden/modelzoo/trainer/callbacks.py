"""The parts of a `Trainer`, and the base class of your own callbacks."""

from golden.torch.settings.configuration import MixedPrecision
from golden.torch.training.callback import Callback
from golden.torch.training.divergence import CheckLoss, Divergence
from golden.torch.training.loggers import Logging
from golden.torch.training.loop import TrainingLoop, ValidationLoop
from golden.torch.training.saving import Checkpoint, KeepNCheckpoints

__all__ = [
    "Callback",
    "CheckLoss",
    "Checkpoint",
    "Divergence",
    "KeepNCheckpoints",
    "Logging",
    "MixedPrecision",
    "TrainingLoop",
    "ValidationLoop",
]
