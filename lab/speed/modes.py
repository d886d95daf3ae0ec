"""Time golden's products in every rounding mode relative to nearest even, and count wrong outputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import golden
from golden import FloatFormat, Rounding
from lab.speed.command import Measurement, Row, differing, on_vector_paths, timed
from tools.interrupts import ending_on_interrupt

__all__ = ["MODES", "main", "measure_modes"]

#: All modes except nearest_even.
MODES = tuple(mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN)
#: M, K, N of the timed product, and of the product whose outputs are compared.
_TIMED, _JUDGED = (256, 256, 256), (16, 80, 20)

Product = Callable[[], NDArray[Any]]


def _products(shape: tuple[int, int, int], fmt: FloatFormat, level: int) -> dict[Rounding, Product]:
    """Return the product of one pair of matrices in every mode."""
    m, k, n = shape
    rng = np.random.default_rng(4)
    a, b = golden.encode(rng.standard_normal((m, k)), fmt), golden.encode(rng.standard_normal((k, n)), fmt)

    def product(mode: Rounding) -> Product:
        return lambda: golden.matmul(a, b, operand=fmt, level=level, rounding=mode, seed=5)

    return {mode: product(mode) for mode in Rounding}


def _row(repetitions: int, path: str, fmt: FloatFormat, level: int) -> Row:
    products, judged = _products(_TIMED, fmt, level), _products(_JUDGED, fmt, level)
    seconds, ratios = timed(products[Rounding.NEAREST_EVEN], [products[mode] for mode in MODES], repetitions)
    rate = float(np.prod(_TIMED)) / seconds
    figures = f"{rate / 1e9:.2g} G", *(f"{1 / ratio:.2g}" for ratio in ratios)
    return Row((path, str(fmt), str(level)), figures, *differing(lambda: [run() for run in judged.values()]))


def measure_modes(repetitions: int) -> Iterator[Row]:
    """Yield the rate in nearest_even, and the speed of the other modes relative to it."""
    return on_vector_paths(("avx512", "avx2"), partial(_row, repetitions))


@ending_on_interrupt("lab.speed.modes", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if nothing is wrong."""
    command = Measurement(
        module="modes",
        result="speed-modes",
        columns=("path", "operands", "level", "nearest_even, products/s", *(f"× {mode}" for mode in MODES),
                 "wrong outputs"),
        measure=measure_modes,
        note="one thread, its own processor time",
        repetitions=9,
    )  # fmt: skip
    return command.main(__doc__, arguments)


if __name__ == "__main__":
    sys.exit(main())
