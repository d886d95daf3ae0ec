"""A small training run with everything random in it, for the tests of the Trainer."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from golden.torch import MixedPrecision, Trainer


class Noisy(Dataset):
    """Examples that depend on all three global generators, as an augmented data set's do."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        noise = torch.rand(4) + random.random() + np.random.random()  # noqa: NPY002
        return noise + index / 10, torch.tensor(index % 3)


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))


PRECISION = MixedPrecision(
    fp16_type="cbfloat16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**31, steps_per_increase=2
)


def run(folder, *, precision=PRECISION, net=None, loader=None, optimizer=torch.optim.AdamW, **arguments):
    """Return a trainer and its data loader, always in the same state."""
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    net = net or model()
    trainer = Trainer(
        net,
        optimizer(net.parameters(), lr=0.01),
        nn.functional.cross_entropy,
        precision,
        model_dir=folder,
        progress=False,
        **arguments,
    )
    return trainer, loader if loader is not None else DataLoader(Noisy(), batch_size=3, shuffle=True)


def bits(trainer):
    """Return the bits of all that a run has changed."""
    optimizer = [
        value.tolist() if isinstance(value, torch.Tensor) else value
        for state in trainer.optimizer.state.values()
        for value in state.values()
    ]
    weights = [each.detach().view(torch.int32).tolist() for each in trainer.model.parameters()]
    return weights, optimizer, trainer.scaler.state_dict(), trainer.step, torch.get_rng_state().tolist()
