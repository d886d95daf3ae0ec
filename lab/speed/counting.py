"""Time golden's products with counts relative to products without, and compare the counts of every path."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden import FloatFormat, kernels
from lab.speed.command import Measurement, Row, on_vector_paths, timed
from tools.interrupts import ending_on_interrupt

__all__ = ["REQUESTS", "main", "measure_counting"]

#: M, K, N of the timed product, and of the product whose counts are compared.
_TIMED, _JUDGED = (256, 1024, 256), (16, 80, 20)
#: The requests, by the names of their columns.
REQUESTS: dict[str, dict[str, Any]] = {
    '"sum"': {"counts": "sum"},
    '"rows"': {"counts": "rows"},
    "True": {"counts": True},
    '"sum" of 1 row in 32': {"counts": "sum", "counted_rows": slice(0, None, 32)},
    '"sum" of 1 row in 64': {"counts": "sum", "counted_rows": slice(0, None, 64)},
}


def _operands(shape: tuple[int, int, int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    m, k, n = shape
    rng = np.random.default_rng(4)
    return rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)


def _numbers(counts: golden.Counts) -> NDArray[np.int64]:
    """Return all counts in one vector."""
    found = [*vars(counts.products).values(), *vars(counts.promotions).values(), counts.largest_exponent]
    return np.concatenate([np.ravel(each) for each in found])


def _wrong(fmt: FloatFormat, level: int) -> tuple[int, int]:
    """Return how many counts and result bits differ from NumPy's, whose results are computed without counts."""
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


def _row(repetitions: int, path: str, fmt: FloatFormat, level: int) -> Row:
    product = partial(golden.matmul_values, *_operands(_TIMED), operand=fmt, level=level)
    seconds, ratios = timed(product, [partial(product, **request) for request in REQUESTS.values()], repetitions)
    figures = f"{1e3 * seconds:.2f}", *(f"{ratio:.2f}" for ratio in ratios)
    return Row((path, str(fmt), str(level)), figures, *_wrong(fmt, level))


def measure_counting(repetitions: int) -> Iterator[Row]:
    """Yield the time of a product without counts and the times of `REQUESTS` relative to it."""
    return on_vector_paths(("avx512fp16", "avx512", "avx2"), partial(_row, repetitions))


@ending_on_interrupt("lab.speed.counting", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    m, k, n = _TIMED
    command = Measurement(
        module="counting",
        result="speed-counting",
        columns=("path", "operands", "level", "without, ms", *(f"× {name}" for name in REQUESTS), "wrong numbers"),
        measure=measure_counting,
        note=f"{m} x {k} by {k} x {n} normal values; one thread, its own processor time",
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
