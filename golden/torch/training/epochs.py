"""The steps of a call of `fit`, epoch by epoch, with what happens between them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from golden.torch.common.processes import RandomState, rank, world_size
from golden.torch.common.terminal import TrainingProgress
from golden.torch.training.feed import groups, mark_trained
from golden.torch.training.interruption import Interruption
from golden.torch.training.loop import TrainingLoop
from golden.torch.training.persistence import Position
from golden.torch.training.run import Run
from golden.torch.training.step import train_step
from golden.torch.training.validation import validate

__all__ = ["Epochs"]


@dataclass
class Epochs:
    """The epochs of a call of `fit`. After the call, `signal` is the signal that stopped it, 0 for none.

    `ending` is where it ends otherwise.
    """

    trainer: Run
    position: Position
    loader: Iterable[Any]
    val_loader: Iterable[Any] | None
    loop: TrainingLoop
    interruption: Interruption
    override: bool
    signal: int = 0

    def __post_init__(self) -> None:
        self._begun = self._validated = self.position.step
        self.ending = self.loop.ending(self._begun)
        self._total = self.loop.total(self.ending, self.loader)

    def __call__(self, where: RandomState, visible: bool) -> None:
        """Train to the end of the run; `where` are the random generators as the first step needs them."""
        resumed: RandomState | None = where
        now = self.position
        self.trainer.model.train()
        with TrainingProgress(self._total, now.step, visible=visible and rank() == 0) as bar:
            while not self.signal and not self.ending.reached(now.step, now.epoch):
                self._epoch(resumed, bar)
                resumed = None
        if self.loop.eval_frequency and now.step > self._validated and not self.signal:
            self._validate(visible)

    def _epoch(self, resumed: RandomState | None, bar: TrainingProgress) -> None:
        """Train to the end of the epoch or of the run, from the batch that a resumed run stopped before."""
        trainer, now, loop = self.trainer, self.position, self.loop
        index = now.epoch
        trainer.call("on_train_start", trainer.model, self.loader, loop, index)
        most = math.inf if loop.steps_per_epoch is None else loop.steps_per_epoch
        feed = groups(self.loader, now, resumed, loop.grad_accum_steps, self.override, most)
        ends = False
        while not ends and not self.signal and now.step < self.ending.step:
            trainer.under_way = f"step {now.step + 1}"  # and stays so if an error ends it
            try:
                group = next(feed, None)
            except RuntimeError:
                # Ctrl-C ends the processes that load the data, too.
                if not (self.interruption.signal and getattr(self.loader, "num_workers", 0)):
                    raise
                self.signal = self.interruption.signal
                break
            if group is None:
                ends = True
            else:
                self._step(group, bar)
        trainer.under_way = None
        if ends:
            now.epoch, now.batch, now.epoch_start, now.digest = now.epoch + 1, 0, None, None
        trainer.call("on_train_end", trainer.model, loop, index)

    def _step(self, group: list[Any], bar: TrainingProgress) -> None:
        """Make a step, report it, and do the work due after it."""
        trainer, now, started = self.trainer, self.position, time.perf_counter()
        loss, outputs, signal = train_step(trainer, group, now.batch, self.interruption.signal)
        mark_trained(now, group)
        trainer.under_way = None
        trainer.losses.append(loss)
        trainer.call("on_train_step_end", trainer.model, outputs, group[-1])
        trainer.call("on_train_batch_end", trainer.model, outputs, group[-1], now.batch - 1)
        scaler = trainer.scaler
        scale, skipped = scaler.get_scale(), scaler.get_num_skipped_steps()
        bar.show(epoch=now.epoch + 1, loss=loss, scale=scale, skipped=skipped)
        if now.step % trainer.log_steps == 0 and rank() == 0:
            row = {
                "epoch": now.epoch + 1,
                "loss": loss,
                "loss_scale": scale,
                "skipped_steps": skipped,
                "skip_reason": scaler.get_skip_reason() or "",
                "seconds": round(time.perf_counter() - started, 6),
            }
            for each in trainer.loggers:
                each.log_step(row, now.step)
        # On several processes the step has told all of them; a signal that came since waits for the next one.
        self.signal = signal if world_size() > 1 else self.interruption.signal
        if self.signal:
            return
        if self.loop.validates_after(now.step, self._begun, self._total):
            self._validate(visible=False)
        every = trainer.checkpoint.steps
        if every and now.step % every == 0 and now.step != self.ending.step:
            trainer.save_checkpoint()

    def _validate(self, visible: bool) -> None:
        """Validate, unless there is nothing to do it with."""
        self._validated = self.position.step
        if self.val_loader is None:
            return
        result = validate(self.trainer, self.val_loader, self.loop.val_loop, self.interruption, visible)
        if not self.interruption.signal:
            self.trainer.last_validation = (self.position.step, result)
            self.trainer.log_metrics(**result)
