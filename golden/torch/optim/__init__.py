"""Optimizers and schedulers under the names and with the arithmetic of ``cerebras.pytorch.optim``."""

from golden.torch.amp.weights import keep_weights
from golden.torch.cerebras import adam, adaptive, configure, descent
from golden.torch.cerebras.adam import *  # noqa: F403 - its names; so the next three
from golden.torch.cerebras.adaptive import *  # noqa: F403
from golden.torch.cerebras.configure import *  # noqa: F403
from golden.torch.cerebras.descent import *  # noqa: F403
from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.optim import lr_scheduler, scheduler, weight_decay_scheduler

__all__ = ["Optimizer", "keep_weights", "lr_scheduler", "scheduler", "weight_decay_scheduler"]
__all__ += adam.__all__
__all__ += adaptive.__all__
__all__ += configure.__all__
__all__ += descent.__all__
