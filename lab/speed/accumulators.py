"""Time golden's products by the accumulators of other machines, and count wrong outputs."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import golden
from golden import BF16, FLOAT8_E4M3FN, kernels
from lab.speed.command import Measurement
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["Row", "main", "measure", "table"]

#: M, K, N of the product that is timed, and of that on which outputs are compared.
_TIMED, _JUDGED = (128, 512, 512), (16, 80, 40)
_TOOL = "accumulators-speed"


@dataclass(frozen=True)
class Row:
    """Products by one preset.

    Parameters
    ----------
    rates : tuple of float
        Products per second of one thread on each path, medians of processor time.
    wrong, judged : int
        Outputs on all paths that differ from NumPy's in some bit, of how many.
    """

    preset: str
    operand: str
    rates: tuple[float, ...]
    wrong: int
    judged: int


def _seconds(product: dict[str, Any]) -> float:
    """Return the processor time of this thread, which the other work of the machine does not lengthen."""
    started = time.thread_time()
    golden.matmul(**product)
    return time.thread_time() - started


def _product(name: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    rule = golden.accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN
    m, k, n = shape
    rng = np.random.default_rng(4)
    a, b = golden.encode(rng.standard_normal((m, k)), fmt), golden.encode(rng.standard_normal((k, n)), fmt)
    return {"a": a, "b": b, "operand": fmt, "reduction": rule}


def measure(name: str, paths: Sequence[str], repetitions: int) -> Row:
    """Time and judge one preset."""
    timed, judged = _product(name, _TIMED), _product(name, _JUDGED)
    with kernels.use("numpy"):
        wanted = golden.matmul(**judged)
    rates, wrong = [], 0
    for path in paths:
        with kernels.use(path, threads=1):
            wrong += int((golden.matmul(**judged) != wanted).sum())
            seconds = statistics.median(_seconds(timed) for _ in range(repetitions))
        rates.append(np.prod(_TIMED, dtype=float) / seconds)
    return Row(name, str(timed["operand"]), tuple(rates), wrong, wanted.size * len(paths))


def table(rows: Sequence[Row], paths: Sequence[str]) -> Table:
    """Return the rows as a table of 10^9 products per second and thread."""
    cells = [
        (f"`{row.preset}`", row.operand, *(f"{rate / 1e9:.2f}" for rate in row.rates), f"{row.wrong} of {row.judged:,}")
        for row in rows
    ]
    return Table(("preset", "operands", *paths, "wrong outputs"), cells, left=2)


@ending_on_interrupt("lab.speed.accumulators", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    m, k, n = _TIMED
    paths = [path for path in kernels.paths() if path not in ("numpy", "avx512fp16")]
    if not paths:
        sys.exit("the compiled kernels are missing: pip install builds them where there is a C++ compiler")
    command = Measurement(
        module="accumulators",
        result=_TOOL,
        measure=lambda repetitions: (measure(name, paths, repetitions) for name in golden.accumulators),
        tell=lambda row: f"{row.preset}: {', '.join(f'{rate / 1e9:.2f}' for rate in row.rates)} G/s, {row.wrong} wrong",
        table=lambda rows: table(rows, paths),
        wrong=lambda row: row.wrong,
        note=f"10^9 products per second of one thread's processor time, products of {m} x {k} by {k} x {n}",
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
