"""The names of the Model Zoo's trainer: a script changes ``from cerebras.modelzoo`` to ``from golden.modelzoo``."""

from golden.torch.training.trainer import Trainer

__all__ = ["Trainer"]
