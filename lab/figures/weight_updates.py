"""Small updates of weights in 16 bits: lost to rounding to nearest, kept on average by stochastic rounding.

Plain descent moves a weight of 1 by the same small step again and again. The weight is kept in float32, and in 16-bit
formats by `golden.torch.optim.keep_weights`, rounded to nearest and rounded stochastically.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from golden import BF16, CBFLOAT16
from golden.torch.optim import keep_weights
from tools.style import COLOURS, picture, plain

__all__ = ["draw", "measure"]

_STEPS = 2000
_EVERY = 40
_WEIGHTS = 1000
_UPDATE = 2.0**-13
_FORMATS = (CBFLOAT16, BF16)
_ROUNDINGS = ("nearest_even", "stochastic")


def _weights(fmt: str | None, rounding: str) -> list[list[float]]:
    """Return the weights at every `_EVERY`-th step."""
    weight = nn.Parameter(torch.ones(_WEIGHTS))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    if fmt is not None:
        keep_weights(optimizer, fmt, rounding=rounding, seed=1)
    found = [weight.tolist()]
    for step in range(1, _STEPS + 1):
        weight.grad = torch.full_like(weight, -_UPDATE)
        optimizer.step()
        if step % _EVERY == 0:
            found.append(weight.tolist())
    return found


def measure() -> dict[str, dict[str, list[list[float]]]]:
    """Move the weights.

    Returns
    -------
    dict
        By format and rounding: the weights at every 40th step, from step 0.
    """
    found = {"float32": {"nearest_even": [each[:1] for each in _weights(None, "")]}}
    for fmt in _FORMATS:
        found[fmt.name] = {rounding: _weights(fmt.name, rounding) for rounding in _ROUNDINGS}
    return found


def draw(found: dict[str, dict[str, list[list[float]]]], path: Path) -> None:
    """Draw a panel for every format."""
    steps = [_EVERY * number for number in range(len(found["float32"]["nearest_even"]))]
    exact = [weights[0] for weights in found["float32"]["nearest_even"]]
    with picture(path, len(_FORMATS), figsize=(9, 3.8), sharey=True) as (_, panels):
        for axes, fmt in zip(panels, _FORMATS, strict=True):
            colour = COLOURS[fmt]
            random = [sorted(weights) for weights in found[fmt.name]["stochastic"]]
            low, high = ([weights[int(share * (len(weights) - 1))] for weights in random] for share in (0.05, 0.95))
            axes.fill_between(
                steps, low, high, color=colour, alpha=0.2, linewidth=0, label="stochastic, 90 % of weights"
            )
            axes.plot(steps, [sum(weights) / len(weights) for weights in random], color=colour, label="their mean")
            nearest = [weights[0] for weights in found[fmt.name]["nearest_even"]]
            axes.plot(steps, nearest, color=colour, linestyle=":", label="to nearest even")
            axes.plot(steps, exact, color="black", linewidth=0.8, linestyle="--", label="float32")
            axes.set_title(fmt.name, fontsize=10)
            axes.set_xlabel("steps, each of 2^-13")
            plain(axes)
            axes.legend(frameon=False, fontsize=8, loc="upper left")
        panels[0].set_ylabel("weight")
