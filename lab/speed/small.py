"""Time small and narrow calls of PyTorch in a precision beside fp32, and compare their bits with NumPy's."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import golden.torch as cstorch
from golden import kernels
from lab.speed.command import Measurement
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["CALLS", "SmallRow", "main", "measure_small", "table"]

Call = Callable[[], Sequence[Tensor]]
_LONG_ENOUGH = 0.02  # seconds of a timing


@dataclass(frozen=True)
class SmallRow:
    """One call at one level.

    Parameters
    ----------
    plain, exact : float
        Seconds of this thread in fp32 and in the precision, medians.
    ratio : float
        Of the two, timed in turns; the median.
    wrong, judged : int
        Numbers of the results that differ from NumPy's in some bit, of how many.
    """

    name: str
    level: int
    plain: float
    exact: float
    ratio: float
    wrong: int
    judged: int


def _step(results: Callable[[], Tensor], *leaves: Tensor) -> Call:
    """Return a forward and a backward pass; its results are the gradients."""
    return lambda: torch.autograd.grad(results().float().sum(), leaves)


def _small_linear() -> tuple[nn.Module, Tensor]:
    return nn.Linear(8, 8), torch.randn(1, 8)


def _linear() -> Call:
    layer, x = _small_linear()
    return lambda: [layer(x)]


def _linear_step() -> Call:
    layer, x = _small_linear()
    return _step(lambda: layer(x), *layer.parameters())


def _relu() -> Call:
    x = torch.randn(1, 8, requires_grad=True)
    return lambda: [F.relu(x)]


def _lstm_step() -> Call:
    layer, x = nn.LSTM(64, 128, 2), torch.randn(32, 16, 64)
    return _step(lambda: layer(x)[0], *layer.parameters())


def _attention() -> Call:
    query, key, value = (torch.randn(4, 4, 64, 32, requires_grad=True) for _ in range(3))
    return lambda: [F.scaled_dot_product_attention(query, key, value)]


def _convolution(groups: int = 1) -> Call:
    layer, x = nn.Conv2d(32, 32, 3, padding=1, groups=groups), torch.randn(4, 32, 28, 28)
    return lambda: [layer(x)]


def _depthwise_step() -> Call:
    layer, x = nn.Conv2d(192, 192, 3, padding=1, groups=192), torch.randn(2, 192, 32, 32, requires_grad=True)
    return _step(lambda: layer(x), x, layer.weight)


#: By name: what makes the call.
CALLS: dict[str, Callable[[], Call]] = {
    "relu, 1 x 8": _relu,
    "linear, 1 x 8 by 8": _linear,
    "linear, 1 x 8 by 8, and backward": _linear_step,
    "LSTM, 2 layers of 128, 32 steps of 16 rows, and backward": _lstm_step,
    "attention, 4 x 4 x 64 x 32": _attention,
    "convolution, 3 x 3, 32 channels of 28 x 28": _convolution,
    "convolution, 3 x 3, depthwise": lambda: _convolution(groups=32),
    "convolution, 3 x 3, depthwise, 192 channels of 32 x 32, and backward": _depthwise_step,
}


def _seconds(run: Call, count: int) -> float:
    started = time.thread_time()
    for _ in range(count):
        run()
    return (time.thread_time() - started) / count


def _wrong(run: Call, precision: cstorch.precision) -> tuple[int, int]:
    with precision:
        got = run()
        with kernels.use("numpy"):
            wanted = run()
    pairs = [(one.view(torch.uint8), other.view(torch.uint8)) for one, other in zip(got, wanted, strict=True)]
    return sum(int((one != other).sum()) for one, other in pairs), sum(each.numel() for each in got)


def _row(name: str, level: int, repetitions: int) -> SmallRow:
    torch.manual_seed(1)
    run, precision = CALLS[name](), cstorch.precision("bfloat16", level=level)
    wrong = _wrong(run, precision)
    run()
    count = max(1, int(_LONG_ENOUGH / _seconds(run, 3)))
    times = []
    for _ in range(repetitions):
        plain = _seconds(run, count)
        with precision:
            times.append((plain, _seconds(run, count)))
    plain, exact = (statistics.median(each) for each in zip(*times, strict=True))
    return SmallRow(name, level, plain, exact, statistics.median(b / a for a, b in times), *wrong)


def measure_small(repetitions: int) -> Iterator[SmallRow]:
    """Yield a row for every call at levels 0 and 1, with one thread."""
    torch.set_num_threads(1)
    with kernels.use(threads=1):
        for name in CALLS:
            for level in (0, 1):
                yield _row(name, level, repetitions)


def table(rows: Sequence[SmallRow]) -> Table:
    """Return the rows as they are shown."""
    cells = [
        (row.name, str(row.level), f"{row.plain * 1e6:.3g}", f"{row.exact * 1e6:.3g}", f"{row.ratio:.2f}",
         f"{row.wrong} of {row.judged}" if row.wrong else "none")
        for row in rows
    ]  # fmt: skip
    return Table(("call", "level", "fp32, us", "bfloat16, us", "× fp32", "wrong outputs"), cells, left=1)


@ending_on_interrupt("lab.speed.small", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="small",
        result="speed-small",
        measure=measure_small,
        tell=lambda row: f"{row.name}, level {row.level}: {row.ratio:.2f} × fp32, {row.wrong} of {row.judged} wrong",
        table=table,
        wrong=lambda row: row.wrong,
        note="one thread, its own processor time",
        repetitions=9,
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
