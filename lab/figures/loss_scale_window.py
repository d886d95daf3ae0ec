"""The window of loss scales in which a format trains: below it gradients underflow, above it they overflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from golden.formats import HALF_FORMATS
from lab.figures.digits_run import final_loss, mlp, train
from tools.style import COLOURS, median_and_range, picture, plain, power_label

__all__ = ["draw", "measure"]

EXPONENTS = tuple(range(-28, 37, 2))
SEEDS = 3
_STEPS = 100
_UNTRAINED = float(np.log(10))


def measure() -> dict[str, dict[str, list[float]]]:
    """Train with every static scale and the dynamic one.

    Returns
    -------
    dict
        By format and scale (``"-28"`` ... ``"36"`` for 2^-28 ... 2^36, ``"dynamic"``): the final loss for every seed.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for fmt in HALF_FORMATS:
        found[fmt.name] = {}
        for exponent in (*EXPONENTS, None):
            scale = "dynamic" if exponent is None else 2.0**exponent
            losses = []
            for seed in range(SEEDS):
                model = mlp(seed)
                train(model, half=fmt.name, loss_scale=scale, steps=_STEPS, seed=seed)
                losses.append(final_loss(model))
            found[fmt.name]["dynamic" if exponent is None else str(exponent)] = losses
    return found


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw the final loss against the scale."""
    with picture(path, figsize=(8, 4.2)) as (_, (axes,)):
        # Where they agree, the widest line shows beneath the others.
        for number, fmt in enumerate(reversed(HALF_FORMATS)):
            losses = [found[fmt.name][str(exponent)] for exponent in EXPONENTS]
            median_and_range(axes, EXPONENTS, losses, fmt, lw=5 - 1.8 * number, label=fmt.name)
            dynamic = np.array(found[fmt.name]["dynamic"])
            axes.errorbar(
                EXPONENTS[-1] + 3 + number, np.median(dynamic), color=COLOURS[fmt], marker="o",
                yerr=[[np.median(dynamic) - dynamic.min()], [dynamic.max() - np.median(dynamic)]],
            )  # fmt: skip
        axes.axhline(_UNTRAINED, color="#888", lw=0.8)
        axes.text(np.mean(EXPONENTS), _UNTRAINED, "guessing", ha="center", va="bottom", fontsize=8)
        ticks = list(EXPONENTS[::3])
        axes.set_xticks([*ticks, EXPONENTS[-1] + 4], [*map(power_label, ticks), "dynamic"])
        axes.set_xlabel("loss scale")
        axes.set_ylabel(f"loss after {_STEPS} steps; bands: {SEEDS} seeds")
        axes.legend(frameon=False, loc="center")
        plain(axes)
