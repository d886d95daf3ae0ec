"""Observe training steps of GPT-2 and ResNet18 in their published sizes, time them, and compare the weights."""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

import golden.torch as cstorch
from lab.speed import libraries
from lab.speed.command import Measurement, Row
from lab.speed.observing import Training, one_by_one, row
from tools.interrupts import ending_on_interrupt
from tools.paths import ROOT

__all__ = ["main", "measure"]

_EVERY = 20
_FOLDER = ROOT / "build" / "observing"


def _losses(model: nn.Module) -> Iterator[Callable[[], Any]]:
    """Yield the model, which draws inputs and gives its loss, with other random numbers for each step."""
    for step in itertools.count(1):
        torch.manual_seed(step)
        yield model


def _training(name: str) -> Training:
    torch.manual_seed(1)
    model = libraries.MODELS[name]()
    return Training(model, torch.optim.SGD(model.parameters(), lr=1e-3), 2.0**10, _losses(model))


def measure(name: str, repetitions: int) -> Row:
    """Train twins, one of them with every second step observed; their first steps count for nothing."""
    plain, observed = _training(name), _training(name)
    steps = 2 * repetitions + 1
    times = [plain.seconds() for _ in range(steps)][1:]
    folder = _FOLDER / name.partition(",")[0]
    with cstorch.observe(observed.model, every=2, folder=folder) as report:
        mixed = [observed.seconds() for _ in range(steps)][1:]
    print(f"python -m golden.torch report {folder}", file=sys.stderr)
    seen = [each.observed for each in report.steps][1:]
    single, between = (
        [each for each, is_seen in zip(mixed, seen, strict=True) if is_seen is of] for of in (True, False)
    )
    without, watched, idle = map(statistics.median, (times, single, between))
    mean = (watched + (_EVERY - 1) * idle) / _EVERY
    return row(name, plain.model, observed.model, (f"{without:.2f}", f"{watched:.2f}"), mean / without)


@ending_on_interrupt("lab.speed.observing_libraries", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="observing_libraries",
        result="observing-libraries",
        columns=("model", "parameters", "s a step", "the observed step", f"overhead with every={_EVERY}",
                 "weights that differ"),
        measure=partial(one_by_one, libraries.MODELS, measure),
        note="Processor time of the training's thread, with one thread for everything; random weights and inputs",
        repetitions=2,
        left=1,
    )  # fmt: skip
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
