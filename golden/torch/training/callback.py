"""Callbacks and loggers, with the hooks of the Model Zoo."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from torch import nn
from torch.optim import Optimizer

from golden.nearest import did_you_mean
from golden.torch.training.loop import TrainingLoop, ValidationLoop

__all__ = ["HOOKS", "Callback", "Callbacks", "Logger"]


class Callback:
    """Base of a callback: the `Trainer` calls its hooks, which do nothing unless a subclass overrides them.

    `trainer` is the `Trainer`, of any type here, so that a subclass may say which; `model` is its model. `outputs` is a
    dictionary with ``"loss"`` and the other outputs of the model; a batch comes from the data loader as it is. With
    gradient accumulation a step has several batches: hooks named after a batch, a forward or a backward
    pass run for each of them, and hooks of the optimizer run once.
    """

    def pre_setup(self, trainer: Any) -> None:
        """Run once, when the trainer is built, before `setup` of any callback."""

    def setup(self, trainer: Any) -> None:
        """Run once, when the trainer is built."""

    def post_setup(self, trainer: Any) -> None:
        """Run once, when the trainer is built, after `setup` of all callbacks."""

    def on_enter_fit(
        self, trainer: Any, stack: ExitStack, train_dataloader: Any, val_dataloader: Any, loop: Any
    ) -> None:
        """Enter contexts that shall last as long as `fit`, with ``stack.enter_context``."""

    def on_fit_start(self, trainer: Any, train_dataloader: Any, val_dataloader: Any, loop: TrainingLoop) -> None:
        """Run before the first step of `fit`, after a checkpoint is loaded; nothing has been written then."""

    def on_fit_end(self, trainer: Any, loop: TrainingLoop) -> None:
        """Run when `fit` has come to its end."""

    def on_fit_exception(self, trainer: Any, exception: BaseException) -> None:
        """Run when `fit` ends with an error; the error goes on after it."""

    def on_train_start(
        self, trainer: Any, model: nn.Module, train_dataloader: Any, loop: TrainingLoop, loop_idx: int
    ) -> None:
        """Run before an epoch, or the rest of it; `loop_idx` counts them from 0."""

    def on_train_end(self, trainer: Any, model: nn.Module, loop: TrainingLoop, loop_idx: int) -> None:
        """Run after an epoch, or when the run ends within it."""

    def on_train_batch_start(self, trainer: Any, model: nn.Module, batch: Any, batch_idx: int) -> None:
        """Run before a batch; `batch_idx` counts the batches of the epoch from 0."""

    def on_train_batch_end(
        self, trainer: Any, model: nn.Module, outputs: dict[str, Any], batch: Any, batch_idx: int
    ) -> None:
        """Run after a batch, and after the step if the batch is the last of one."""

    def on_train_step_start(self, trainer: Any, model: nn.Module, batch: Any) -> None:
        """Run right after `on_train_batch_start`."""

    def on_train_step_end(self, trainer: Any, model: nn.Module, outputs: dict[str, Any], batch: Any) -> None:
        """Run right before `on_train_batch_end`."""

    def on_before_forward(
        self, trainer: Any, model: nn.Module, batch: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> None:
        """Run before the model; `args` and `kwargs` are its arguments, and may be changed in place."""

    def on_after_forward(self, trainer: Any, model: nn.Module, outputs: dict[str, Any], batch: Any) -> None:
        """Run after the model; `outputs` may be changed in place."""

    def on_before_backward(self, trainer: Any, model: nn.Module, outputs: dict[str, Any]) -> None:
        """Run before the backward pass, within the precision."""

    def on_after_backward(self, trainer: Any, model: nn.Module, outputs: dict[str, Any]) -> None:
        """Run after the backward pass; the gradients are still scaled."""

    def on_before_optimizer_step(self, trainer: Any, model: nn.Module, optimizer: Optimizer) -> None:
        """Run before the step of the optimizer; the gradients are unscaled, and not yet clipped."""

    def on_after_optimizer_step(self, trainer: Any, model: nn.Module, optimizer: Optimizer) -> None:
        """Run after the step of the optimizer, also after a skipped one."""

    def on_before_optimizer_zero_grad(self, trainer: Any, model: nn.Module, optimizer: Optimizer) -> None:
        """Run before the gradients are cleared."""

    def on_after_optimizer_zero_grad(self, trainer: Any, model: nn.Module, optimizer: Optimizer) -> None:
        """Run after the gradients are cleared."""

    def on_before_scheduler_step(self, trainer: Any, model: nn.Module, optimizer: Optimizer, scheduler: Any) -> None:
        """Run before the step of a scheduler."""

    def on_after_scheduler_step(self, trainer: Any, model: nn.Module, optimizer: Optimizer, scheduler: Any) -> None:
        """Run after the step of a scheduler."""

    def on_validate_start(self, trainer: Any, model: nn.Module, val_dataloader: Any, loop: ValidationLoop) -> None:
        """Run before a validation."""

    def on_validate_end(self, trainer: Any, model: nn.Module, loop: ValidationLoop) -> None:
        """Run after a validation."""

    def on_validate_batch_start(self, trainer: Any, model: nn.Module, batch: Any, batch_idx: int) -> None:
        """Run before a batch of a validation."""

    def on_validate_batch_end(
        self, trainer: Any, model: nn.Module, outputs: dict[str, Any], batch: Any, batch_idx: int
    ) -> None:
        """Run after a batch of a validation."""

    def on_validate_exception(self, trainer: Any, exception: BaseException) -> None:
        """Run when a validation ends with an error; the error goes on after it."""

    def on_save_checkpoint(self, trainer: Any, state_dict: dict[str, Any]) -> None:
        """Put tensors, arrays and plain Python objects into `state_dict`, under a key of your own."""

    def on_after_save_checkpoint(self, trainer: Any, ckpt_path: Any) -> None:
        """Run when a checkpoint is written; `ckpt_path` is its folder."""

    def on_load_checkpoint(self, trainer: Any, state_dict: dict[str, Any]) -> None:
        """Take from `state_dict` what `on_save_checkpoint` put there; it may lack it."""


HOOKS = frozenset(name for name in vars(Callback) if name.endswith("setup") or name.startswith("on_"))
_NOT_HERE = ("finalize", "run_validation")  # hooks of the Model Zoo


class Callbacks:
    """The callbacks of a run, called in their order.

    A method ``on_...`` that is no hook, or a hook of the Model Zoo that is not here, never runs: a warning says so.
    """

    def __init__(self, callbacks: Iterable[Callback], argument: str = "callbacks") -> None:
        self.all = list(callbacks)
        for each in self.all:
            if not isinstance(each, Callback):
                raise TypeError(f"{argument}: got {each!r}, must be objects of a subclass of Callback")
            for name in dir(type(each)):
                if (name.startswith("on_") and name not in HOOKS) or name in _NOT_HERE:
                    what = f"{type(each).__name__}.{name} is no hook and never runs{did_you_mean(name, HOOKS)}"
                    warnings.warn(f"{argument}: {what}", stacklevel=4)

    def call(self, hook: str, trainer: Any, *arguments: Any) -> None:
        """Call one hook of all callbacks."""
        for each in self.all:
            getattr(each, hook)(trainer, *arguments)


class Logger(Callback):
    """Base of a logger: a callback that also takes figures. It is asked on process 0 only."""

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Take figures by their names."""

    def log_step(self, row: Mapping[str, Any], step: int) -> None:
        """Take the figures of a step: ``loss`` and ``loss_scale`` among others; numbers go to `log_metrics`."""
        self.log_metrics({name: each for name, each in row.items() if isinstance(each, (int, float))}, step)

    def flush(self) -> None:
        """Write pending figures to disk; run at the end of `fit` and of a validation, whatever ends them."""
