"""Time golden's products by the accumulators of other machines, and count wrong outputs."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden import BF16, FLOAT8_E4M3FN, kernels
from lab.speed.command import Measurement, Row, differing, thread_seconds
from tools.interrupts import ending_on_interrupt

__all__ = ["main", "measure"]

#: M, K, N of the timed product, and of the product whose outputs are compared.
_TIMED, _JUDGED = (128, 512, 512), (16, 80, 40)


def _product(name: str, shape: tuple[int, int, int]) -> partial[NDArray[Any]]:
    rule = golden.accumulators[name]
    fmt = BF16 if rule.operand_bits == 16 else FLOAT8_E4M3FN
    m, k, n = shape
    rng = np.random.default_rng(4)
    a, b = golden.encode(rng.standard_normal((m, k)), fmt), golden.encode(rng.standard_normal((k, n)), fmt)
    return partial(golden.matmul, a, b, operand=fmt, reduction=rule)


def _row(name: str, paths: Sequence[str], repetitions: int) -> Row:
    timed, judged = _product(name, _TIMED), _product(name, _JUDGED)
    rates, wrong, size = [], 0, 0
    for path in paths:
        with kernels.use(path, threads=1):
            differ, count = differing(lambda: [judged()])
            seconds = statistics.median(thread_seconds(timed) for _ in range(repetitions))
        wrong, size = wrong + differ, size + count
        rates.append(f"{np.prod(_TIMED) / seconds / 1e9:.2f}")
    return Row((f"`{name}`", str(timed.keywords["operand"])), tuple(rates), wrong, size)


def measure(paths: Sequence[str], repetitions: int) -> Iterator[Row]:
    """Yield the 10^9 products per second of each preset on each path, and the outputs that differ from NumPy's."""
    return (_row(name, paths, repetitions) for name in golden.accumulators)


@ending_on_interrupt("lab.speed.accumulators", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    m, k, n = _TIMED
    paths = [path for path in kernels.paths() if path not in ("numpy", "avx512fp16")]
    if not paths:
        sys.exit("the compiled kernels are missing: pip install builds them where there is a C++ compiler")
    command = Measurement(
        module="accumulators",
        result="accumulators-speed",
        columns=("preset", "operands", *paths, "wrong outputs"),
        measure=partial(measure, paths),
        note=f"10^9 products per second of one thread's processor time, products of {m} x {k} by {k} x {n}",
    )
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
