"""The exponents of a training run's gradients, beside the ranges of the formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

from golden.formats import HALF_FORMATS
from lab.figures.digits_run import mlp, train
from tools.style import COLOURS, picture, plain, power_label

__all__ = ["draw", "measure"]

_STEPS = 300
_LOWEST, _HIGHEST = -60, 20


def measure() -> dict[str, list[int]]:
    """Train in fp32, unscaled, and count the exponents of all gradients.

    Returns
    -------
    dict
        ``"weights"``, ``"activations"``: how many gradients have the exponents from -60 to 20 (the first count holds
        smaller exponents, too); ``"zeros"``: how many gradients of either kind are 0.
    """
    counts = {name: np.zeros(_HIGHEST - _LOWEST + 1, np.int64) for name in ("weights", "activations")}
    zeros = dict.fromkeys(counts, 0)

    def count(name: str, gradient: torch.Tensor) -> None:
        values = np.abs(gradient.detach().numpy().ravel())
        zeros[name] += int((values == 0).sum())
        exponents = np.clip(np.frexp(values[values > 0])[1] - 1, _LOWEST, _HIGHEST)
        counts[name] += np.bincount(exponents - _LOWEST, minlength=counts[name].size)

    def watch(model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                count("weights", parameter.grad)

    def keep(_module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.register_hook(lambda gradient: count("activations", gradient))

    model = mlp(seed=0)
    for module in model:
        module.register_forward_hook(keep)
    train(model, half=None, loss_scale=None, steps=_STEPS, seed=0, watch=watch)
    return {name: each.tolist() for name, each in counts.items()} | {"zeros": list(zeros.values())}


def draw(found: dict[str, list[int]], path: Path) -> None:
    """Draw the histogram above the ranges of the formats."""
    exponents = np.arange(_LOWEST, _HIGHEST + 1)
    with picture(path, figsize=(8, 4.2)) as (_, (axes,)):
        for name, colour in (("activations", "#999999"), ("weights", "#333333")):
            shares = np.array(found[name]) / sum(found[name])
            axes.step(exponents, 100 * shares, where="mid", color=colour, label=f"gradients of {name}")
        highest = 100 * max(max(found[name]) / sum(found[name]) for name in ("weights", "activations"))
        for number, fmt in enumerate(HALF_FORMATS):
            height = -highest * (0.08 + 0.08 * number)
            smallest = fmt.emin - fmt.fraction_bits
            axes.plot([max(smallest, _LOWEST), fmt.emin], [height] * 2, color=COLOURS[fmt], lw=2, ls=":")
            axes.plot([max(fmt.emin, _LOWEST), min(fmt.emax, _HIGHEST)], [height] * 2, color=COLOURS[fmt], lw=4)
            axes.text(_HIGHEST + 1, height, fmt.name, color=COLOURS[fmt], va="center", fontsize=9)
        ticks = range(_LOWEST, _HIGHEST + 1, 10)
        axes.set_xticks(ticks, map(power_label, ticks))
        axes.set_xlim(_LOWEST - 1, _HIGHEST + 9)
        axes.set_xlabel("magnitude of a gradient; bars below: what a format holds, dotted where it is subnormal")
        axes.set_ylabel("share in %")
        axes.set_yticks([tick for tick in axes.get_yticks() if tick >= 0])
        axes.legend(frameon=False, loc="upper left")
        plain(axes)
