"""Handwritten digits, 8 × 8 pixels: 1,797 images that are part of scikit-learn."""

from __future__ import annotations

import itertools
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from golden.torch.common.section import Section
from golden.torch.examples.blocks import Blocks
from golden.torch.examples.task import Task

__all__ = ["DigitsCnn", "DigitsMlp", "digits"]

_VALIDATION = 360  # images, one in five


class DigitsMlp(Section):
    """Fully connected layers with ReLU between them, on request of blocks of narrow numbers."""

    name: Literal["digits_mlp"]
    hidden: tuple[PositiveInt, ...] = (64, 64)
    blocks: Blocks | None = None

    def task(self) -> Task:
        """Return the model with the data."""
        widths = (64, *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Linear(widths[-1], 10))
        return _task(model, () if self.blocks is None else self.blocks.put_into(model))


class DigitsCnn(Section):
    """Two convolutions, each followed by ReLU and a pooling that halves the image, and a linear layer."""

    name: Literal["digits_cnn"]
    channels: tuple[PositiveInt, PositiveInt] = (8, 16)

    def task(self) -> Task:
        """Return the model with the data."""
        one, two = self.channels
        return _task(
            nn.Sequential(
                *(nn.Conv2d(1, one, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(one, two, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Flatten(), nn.Linear(two * 2 * 2, 10)),
            )
        )


def digits() -> tuple[Tensor, Tensor]:
    """Return the images as (1797, 1, 8, 8) float32 from 0 to 1, and the digits as (1797,) integers."""
    # Here and not at the top: the other examples do without scikit-learn, which takes a second to load.
    from sklearn.datasets import load_digits

    bundled = load_digits()
    return torch.tensor(bundled.images, dtype=torch.float32)[:, None] / 16, torch.tensor(bundled.target)


def _task(model: nn.Module, notes: tuple[str, ...] = ()) -> Task:
    images, targets = digits()
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0))  # the same split for every seed
    train, validation = (
        TensorDataset(images[part], targets[part]) for part in (order[_VALIDATION:], order[:_VALIDATION])
    )
    return Task(model, nn.functional.cross_entropy, train, validation, "accuracy", _correct, notes)


def _correct(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.argmax(-1) == targets
