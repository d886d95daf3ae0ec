"""Models, data, a loss and callbacks that the run files of the tests name by import path."""

import os

import torch
from pydantic import BaseModel
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from golden.torch.training.callback import Callback


class Net(nn.Module):
    def __init__(self, hidden: int = 8, classes: int = 3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.layers(x)


class Zoo(nn.Module):
    """Shaped after the models of the Model Zoo: one `config`, and a forward that gives the loss of a batch."""

    def __init__(self, config):
        super().__init__()
        self.net = Net(config.hidden)
        self.read_as_mapping = config["hidden"]

    def forward(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)


class Config(BaseModel):
    hidden: int = 8


class Typed(Zoo):
    def __init__(self, config: Config):
        nn.Module.__init__(self)
        self.net = Net(config.hidden)


def data(examples: int = 24, seed: int = 3):
    fixed = torch.Generator().manual_seed(seed)
    return TensorDataset(torch.randn(examples, 4, generator=fixed), torch.randint(3, (examples,), generator=fixed))


class Processor:
    """Shaped after the data processors of the Model Zoo."""

    def __init__(self, config):
        self.config = config

    def create_dataloader(self):
        return DataLoader(data(), self.config["batch_size"])


class SignalAfter(Callback):
    """Sends the process a signal in the middle of a step."""

    def __init__(self, step: int, signal: int):
        self.step, self.signal = step, signal

    def on_before_backward(self, trainer, model, outputs):
        if trainer.step == self.step - 1:
            os.kill(os.getpid(), self.signal)
