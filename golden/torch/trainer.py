"""A training loop for any PyTorch model: precision, loss scaling, log, checkpoints, several processes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from golden.torch.amp.iteration import as_optimizer
from golden.torch.amp.optimizer_step import clip_gradients
from golden.torch.checkpoint import newest_checkpoint, read_checkpoint, write_checkpoint
from golden.torch.configuration import MixedPrecision
from golden.torch.progress import TrainingProgress, shown
from golden.torch.random_state import RandomState, capture, restore
from golden.torch.ranks import average_gradients, rank, world_size
from golden.torch.run_log import RunLog
from golden.torch.tensorflow_era import NotOfTensorFlow

__all__ = ["Trainer"]

_COLUMNS = ("step", "epoch", "loss", "loss_scale", "skipped_steps", "skip_reason", "seconds")


@dataclass
class _Position:
    """How far a run has come in its data."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of this epoch
    epoch_start: RandomState | None = None  # the random generators at its beginning; None between two epochs


class Trainer(NotOfTensorFlow):
    """Train a model in a precision.

    In a process group of ``torch.distributed`` (see ``torchrun``), every rank trains on its own batches: the weights of
    rank 0 are copied to all before the first step, the gradients averaged in every step, and an overflow on one rank
    skips the step on all. Rank 0 shows, logs and saves.

    Parameters
    ----------
    model : nn.Module
        With parameters in float32.
    optimizer : Optimizer
        Of the model's parameters.
    loss : callable, optional
        ``loss(model(inputs), targets)`` gives a scalar tensor; batches are pairs of inputs and targets. None:
        ``model(batch)`` is the loss.
    precision : MixedPrecision, optional
        cbfloat16 at level 1 with dynamic loss scaling unless given.
    model_dir : path, optional
        Folder of the run: ``log.csv`` and ``checkpoints/``. None writes nothing.
    checkpoint_steps : int, optional
        A checkpoint after so many steps each, and one at the end. None: only that.
    log_steps : int
        A row in the log after so many steps each.
    progress : bool
        Whether to show a progress bar on the terminal (standard error).

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        loss: Callable[[Any, Any], Tensor] | None = None,
        precision: MixedPrecision | None = None,
        *,
        model_dir: str | Path | None = None,
        checkpoint_steps: int | None = None,
        log_steps: int = 1,
        progress: bool = True,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
        if loss is not None and not callable(loss):
            raise TypeError(f"loss: got {loss!r}, must be callable, as loss(outputs, targets), or None")
        if precision is not None and not isinstance(precision, MixedPrecision):
            raise TypeError(f"precision: got {precision!r}, must be a MixedPrecision or None")
        _check_count(log_steps, "log_steps")
        if checkpoint_steps is not None:
            _check_count(checkpoint_steps, "checkpoint_steps")
            if model_dir is None:
                raise ValueError("model_dir: got None, must be a folder when checkpoint_steps is given")
        self.model = model
        self.optimizer = as_optimizer(optimizer)
        self.loss = loss
        self.precision = precision or MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic")
        self.scaler = self.precision.grad_scaler(model.named_parameters())
        self.model_dir = None if model_dir is None else Path(model_dir)
        self.losses: list[float] = []
        self._checkpoint_steps, self._log_steps, self._progress = checkpoint_steps, log_steps, progress
        self._position = _Position()

    @property
    def step(self) -> int:
        """Steps trained, the skipped ones included."""
        return self._position.step

    def fit(
        self,
        train_loader: Iterable[Any],
        *,
        steps: int | None = None,
        epochs: int | None = None,
        resume: bool | str | Path = False,
    ) -> list[float]:
        """Train up to a number of steps or epochs, counted from the beginning of the run.

        Parameters
        ----------
        train_loader : iterable
            Batches; iterated once for each epoch. For a resumed run to be the same bit for bit it must be built as it
            was then. A distributed sampler is told the epoch.
        steps, epochs : int
            When to end; exactly one of them.
        resume : bool or path
            True: go on from the newest checkpoint in `model_dir`. A path: from this checkpoint.

        Returns
        -------
        list of float
            The loss of every step of this call, its mean over the ranks.

        Raises
        ------
        TypeError, ValueError
            If an argument or a batch is wrong, or a checkpoint damaged or of another model, optimizer or precision.
        FileNotFoundError
            If there is nothing to resume from.
        FileExistsError
            If `model_dir` has checkpoints and the run is not resumed: it would mix two runs.
        """
        if (steps is None) == (epochs is None):
            raise ValueError(f"steps: got {steps} beside epochs {epochs}, must be one of the two, and the other None")
        _check_count(epochs if steps is None else steps, "epochs" if steps is None else "steps")
        where: RandomState | None
        if resume:
            where = self._resume(resume)
        else:
            if self.step == 0:
                self._begin()
            where = capture(train_loader)
        total = epochs * len(train_loader) if epochs is not None and isinstance(train_loader, Sized) else steps
        log = None
        if self.model_dir is not None and rank() == 0:
            columns = [each for each in _COLUMNS if each != "loss_scale" or self.precision.log_loss_scale]
            log = RunLog(self.model_dir / "log.csv", columns, self.step)
        self.losses = []
        self.model.train()
        try:
            with TrainingProgress(total, self.step, visible=self._progress and rank() == 0) as bar:
                while self._position.epoch < epochs if epochs is not None else self.step < (steps or 0):
                    self._epoch(train_loader, steps, where, log, bar)
                    where = None
        finally:
            if log is not None:
                log.close()
        if self.losses and self.model_dir is not None:
            self._save(train_loader)
        return self.losses

    @torch.no_grad()
    def evaluate(self, loader: Iterable[Any], measure: Callable[[Any, Any], Tensor]) -> float:
        """Return the mean of a measure over batches, in the precision of the training.

        Parameters
        ----------
        loader : iterable of (inputs, targets)
            The batches.
        measure : callable
            ``measure(model(inputs), targets)`` gives one number for each example, or one for the batch.
        """
        was_training = self.model.training
        self.model.eval()
        with self.precision.autocast():
            values = [
                measure(self.model(inputs), targets).double().reshape(-1)
                for inputs, targets in shown(loader, "evaluating", visible=self._progress and rank() == 0)
            ]
        self.model.train(was_training)
        return torch.cat(values).mean().item()

    def _epoch(
        self,
        loader: Iterable[Any],
        steps: int | None,
        resumed: RandomState | None,
        log: RunLog | None,
        bar: TrainingProgress,
    ) -> None:
        """Train to the end of the epoch or of the run, from the batch that a resumed run stopped before."""
        now = self._position
        if now.epoch_start is not None:
            restore(now.epoch_start, loader)
        elif resumed is not None:
            restore(resumed, loader)
            resumed = None
        now.epoch_start = now.epoch_start or capture(loader)
        for owner in ("sampler", "batch_sampler"):
            set_epoch = getattr(getattr(loader, owner, None), "set_epoch", None)
            if set_epoch is not None:
                set_epoch(now.epoch)
        batches = iter(loader)
        for _ in itertools.islice(batches, now.batch):
            pass  # trained before
        if resumed is not None:
            restore(resumed, loader)
        for batch in batches:
            started = time.perf_counter()
            loss = self._train(batch)
            now.step, now.batch = now.step + 1, now.batch + 1
            self.losses.append(loss)
            scale, skipped = self.scaler.get_scale(), self.scaler.get_num_skipped_steps()
            bar.show(epoch=now.epoch + 1, loss=loss, scale=scale, skipped=skipped)
            if log is not None and now.step % self._log_steps == 0:
                log.write(
                    step=now.step,
                    epoch=now.epoch + 1,
                    loss=loss,
                    loss_scale=scale,
                    skipped_steps=skipped,
                    skip_reason=self.scaler.get_skip_reason() or "",
                    seconds=round(time.perf_counter() - started, 6),
                )
            if self._checkpoint_steps is not None and now.step % self._checkpoint_steps == 0 and now.step != steps:
                self._save(loader)
            if now.step == steps:
                return
        if now.batch == 0:
            raise ValueError("train_loader: it gives no batch, must give at least one in every epoch")
        now.epoch, now.batch, now.epoch_start = now.epoch + 1, 0, None

    def _train(self, batch: Any) -> float:
        """Make one step; return the loss, its mean over the ranks."""
        self.optimizer.zero_grad()
        with self.precision.autocast():
            if self.loss is None:
                loss = self.model(batch)
            else:
                inputs, targets = batch
                loss = self.loss(self.model(inputs), targets)
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
                raise ValueError(f"loss: got {got}, must be a tensor of one element")
            # Inside the context, for models that compute parts of the forward pass again (activation checkpointing).
            self.scaler.scale(loss).backward()
        average_gradients(self.model.parameters())
        self.scaler.unscale_(self.optimizer)
        clip_gradients(self.optimizer, self.precision.max_gradient_norm, self.precision.max_gradient_value)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        mean = loss.detach().float()
        if world_size() > 1:
            dist.all_reduce(mean)
            mean /= world_size()
        return mean.item()

    def _begin(self) -> None:
        """Refuse to mix two runs, and give all ranks the weights of the first."""
        if self.model_dir is not None and any((self.model_dir / "checkpoints").glob("step_*")):
            raise FileExistsError(
                f"model_dir: {self.model_dir} has the checkpoints of a run; pass resume=True to go on with it, or "
                "choose another folder, or delete this one"
            )
        if world_size() > 1:
            for each in (*self.model.parameters(), *self.model.buffers()):
                dist.broadcast(each.detach(), src=0)

    def _about(self) -> dict[str, Any]:
        """Return what a resumed run must have in common with this one."""
        return {
            "optimizer": type(self.optimizer).__name__,
            "ranks": world_size(),
            "precision": asdict(self.precision),
        }

    def _save(self, loader: Iterable[Any]) -> None:
        assert self.model_dir is not None
        now = self._position
        mine = {"now": capture(loader), "epoch_start": now.epoch_start}
        of_ranks: list[Any] = [mine] * world_size()
        if world_size() > 1:
            dist.all_gather_object(of_ranks, mine)
        if rank() == 0:
            state = {
                "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict(),
                "random": of_ranks,
                "epoch": now.epoch,
                "batch": now.batch,
            }
            write_checkpoint(self.model_dir / "checkpoints", now.step, self.model, state, self._about())
        if world_size() > 1:
            dist.barrier()

    def _resume(self, given: bool | str | Path) -> RandomState:
        """Load a checkpoint; return the states of the random generators at its step."""
        if not isinstance(given, bool):
            path = Path(given)
        elif self.model_dir is not None:
            path = newest_checkpoint(self.model_dir / "checkpoints")
        else:
            raise ValueError("model_dir: got None, must be the folder of the run to resume")
        state, step = read_checkpoint(path, self.model, self._about())
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        mine = state["random"][rank()]
        self._position = _Position(step, state["epoch"], state["batch"], mine["epoch_start"])
        return mine["now"]


def _check_count(given: Any, argument: str) -> None:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{argument}: got {given!r}, must be an int from 1")
    if given < 1:
        raise ValueError(f"{argument}: got {given}, must be at least 1")
