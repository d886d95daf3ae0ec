"""Time golden's products in every rounding mode beside those to nearest even, and count wrong outputs."""

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
from golden import FloatFormat, Rounding, kernels
from golden.formats import HALF_FORMATS
from lab.speed.command import Measurement
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["MODES", "ModesRow", "main", "measure_modes", "table"]

#: Those beside nearest_even.
MODES = tuple(mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN)
#: M, K, N of the product that is timed, and of that on which outputs are compared.
_TIMED, _JUDGED = (256, 256, 256), (16, 80, 20)

Operands = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class ModesRow:
    """Products of one operand format at one level on one path.

    Parameters
    ----------
    rate : float
        Products per second to nearest even, the median.
    ratios : tuple of float
        The speed of each of `MODES` divided by that to nearest even, medians.
    wrong, judged : int
        Outputs in all modes that differ from NumPy's in some bit, of how many.
    """

    path: str
    operand: FloatFormat
    level: int
    rate: float
    ratios: tuple[float, ...]
    wrong: int
    judged: int


def _operands(shape: tuple[int, int, int], fmt: FloatFormat) -> Operands:
    m, k, n = shape
    rng = np.random.default_rng(4)
    return golden.encode(rng.standard_normal((m, k)), fmt), golden.encode(rng.standard_normal((k, n)), fmt)


def _product(given: Operands, fmt: FloatFormat, level: int, mode: Rounding) -> Callable[[], NDArray[Any]]:
    return lambda: golden.matmul(*given, operand=fmt, level=level, rounding=mode, seed=5)


def _seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of this thread, which the other work of the machine does not lengthen."""
    started = time.thread_time()
    run()
    return time.thread_time() - started


def _wrong(fmt: FloatFormat, level: int) -> tuple[int, int]:
    given = _operands(_JUDGED, fmt)
    wrong = judged = 0
    for mode in Rounding:
        run = _product(given, fmt, level, mode)
        got = run()
        with kernels.use("numpy"):
            wanted = run()
        wrong, judged = wrong + int((got != wanted).sum()), judged + got.size
    return wrong, judged


def _row(path: str, fmt: FloatFormat, level: int, repetitions: int) -> ModesRow:
    given = _operands(_TIMED, fmt)
    plain = _product(given, fmt, level, Rounding.NEAREST_EVEN)
    plain()
    rates: list[float] = []
    ratios: list[list[float]] = [[] for _ in MODES]
    for _ in range(repetitions):
        for mode, found in zip(MODES, ratios, strict=True):
            seconds = statistics.median(_seconds(plain) for _ in range(3))
            rates.append(float(np.prod(_TIMED)) / seconds)
            found.append(seconds / _seconds(_product(given, fmt, level, mode)))
    medians = tuple(statistics.median(found) for found in ratios)
    return ModesRow(path, fmt, level, statistics.median(rates), medians, *_wrong(fmt, level))


def measure_modes(repetitions: int) -> Iterator[ModesRow]:
    """Yield a row for every path of vectors, 16-bit format and level, on one thread."""
    for path in kernels.paths():
        if path in ("avx512", "avx2"):
            with kernels.use(path, threads=1):
                for fmt in HALF_FORMATS:
                    for level in (0, 1, 2):
                        yield _row(path, fmt, level, repetitions)


def table(rows: Sequence[ModesRow]) -> Table:
    """Return the rows as they are shown."""
    columns = (
        "path",
        "operands",
        "level",
        "nearest_even, products/s",
        *(f"× {mode}" for mode in MODES),
        "wrong outputs",
    )
    lines = [
        (row.path, str(row.operand), str(row.level), f"{row.rate / 1e9:.2g} G", *(f"{each:.2g}" for each in row.ratios),
         f"{row.wrong} of {row.judged}" if row.wrong else "none")
        for row in rows
    ]  # fmt: skip
    return Table(columns, lines, left=2)


@ending_on_interrupt("lab.speed.modes", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="modes",
        result="speed-modes",
        measure=measure_modes,
        tell=lambda row: f"{row.path}, {row.operand}, level {row.level}: {row.wrong} of {row.judged} wrong",
        table=table,
        wrong=lambda row: row.wrong,
        note="one thread, its own processor time",
        repetitions=9,
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
