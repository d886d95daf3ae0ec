"""One step of a training: forward and backward passes, clipping, the optimizer, the schedulers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from golden.torch.amp.optimizer_step import check_has_gradient, clip_gradients
from golden.torch.common.arguments import loss_of, outputs_of
from golden.torch.common.processes import average_gradients, batch_for, message, world_size
from golden.torch.training.run import Run

__all__ = ["forward", "train_step"]


def forward(trainer: Run, batch: Any) -> dict[str, Any]:
    """Run the model, and the loss function if there is one; call it within the precision."""
    batch = batch_for(trainer.model, batch)
    inputs, targets = (batch, None) if trainer.loss is None else _pair(trainer, batch)
    arguments, keywords = [inputs], dict[str, Any]()
    trainer.call("on_before_forward", trainer.model, batch, arguments, keywords)
    result = trainer.model(*arguments, **keywords)
    if trainer.loss is None:
        outputs = outputs_of(result)
    else:
        outputs = {"loss": trainer.loss(result, targets), "output": result}
    trainer.call("on_after_forward", trainer.model, outputs, batch)
    return outputs


def train_step(trainer: Run, group: list[Any], first: int, signal: int) -> tuple[float, dict[str, Any], int]:
    """Train on the batches of one step; the first of them has this number in the epoch.

    Return the mean loss over batches and processes, the outputs for the last batch, and the signal that has asked any
    process to stop, 0 for none; `signal` is that of this process.
    """
    model, optimizer, scaler = trainer.model, trainer.optimizer, trainer.scaler
    assert optimizer is not None
    trainer.call("on_before_optimizer_zero_grad", model, optimizer)
    optimizer.zero_grad()
    trainer.call("on_after_optimizer_zero_grad", model, optimizer)
    mean = torch.zeros(())
    for number, batch in enumerate(group, 1):
        trainer.call("on_train_batch_start", model, batch, first + number - 1)
        trainer.call("on_train_step_start", model, batch)
        with trainer.autocast:
            outputs = forward(trainer, batch)
            loss = loss_of(outputs)
            check_has_gradient(loss)
            part = loss if len(group) == 1 else loss / len(group)
            trainer.call("on_before_backward", model, outputs)
            # Inside the context, for models that compute parts of the forward pass again (activation checkpointing).
            scaler.scale(part).backward()
        trainer.call("on_after_backward", model, outputs)
        mean = mean + part.detach().float().reshape(())
        if number < len(group):
            trainer.call("on_train_step_end", model, outputs, batch)
            trainer.call("on_train_batch_end", model, outputs, batch, first + number - 1)
    average_gradients(model.parameters())
    scaler.unscale_(optimizer)
    trainer.call("on_before_optimizer_step", model, optimizer)
    clip_gradients(optimizer, trainer.precision.max_gradient_norm, trainer.precision.max_gradient_value)
    scaler.step(optimizer)
    scaler.update()
    trainer.call("on_after_optimizer_step", model, optimizer)
    _step_schedulers(trainer)
    if world_size() > 1:
        both = message([mean.item(), float(signal)], torch.float32)
        dist.all_reduce(both)
        mean, signal = both[0] / world_size(), int(both[1])
    return mean.item(), outputs, signal


def _step_schedulers(trainer: Run) -> None:
    """Let the schedulers make their step, after a skipped step of the optimizer, too."""
    for each in trainer.schedulers:
        trainer.call("on_before_scheduler_step", trainer.model, trainer.optimizer, each)
        with warnings.catch_warnings():
            # PyTorch takes a first step that is skipped for one that was forgotten.
            warnings.filterwarnings("ignore", r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`")
            each.step()
        trainer.call("on_after_scheduler_step", trainer.model, trainer.optimizer, each)


def _pair(trainer: Run, batch: Any) -> tuple[Any, Any]:
    try:
        if isinstance(batch, Mapping):  # which would give its keys
            raise TypeError
        inputs, targets = batch
    except (TypeError, ValueError):
        length = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
        raise ValueError(
            f"{'train' if trainer.model.training else 'val'}_dataloader: got a batch that is a {type(batch).__name__}"
            f"{length}, must be a pair of inputs and targets when the Trainer has a loss function; without one, the "
            "model is given the batch and returns the loss"
        ) from None
    return inputs, targets
