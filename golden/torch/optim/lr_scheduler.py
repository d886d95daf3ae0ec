"""Schedules of the learning rate: the curves under the names and parameters of PyTorch."""

from golden.torch.cerebras.lr_scheduler import *  # noqa: F403 - its names
from golden.torch.cerebras.lr_scheduler import __all__ as __all__
