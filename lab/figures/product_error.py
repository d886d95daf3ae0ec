"""The error of matrix products against the length of their sums, at every precision level."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import golden
from golden.formats import HALF_FORMATS
from golden.reduction import LEVELS
from tools.style import LEVEL_STYLES, median_and_range, picture, plain, power_label

__all__ = ["draw", "measure"]

_LENGTHS = tuple(2**exponent for exponent in range(3, 15))
_ROWS = 32
_SEEDS = 5


def measure() -> dict[str, dict[int, list[list[float]]]]:
    """Multiply matrices of normally distributed numbers.

    Returns
    -------
    dict
        By format and level: for every length K, the root mean square error relative to the exact product, for every
        seed. The operands count as exact: their rounding adds nothing.
    """
    found: dict[str, dict[int, list[list[float]]]] = {}
    for fmt in HALF_FORMATS:
        found[fmt.name] = {level: [] for level in LEVELS}
        for length in _LENGTHS:
            errors: dict[int, list[float]] = {level: [] for level in LEVELS}
            for seed in range(_SEEDS):
                rng = np.random.default_rng(seed)
                shapes = ((_ROWS, length), (length, _ROWS))
                a, b = (golden.quantize(rng.standard_normal(shape), fmt) for shape in shapes)
                exact = a.astype(np.float64) @ b.astype(np.float64)
                for level in LEVELS:
                    product = golden.matmul_values(a, b, operand=fmt, level=level)
                    errors[level].append(float(np.sqrt(np.mean((product - exact) ** 2) / np.mean(exact**2))))
            for level in LEVELS:
                found[fmt.name][level].append(errors[level])
    return found


def draw(found: dict[str, dict[int, list[list[float]]]], path: Path) -> None:
    """Draw a panel for every format."""
    with picture(path, len(HALF_FORMATS), figsize=(10, 3.6), sharey=True) as (_, panels):
        for axes, fmt in zip(panels, HALF_FORMATS, strict=True):
            for level in LEVELS:
                samples = found[fmt.name][level]
                median_and_range(axes, _LENGTHS, samples, fmt, LEVEL_STYLES[level], label=f"level {level}")
            axes.axhline(2.0**-(fmt.precision), color="#888", lw=0.8)
            axes.text(_LENGTHS[-1], 2.0 ** -(fmt.precision + 0.3), "half an ulp of 1", ha="right", va="top", fontsize=8)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log", base=2)
            axes.set_xticks(_LENGTHS[1::3], [power_label(np.log2(length)) for length in _LENGTHS[1::3]])
            axes.set_title(fmt.name, fontsize=10)
            axes.set_xlabel("products in a sum (K)")
            plain(axes)
            axes.legend(frameon=False, loc="center left")
        panels[0].set_ylabel("relative error (root mean square)")
