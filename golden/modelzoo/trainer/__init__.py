"""`Trainer` where the Model Zoo has it, with its callbacks and loggers."""

from golden.torch.training.trainer import Trainer

__all__ = ["Trainer"]
