"""Observe training steps of GPT-2 and ResNet18 in their published sizes, time them, and compare the weights."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

import golden.torch as cstorch
from lab.speed import libraries
from lab.speed.command import Measurement
from lab.speed.observing import Row, differing_weights, one_by_one, parameter_count
from tools.interrupts import ending_on_interrupt
from tools.paths import ROOT
from tools.results import Table

__all__ = ["main", "measure", "table"]

_EVERY = 20
_FOLDER = ROOT / "build" / "observing"


class _Training:
    """A model, and steps on inputs that are drawn anew in each."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(1)
        self.model = libraries.MODELS[name]()
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self._scaler = cstorch.amp.GradScaler(2.0**10)
        self._precision = cstorch.precision("cbfloat16", level=1)
        self._steps = 0

    def seconds(self) -> float:
        """Return this thread's time of the next step."""
        self._steps += 1
        torch.manual_seed(self._steps)
        started = time.thread_time()
        self._optimizer.zero_grad()
        with self._precision:
            self._scaler.scale(self.model()).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return time.thread_time() - started


def measure(name: str, repetitions: int) -> Row:
    """Train twins, one of them with every second step observed; their first steps count for nothing."""
    plain, observed = _Training(name), _Training(name)
    steps = 2 * repetitions + 1
    times = [plain.seconds() for _ in range(steps)][1:]
    with cstorch.observe(observed.model, every=2, folder=_folder(name)) as report:
        mixed = [observed.seconds() for _ in range(steps)][1:]
    seen = [row.observed for row in report.steps][1:]
    single, between = (
        [each for each, is_seen in zip(mixed, seen, strict=True) if is_seen is of] for of in (True, False)
    )
    without, watched, idle = (statistics.median(each) * 1e3 for each in (times, single, between))
    mean = (watched + (_EVERY - 1) * idle) / _EVERY
    differing = differing_weights(plain.model, observed.model)
    return Row(name, parameter_count(plain.model), without, mean, watched, differing)


def table(rows: Sequence[Row]) -> Table:
    """Return the rows as a table."""
    cells = [
        (
            row.model,
            f"{row.parameters:,}",
            *(f"{each / 1e3:.2f}" for each in (row.plain, row.single)),
            f"{100 * row.overhead:.1f} %",
            f"{row.differing}",
        )
        for row in rows
    ]
    heads = "model", "parameters", "s a step", "the observed step", f"overhead with every={_EVERY}"
    return Table((*heads, "weights that differ"), cells, left=1)


@ending_on_interrupt("lab.speed.observing_libraries", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    torch.set_num_threads(1)
    command = Measurement(
        module="observing_libraries",
        result="observing-libraries",
        measure=partial(one_by_one, libraries.MODELS, measure),
        tell=lambda row: (
            f"{row.model}: {row.plain / 1e3:.2f} s a step, {row.single / 1e3:.2f} s observed, {row.differing} weights "
            f"differ; python -m golden.torch report {_folder(row.model)}"
        ),
        table=table,
        wrong=lambda row: row.differing,
        note="Processor time of the training's thread, with one thread for everything; random weights and inputs",
        repetitions=2,
    )
    return command.main(__doc__, arguments)


def _folder(name: str) -> Path:
    return _FOLDER / name.partition(",")[0]


if __name__ == "__main__":
    sys.exit(main())
