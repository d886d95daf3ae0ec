"""Schedules of the weight decay: the curves, with their own parameters."""

from golden.torch.cerebras.weight_decay_scheduler import *  # noqa: F403 - its names
from golden.torch.cerebras.weight_decay_scheduler import __all__ as __all__
