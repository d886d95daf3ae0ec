"""Swamping: a long sum in 16 bits stops growing when its addends fall below half its ulp; chunks prevent it.

The experiment repeats figure 3 of Wang et al., Training Deep Neural Networks with 8-bit Floating Point Numbers (2018).
The numbers are uniformly distributed, with mean 1 and standard deviation 1. Their sum in the format 1-6-9 stalls at
4096.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import golden
from golden.formats import HALF_FORMATS, FloatFormat
from golden.reduction import Reduction
from tools.style import median_and_range, picture, plain, power_label

__all__ = ["draw", "measure"]

_LENGTHS = tuple(2**exponent for exponent in range(4, 17))
_SEEDS = 8
_CHUNK = 32
_SUMS = ("one chain", "chunks, 16 bits", "chunks, fp32 total")


def _reductions(fmt: FloatFormat) -> tuple[Reduction, ...]:
    return Reduction(fmt, None, fmt), *(Reduction.for_level(level, fmt, chunk=_CHUNK) for level in (2, 1))


def measure() -> dict[str, dict[str, list[list[float]]]]:
    """Sum the numbers.

    Returns
    -------
    dict
        By format and kind of sum: for every length, the quotient of computed and exact sum for every seed.
    """
    rng = np.random.default_rng(0)
    # Uniform over a width of sqrt(12), which makes the standard deviation 1.
    numbers = 1 + np.sqrt(12) * (rng.random((_SEEDS, max(_LENGTHS))) - 0.5)
    found: dict[str, dict[str, list[list[float]]]] = {}
    for fmt in HALF_FORMATS:
        codes = golden.encode(numbers, fmt)
        exact = np.cumsum(golden.decode(codes, fmt).astype(np.float64), axis=1)
        one = np.array([fmt.one], codes.dtype)
        found[fmt.name] = {}
        for name, reduction in zip(_SUMS, _reductions(fmt), strict=True):
            quotients = []
            for length in _LENGTHS:
                ones = np.broadcast_to(one, (length, 1))
                total = golden.matmul(codes[:, :length], ones, operand=fmt, reduction=reduction)
                quotients.append((golden.decode(total, reduction.outer)[:, 0] / exact[:, length - 1]).tolist())
            found[fmt.name][name] = quotients
    return found


def draw(found: dict[str, dict[str, list[list[float]]]], path: Path) -> None:
    """Draw a panel for every kind of sum."""
    with picture(path, len(_SUMS), figsize=(10, 3.6), sharey=True) as (_, panels):
        for axes, name in zip(panels, _SUMS, strict=True):
            for fmt in HALF_FORMATS:
                median_and_range(axes, _LENGTHS, found[fmt.name][name], fmt, label=fmt.name)
            axes.set_xscale("log", base=2)
            axes.set_xticks(_LENGTHS[::3], [power_label(np.log2(length)) for length in _LENGTHS[::3]])
            axes.set_title({_SUMS[1]: f"level 2, chunks of {_CHUNK}", _SUMS[2]: f"level 1, chunks of {_CHUNK}"}.get(
                name, "16 bits, one chain"), fontsize=10)  # fmt: skip
            axes.set_xlabel("numbers in the sum, mean 1")
            plain(axes)
        panels[0].set_ylabel("computed sum / exact sum")
        panels[0].legend(frameon=False)
