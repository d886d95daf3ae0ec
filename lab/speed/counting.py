"""Time golden's products with counts beside those without, and compare the counts of every path."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden import FloatFormat, kernels
from golden.formats import HALF_FORMATS
from lab.speed.command import Measurement
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["REQUESTS", "CountingRow", "main", "measure_counting", "table"]

#: M, K, N of the product that is timed, and of that whose counts are compared.
_TIMED, _JUDGED = (256, 1024, 256), (16, 80, 20)
#: What is asked for, by the name of its column.
REQUESTS: dict[str, dict[str, Any]] = {
    '"sum"': {"counts": "sum"},
    '"rows"': {"counts": "rows"},
    "True": {"counts": True},
    '"sum" of 1 row in 32': {"counts": "sum", "counted_rows": slice(0, None, 32)},
    '"sum" of 1 row in 64': {"counts": "sum", "counted_rows": slice(0, None, 64)},
}

Values = NDArray[np.float32]


@dataclass(frozen=True)
class CountingRow:
    """Products of one operand format at one level on one path.

    Parameters
    ----------
    seconds : float
        Of a product without counts, the median.
    ratios : tuple of float
        The time with each of `REQUESTS` divided by that without, medians.
    wrong, judged : int
        Numbers and result bits that differ from NumPy's without counts, of how many.
    """

    path: str
    operand: FloatFormat
    level: int
    seconds: float
    ratios: tuple[float, ...]
    wrong: int
    judged: int


def _operands(shape: tuple[int, int, int]) -> tuple[Values, Values]:
    m, k, n = shape
    rng = np.random.default_rng(4)
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def _seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of this thread, which the other work of the machine does not lengthen."""
    started = time.thread_time()
    run()
    return time.thread_time() - started


def _numbers(counts: golden.Counts) -> NDArray[np.int64]:
    """Return all counts in one vector."""
    found = [*vars(counts.products).values(), *vars(counts.promotions).values(), counts.largest_exponent]
    return np.concatenate([np.ravel(each) for each in found])


def _wrong(fmt: FloatFormat, level: int) -> tuple[int, int]:
    given = _operands(_JUDGED)
    wrong = judged = 0
    for request in REQUESTS.values():
        values, counts = golden.matmul_values(*given, operand=fmt, level=level, **request)
        with kernels.use("numpy"):
            wanted = golden.matmul_values(*given, operand=fmt, level=level)
            _, numbers = golden.matmul_values(*given, operand=fmt, level=level, **request)
        pairs = (
            (values.view(np.uint32).ravel(), wanted.view(np.uint32).ravel()),
            (_numbers(counts), _numbers(numbers)),
        )
        for got, want in pairs:
            wrong, judged = wrong + int((got != want).sum()), judged + got.size
    return wrong, judged


def _row(path: str, fmt: FloatFormat, level: int, repetitions: int) -> CountingRow:
    given = _operands(_TIMED)

    def product(**request: Any) -> Callable[[], Any]:
        return lambda: golden.matmul_values(*given, operand=fmt, level=level, **request)

    plain = product()
    plain()
    times: list[float] = []
    ratios: list[list[float]] = [[] for _ in REQUESTS]
    for _ in range(repetitions):
        for request, found in zip(REQUESTS.values(), ratios, strict=True):
            counted = product(**request)
            counted()
            seconds = statistics.median(_seconds(plain) for _ in range(3))
            times.append(seconds)
            found.append(statistics.median(_seconds(counted) for _ in range(3)) / seconds)
    medians = tuple(statistics.median(found) for found in ratios)
    return CountingRow(path, fmt, level, statistics.median(times), medians, *_wrong(fmt, level))


def measure_counting(repetitions: int) -> Iterator[CountingRow]:
    """Yield a row for every path of vectors, 16-bit format and level, on one thread."""
    for path in kernels.paths():
        if path in ("avx512fp16", "avx512", "avx2"):
            with kernels.use(path, threads=1):
                for fmt in HALF_FORMATS:
                    for level in (0, 1, 2):
                        yield _row(path, fmt, level, repetitions)


def table(rows: Sequence[CountingRow]) -> Table:
    """Return the rows as they are shown."""
    columns = ("path", "operands", "level", "without, ms", *(f"× {name}" for name in REQUESTS), "wrong numbers")
    lines = [
        (
            *(row.path, str(row.operand), str(row.level), f"{1e3 * row.seconds:.2f}"),
            *(f"{ratio:.2f}" for ratio in row.ratios),
            f"{row.wrong} of {row.judged}" if row.wrong else "none",
        )
        for row in rows
    ]
    return Table(columns, lines, left=2)


@ending_on_interrupt("lab.speed.counting", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    m, k, n = _TIMED
    command = Measurement(
        module="counting",
        result="speed-counting",
        measure=measure_counting,
        tell=lambda row: f"{row.path}, {row.operand}, level {row.level}: {row.wrong} of {row.judged} wrong",
        table=table,
        wrong=lambda row: row.wrong,
        note=f"{m} x {k} by {k} x {n} normal values; one thread, its own processor time",
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
