"""The executor that gives the batches of a run, and the rate at which they pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from golden.torch.cerebras.backends import Executor, current_backend
from golden.torch.cerebras.cluster import CSConfig, check_names
from golden.torch.cerebras.data_loader import DataLoader
from golden.torch.cerebras.steps import Schedule
from golden.torch.common.arguments import check_count
from golden.torch.common.terminal import say_once

__all__ = ["DataExecutor", "Profiler"]


class Profiler:
    """Samples and seconds since the beginning of a run; ``executor.profiler``, and ``.rate_tracker`` of it."""

    def __init__(self) -> None:
        self.total_samples = 0
        self._latest = 0
        self.start()

    def start(self) -> None:
        """Count from now on."""
        self.total_samples = self._latest = 0
        self._begun = self._before = self._now = time.monotonic()

    def step(self, samples: int) -> None:
        """Note a step."""
        self.total_samples += samples
        self._latest = samples
        self._before, self._now = self._now, time.monotonic()

    @property
    def rate_tracker(self) -> Profiler:
        """The same object: the original has the numbers one level below."""
        return self

    @property
    def total_time(self) -> float:
        """Seconds of the steps so far."""
        return self._now - self._begun

    @property
    def rate(self) -> float:
        """Samples a second in the latest step, 0 before it."""
        return self._latest / max(self._now - self._before, 1e-9)

    @property
    def global_rate(self) -> float:
        """Samples a second in all steps so far, 0 before the first."""
        return self.total_samples / max(self.total_time, 1e-9)

    samples_per_sec = global_rate


_OF_THE_WAFER = ("micro_batch_size", "profiler_activities")


class DataExecutor:
    """Batches for a number of steps; the data begin again where they end.

    Parameters
    ----------
    dataloader : DataLoader
        `golden.torch.utils.data.DataLoader`.
    num_steps : int, optional
        Steps of the run, the length of the data unless given.
    checkpoint_steps : int or Schedule, optional
        Steps between runs of a checkpoint closure, which also runs after the last step; a `Schedule` counts from 0.
        None or 0: never.
    activation_steps : int, optional
        Accepted; every value is there after every step.
    cs_config : CSConfig, optional
        Its ``precision_opt_level`` is the level of the run.
    writer : object, optional
        Where `golden.torch.summarize_scalar` writes, with ``add_scalar(name, value, step)``.
    **wafer
        ``micro_batch_size``, ``profiler_activities``: accepted and reported once.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or `num_steps` is None for data without a length.
    RuntimeError
        If no backend has been made.
    """

    def __init__(
        self,
        dataloader: DataLoader,
        num_steps: int | None = None,
        checkpoint_steps: int | Schedule | None = None,
        activation_steps: int | None = None,
        *,
        cs_config: CSConfig | None = None,
        writer: Any = None,
        **wafer: Any,
    ) -> None:
        if not isinstance(dataloader, DataLoader):
            raise TypeError(
                f"dataloader: got {dataloader!r}, must be a cstorch.utils.data.DataLoader, as in DataLoader(input_fn)"
            )
        check_names(wafer, _OF_THE_WAFER, "DataExecutor")
        for name in wafer:
            say_once(f"{name}: is for a wafer; accepted, and without effect here")
        if not isinstance(cs_config, CSConfig | None):
            raise TypeError(f"cs_config: got {cs_config!r}, must be a CSConfig")
        if activation_steps is not None:
            check_count(activation_steps, "activation_steps")
        self.backend = current_backend()
        self.dataloader, self.cs_config, self.writer = dataloader, cs_config, writer
        self.num_steps = self._steps(num_steps)
        self.checkpoint_schedule = self._schedule(checkpoint_steps)
        self.profiler = Profiler()
        self._step, self._number = -1, 0

    def _steps(self, given: int | None) -> int:
        if not self.backend.is_e2e_execution:
            say_once("num_steps: the backend was made to compile or validate only; a run is one step")
            return 1
        if given is not None:
            return check_count(given, "num_steps")
        try:
            return len(self.dataloader)
        except TypeError:
            raise ValueError("num_steps: got None for data without a length, must be a number of steps") from None

    def _schedule(self, given: int | Schedule | None) -> Schedule:
        if isinstance(given, Schedule):
            return given
        if given is None or check_count(given, "checkpoint_steps", 0) == 0:
            return Schedule([])
        first, last = min(given - 1, self.num_steps - 1), self.num_steps
        return Schedule([Schedule.Range(first, last, given, include_last=True)])

    @property
    def iteration(self) -> int:
        """The step under way, from 0; -1 before the first."""
        return self._step

    @property
    def user_iteration(self) -> int:
        """The step under way, from 1."""
        return self._step + 1

    @property
    def is_pre_initial_step(self) -> bool:
        """Whether the first step of the run is still to come."""
        return self._step < 0

    @property
    def is_initial_step(self) -> bool:
        """Whether the step under way is the first."""
        return self._step == 0

    @property
    def on_final_iteration(self) -> bool:
        """Whether the step under way is the last."""
        return self.user_iteration >= self.num_steps

    @property
    def is_checkpoint_step(self) -> bool:
        """Whether checkpoint closures run at the end of this step."""
        return self.checkpoint_schedule.match(self._step)

    @property
    def artifact_dir(self) -> Path:
        """Folder of this run, below the folder of the backend; made on first use."""
        folder = Path(self.backend.artifact_dir) / "executors" / f"{self._number:06}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def __len__(self) -> int:
        return self.num_steps

    def _batches(self) -> Iterator[Any]:
        while True:
            empty = True
            for batch in self.dataloader:
                empty = False
                yield batch
            if empty:
                raise ValueError(
                    "dataloader: has no batch (left); are there fewer samples than batch_size with drop_last, or is it "
                    "a generator that can be used once only?"
                )

    def __iter__(self) -> Iterator[Any]:
        self._step = -1
        runs: list[Executor] = self.backend.data_executor_stack
        self._number = self.backend.executor_counter = self.backend.executor_counter + 1
        runs.append(self)
        try:
            self.backend.run_step_closures()
            self.profiler.start()
            batches = self._batches()
            for step in range(self.num_steps):
                self._step = step
                yield self.backend.device.move_to_device(next(batches))
                self.profiler.step(self.dataloader.batch_size or 0)
                self.backend.run_step_closures()
        finally:
            # After a break or an error, closures of a step that did not end must not run in the next one.
            self.backend.drop_step_closures()
            runs.remove(self)
