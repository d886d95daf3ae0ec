"""Time small and narrow calls of PyTorch in a precision relative to fp32, and compare their bits with NumPy's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

import golden.torch as cstorch
from golden import kernels
from lab.speed.command import Measurement, Row, differing, thread_seconds, timed
from tools.interrupts import ending_on_interrupt

__all__ = ["CALLS", "main", "measure_small"]

Call = Callable[[], Sequence[Tensor]]
_LONG_ENOUGH = 0.02  # seconds of a timing


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


#: Makers of calls, by name.
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


def _bits(results: Sequence[Tensor]) -> list[NDArray[Any]]:
    kinds = {2: torch.int16, 4: torch.int32}
    return [each.detach().view(kinds[each.element_size()]).numpy() for each in results]


def _repeated(run: Call, count: int) -> None:
    for _ in range(count):
        run()


def _row(name: str, level: int, repetitions: int) -> Row:
    torch.manual_seed(1)
    run, precision = CALLS[name](), cstorch.precision("bfloat16", level=level)
    with precision:
        wrong, judged = differing(lambda: _bits(run()))
    run()
    count = max(1, int(_LONG_ENOUGH / thread_seconds(lambda: _repeated(run, 3)) * 3))

    def exact() -> None:
        with precision:
            _repeated(run, count)

    plain, (ratio,) = timed(lambda: _repeated(run, count), [exact], repetitions)
    figures = f"{plain / count * 1e6:.3g}", f"{ratio * plain / count * 1e6:.3g}", f"{ratio:.2f}"
    return Row((name, str(level)), figures, wrong, judged)


def measure_small(repetitions: int) -> Iterator[Row]:
    """Yield a row for every call at levels 0 and 1, with one thread."""
    torch.set_num_threads(1)
    with kernels.use(threads=1):
        for name in CALLS:
            for level in (0, 1):
                yield _row(name, level, repetitions)


@ending_on_interrupt("lab.speed.small", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="small",
        result="speed-small",
        columns=("call", "level", "fp32, us", "bfloat16, us", "× fp32", "wrong outputs"),
        measure=measure_small,
        note="one thread, its own processor time",
        repetitions=3,
        left=1,
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
