"""Time trainings with and without `golden.torch.observe`, and compare their weights."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import golden.torch as cstorch
from golden import kernels
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.examples.task import Task
from lab.speed.command import Measurement, Row
from tools.interrupts import ending_on_interrupt

__all__ = ["MODELS", "Training", "differing_weights", "main", "measure", "one_by_one", "parameter_count", "row"]

#: Layers, width, heads, context and batch of each GPT; the first is the bundled one.
MODELS = {"character_gpt": (2, 64, 4, 32, 16), "character_gpt, larger": (4, 256, 4, 64, 8)}
#: Steps that are timed together; one of them is observed.
_EVERY = 20


#: Computes the loss of a step.
Loss = Callable[[], Any]


class Training:
    """A model with its optimizer, and steps on losses that an iterator prepares."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scale: float | str,
        losses: Iterator[Loss],
    ) -> None:
        self.model, self._optimizer, self._losses = model, optimizer, losses
        self._scaler = cstorch.amp.GradScaler(scale)  # type: ignore[arg-type]
        self._precision = cstorch.precision("cbfloat16", level=1)

    def seconds(self, steps: int = 1, every: int | None = None) -> float:
        """Return this thread's time for a step, with every `every`-th step observed, or none."""
        losses = [next(self._losses) for _ in range(steps)]
        looking: Any = nullcontext() if every is None else cstorch.observe(self.model, every)
        started = time.thread_time()
        with looking:
            for loss in losses:
                self._optimizer.zero_grad()
                with self._precision:
                    self._scaler.scale(loss()).backward()
                self._scaler.step(self._optimizer)
                self._scaler.update()
        return (time.thread_time() - started) / steps


def _losses(task: Task, batch: int) -> Iterator[Loss]:
    at = 0
    while True:
        pairs = [task.train[(at + each) % len(task.train)] for each in range(batch)]  # type: ignore[arg-type]
        at += batch
        inputs, targets = (torch.stack(each) for each in zip(*pairs, strict=True))
        yield partial(_loss, task, inputs, targets)


def _loss(task: Task, inputs: Tensor, targets: Tensor) -> Tensor:
    return task.loss(task.model(inputs), targets)


def _training(name: str) -> Training:
    layers, width, heads, context, batch = MODELS[name]
    torch.manual_seed(1)
    example = CharacterGpt(name="character_gpt", layers=layers, width=width, heads=heads, context=context)
    task = example.task()
    return Training(task.model, torch.optim.AdamW(task.model.parameters(), lr=1e-3), "dynamic", _losses(task, batch))


def measure(name: str, repetitions: int, every: int = _EVERY) -> Row:
    """Train twins in turns, one of them observed."""
    plain, observed = _training(name), _training(name)
    for each in (plain, observed):
        each.seconds()
    times = [(plain.seconds(every), observed.seconds(every, every)) for _ in range(repetitions)]
    single = []
    for _ in range(repetitions):
        plain.seconds()
        single.append(observed.seconds(every=1))
    without, with_it = (statistics.median(each) * 1e3 for each in zip(*times, strict=True))
    figures = without, with_it, statistics.median(single) * 1e3
    return row(name, plain.model, observed.model, (f"{each:.1f}" for each in figures), with_it / without)


def row(name: str, plain: nn.Module, observed: nn.Module, figures: Iterable[str], ratio: float) -> Row:
    """Return a row about twins: times, the share of time that observing adds, and the number of differing weights."""
    count = parameter_count(plain)
    overhead = f"{100 * (ratio - 1):.1f} %"
    return Row((name,), (f"{count:,}", *figures, overhead), differing_weights(plain, observed), count)


def parameter_count(model: nn.Module) -> int:
    """Return how many weights a model has."""
    return sum(each.numel() for each in model.parameters())


def differing_weights(one: nn.Module, other: nn.Module) -> int:
    """Return how many weights of twins differ in some bit."""
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return sum(int((a.detach().view(torch.int32) != b.detach().view(torch.int32)).sum()) for a, b in pairs)


def one_by_one(models: Iterable[str], measure: Callable[[str, int], Row], repetitions: int) -> Iterator[Row]:
    """Measure models with the fastest kernels of the processor, on one thread."""
    torch.set_num_threads(1)
    with kernels.use(str(kernels.paths()[0]), threads=1):
        for name in models:
            yield measure(name, repetitions)


@ending_on_interrupt("lab.speed.observing", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="observing",
        result="observing",
        columns=("model", "parameters", "ms a step", f"with every={_EVERY}", "the observed step", "overhead",
                 "weights that differ"),
        measure=partial(one_by_one, MODELS, measure),
        note="Processor time of the training's thread, with one thread for everything",
        left=1,
    )  # fmt: skip
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
