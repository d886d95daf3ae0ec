"""Time trainings with and without `golden.torch.observe`, and compare their weights."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import golden.torch as cstorch
from golden import kernels
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.examples.task import Task
from lab.speed.command import Measurement
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["MODELS", "Row", "differing_weights", "main", "measure", "one_by_one", "parameter_count", "table"]

#: Layers, width, heads, context and batch of each GPT; the first is the bundled one.
MODELS = {"character_gpt": (2, 64, 4, 32, 16), "character_gpt, larger": (4, 256, 4, 64, 8)}
_TOOL = "observing"
#: What is timed together: as many steps as there are from one that is observed to the next.
_EVERY = 20


@dataclass(frozen=True)
class Row:
    """One model.

    Parameters
    ----------
    plain, observed : float
        Milliseconds of one thread's time of a step, mean over `_EVERY` of them; medians.
    single : float
        Milliseconds of one step that is observed.
    differing : int
        Weights that are not the same bit for bit.
    """

    model: str
    parameters: int
    plain: float
    observed: float
    single: float
    differing: int

    @property
    def overhead(self) -> float:
        """Share of the time of a step that observing adds."""
        return self.observed / self.plain - 1


class _Training:
    """A model, and steps on batches of its data."""

    def __init__(self, task: Task, batch: int) -> None:
        self.model, self._loss = task.model, task.loss
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self._scaler = cstorch.amp.GradScaler("dynamic")
        self._precision = cstorch.precision("cbfloat16", level=1)
        self._batches = _batches(task, batch)

    def seconds(self, steps: int, every: int | None) -> float:
        """Return this thread's time of a step, observed every so many steps or not at all."""
        batches = [next(self._batches) for _ in range(steps)]
        looking: Any = nullcontext() if every is None else cstorch.observe(self.model, every)
        started = time.thread_time()
        with looking:
            for inputs, targets in batches:
                self._optimizer.zero_grad()
                with self._precision:
                    self._scaler.scale(self._loss(self.model(inputs), targets)).backward()
                self._scaler.step(self._optimizer)
                self._scaler.update()
        return (time.thread_time() - started) / steps


def _batches(task: Task, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    at = 0
    while True:
        pairs = [task.train[(at + each) % len(task.train)] for each in range(batch)]  # type: ignore[arg-type]
        at += batch
        yield torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])


def _twins(name: str) -> tuple[_Training, _Training]:
    layers, width, heads, context, batch = MODELS[name]
    made = []
    for _ in range(2):
        torch.manual_seed(1)
        example = CharacterGpt(name="character_gpt", layers=layers, width=width, heads=heads, context=context)
        made.append(_Training(example.task(), batch))
    return made[0], made[1]


def measure(name: str, repetitions: int, every: int = _EVERY) -> Row:
    """Train twins in turns, one of them observed."""
    plain, observed = _twins(name)
    for each in (plain, observed):
        each.seconds(1, None)
    times = [(plain.seconds(every, None), observed.seconds(every, every)) for _ in range(repetitions)]
    single = []
    for _ in range(repetitions):
        plain.seconds(1, None)
        single.append(observed.seconds(1, 1))
    without, with_it = (statistics.median(each) * 1e3 for each in zip(*times, strict=True))
    return Row(
        name, parameter_count(plain.model), without, with_it, statistics.median(single) * 1e3,
        differing_weights(plain.model, observed.model),
    )  # fmt: skip


def parameter_count(model: nn.Module) -> int:
    """Return how many weights a model has."""
    return sum(each.numel() for each in model.parameters())


def differing_weights(one: nn.Module, other: nn.Module) -> int:
    """Return how many weights of twins are not the same bit for bit."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return sum(int((a.detach().view(torch.int32) != b.detach().view(torch.int32)).sum()) for a, b in pairs)


def one_by_one(models: Iterable[str], measure: Callable[[str, int], Row], repetitions: int) -> Iterator[Row]:
    """Measure models with the fastest kernels of the processor, on one thread."""
    with kernels.use(str(kernels.paths()[0]), threads=1):
        for name in models:
            yield measure(name, repetitions)


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a table."""
    cells = []
    for row in rows:
        times = (f"{each:.1f}" for each in (row.plain, row.observed, row.single))
        cells.append((row.model, f"{row.parameters:,}", *times, f"{100 * row.overhead:.1f} %", f"{row.differing}"))
    of_times = "ms a step", f"with every={_EVERY}", "the observed step"
    return Table(("model", "parameters", *of_times, "overhead", "weights that differ"), cells, left=1)


@ending_on_interrupt("lab.speed.observing", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    torch.set_num_threads(1)
    command = Measurement(
        module="observing",
        result=_TOOL,
        measure=partial(one_by_one, MODELS, measure),
        tell=lambda row: (
            f"{row.model}: {row.plain:.1f} ms a step, observed {row.observed:.1f} ms: {row.overhead:.1%}, "
            f"{row.differing} weights differ"
        ),
        table=table,
        wrong=lambda row: row.differing,
        note="processor time of the training's thread, with one thread for everything",
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
