"""Optimizers and schedulers under the names and with the arithmetic of ``cerebras.pytorch.optim``."""

from golden.torch.amp.weights import keep_weights
from golden.torch.cerebras.adam import Adam, Adamax, AdamW, NAdam, RAdam
from golden.torch.cerebras.adaptive import Adadelta, Adafactor, Adagrad, RMSprop
from golden.torch.cerebras.configure import (
    configure_lr_scheduler,
    configure_optimizer,
    configure_optimizer_params,
    configure_scheduler_params,
)
from golden.torch.cerebras.descent import ASGD, SGD, Lion, Rprop
from golden.torch.cerebras.optimizer import Optimizer
from golden.torch.cerebras.whole_matrix import Lamb, Muon
from golden.torch.optim import lr_scheduler, scheduler, weight_decay_scheduler

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "configure_lr_scheduler",
    "configure_optimizer",
    "configure_optimizer_params",
    "configure_scheduler_params",
    "keep_weights",
    "lr_scheduler",
    "scheduler",
    "weight_decay_scheduler",
]
