"""The small training run behind two pictures: an MLP on scikit-learn's digits, a few seconds long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from golden.torch.amp import GradScaler
from golden.torch.amp.precision import precision
from golden.torch.examples.digits import digits

__all__ = ["final_loss", "mlp", "train"]

_BATCH = 128


@cache
def _flat_digits() -> tuple[Tensor, Tensor]:
    images, targets = digits()
    return images.flatten(1), targets


def mlp(seed: int) -> nn.Sequential:
    """Return the model: 64, 64 and 10 units."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(
    model: nn.Module,
    *,
    half: str | None,
    loss_scale: float | str | None,
    steps: int,
    seed: int,
    watch: Callable[[nn.Module], None] | None = None,
) -> None:
    """Train by plain gradient descent, in which no adaptive step size makes up for lost gradients.

    Parameters
    ----------
    half : str, optional
        Half type of the products, at level 1; None trains in fp32.
    loss_scale : float or "dynamic", optional
        As for `golden.torch.amp.GradScaler`.
    steps : int
    seed : int
        Draws the order of the images.
    watch : callable, optional
        Called with the model after every backward pass, its gradients unscaled.
    """
    torch.set_num_threads(1)  # its products are so small that threads would only wait for each other
    images, targets = _flat_digits()
    order = np.random.default_rng(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with precision(half=half, level=1) if half else nullcontext():
        scaler = GradScaler(loss_scale)  # type: ignore[arg-type]
        for _ in range(steps):
            batch = torch.from_numpy(order.integers(0, len(images), _BATCH))
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[batch]), targets[batch])
            scaler.scale(loss).backward()
            if loss_scale is not None:
                scaler.unscale_(optimizer)
            if watch is not None:
                watch(model)
            scaler.step(optimizer)
            scaler.update()


def final_loss(model: nn.Module) -> float:
    """Return the loss on all images, in fp32."""
    images, targets = _flat_digits()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(images), targets))
