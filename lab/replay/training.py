"""The training runs whose products are replayed: a few steps of the examples of `golden.torch`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch.utils.data import DataLoader

from golden import FloatFormat
from golden.torch.amp import GradScaler
from golden.torch.amp.precision import precision
from golden.torch.examples.digits import DigitsMlp
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.examples.task import Task
from lab.replay.recording import Product, Recorder

__all__ = ["EXAMPLES", "recorded_products"]

EXAMPLES = {
    "digits": lambda: DigitsMlp(name="digits_mlp").task(),
    "gpt": lambda: CharacterGpt(name="character_gpt").task(),
}
_WARM_UP = 3  # steps before the recorded one, in which the dynamic scale settles
_BATCH = 16


def recorded_products(example: str, operand: FloatFormat) -> Iterator[Product]:
    """Train for some steps at level 1 with dynamic loss scaling, and yield the products of the last one.

    Parameters
    ----------
    example : str
        One of `EXAMPLES`.
    operand : FloatFormat
        The half type.
    """
    torch.manual_seed(0)
    task: Task = EXAMPLES[example]()
    optimizer = torch.optim.AdamW(task.model.parameters(), lr=3e-3)
    batches = itertools.cycle(DataLoader(task.train, batch_size=_BATCH, shuffle=True))
    recorder = Recorder(task.model)
    with precision(half=operand.name, level=1):
        # The initial scale of bfloat16 and float16; cbfloat16's 2^31 would overflow in the first steps.
        scaler = GradScaler("dynamic", init_scale=2.0**15)
        for _ in range(_WARM_UP):
            _step(task, optimizer, scaler, *next(batches))
        with recorder:
            _step(task, optimizer, scaler, *next(batches))
    for product in recorder.products:
        name = f"{example}: {product.layer or 'model'}"
        yield replace(product, layer=name)


def _step(
    task: Task, optimizer: torch.optim.Optimizer, scaler: GradScaler, inputs: torch.Tensor, targets: torch.Tensor
) -> None:
    optimizer.zero_grad()
    scaler.scale(task.loss(task.model(inputs), targets)).backward()
    scaler.step(optimizer)
    scaler.update()
