"""How each layer fared in each pass: shares of events, a score, and an order with the worst first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from golden.counts import COUNTED
from golden.torch.instruments.report.limits import EVENTS, LIMITS
from golden.torch.instruments.report.records import BadStep, Layer, Run

__all__ = ["Judged", "judged", "share_of_steps", "worst_first"]


@dataclass(frozen=True)
class Judged:
    """One layer in one pass, measured by the limits.

    Parameters
    ----------
    layer : Layer
    shares : dict of str to float or None
        For each event the larger of its shares of the products and of the promotions; the mean relative distance from
        the fp32 result. None where nothing was measured.
    of_products, of_promotions : dict of str to float
        The shares apart.
    score : float
        The largest share as a multiple of its limit's unit; 1 and more is beyond a limit.
    worst : str
        The event that makes the score; empty if nothing happened.
    ulp_mean, ulp_max : float or None
        Distance from the fp32 result in ulp.
    first_bad : BadStep or None
    """

    layer: Layer
    shares: dict[str, float | None]
    of_products: dict[str, float]
    of_promotions: dict[str, float]
    score: float
    worst: str
    ulp_mean: float | None
    ulp_max: float | None
    first_bad: BadStep | None

    @property
    def is_bad(self) -> bool:
        """Whether it is beyond a limit."""
        return any(self.is_beyond(name) for name in LIMITS)

    @property
    def is_all_zero(self) -> bool:
        """Whether it is a gradient, and every result is 0."""
        output = self.layer.tensors["output"]
        return self.layer.direction != "forward" and 0 < output.total == output.zero

    @property
    def is_lost(self) -> bool:
        """Whether every result of a gradient is 0, and in fp32 some are not."""
        return self.is_all_zero and bool(self.shares["distance"])

    def is_beyond(self, name: str) -> bool:
        """Return whether a share is beyond its limit."""
        share = self.shares[name]
        return share is not None and share > LIMITS[name].share

    def grade(self, name: str) -> int:
        """Return how a share compares with its limit.

        Nothing is 0, a tenth of the limit 1, up to the limit 2, up to ten times the limit 3, more is 4.
        """
        share, limit = self.shares[name], LIMITS[name]
        if not share:
            return 0
        if share > limit.share:
            return 4 if share > 10 * limit.unit else 3
        return 1 if share <= limit.unit / 10 else 2


def judged(run: Run) -> list[Judged]:
    """Judge every layer of a run in every pass, in the order of the model."""
    first = {(each.module, each.direction): each for each in reversed(run.telling)}
    return [_judge(layer, first.get((layer.module, layer.direction))) for layer in run.layers]


def worst_first(layers: Iterable[Judged]) -> list[Judged]:
    """Put the highest score first; among equals, what went bad first, then the order of the model."""
    return sorted(
        layers, key=lambda each: (-each.score, each.first_bad.step if each.first_bad is not None else float("inf"))
    )


def _judge(layer: Layer, first_bad: BadStep | None) -> Judged:
    of_products, of_promotions = _shares(layer.products), _shares(layer.promotions)
    relative, ulp_mean, ulp_max = _distance(layer.distances)
    shares: dict[str, float | None] = {name: max(of_products[name], of_promotions[name]) for name in EVENTS}
    shares["distance"] = relative
    multiples = {name: (share or 0.0) / LIMITS[name].unit for name, share in shares.items()}
    for name, share in shares.items():
        if share and not LIMITS[name].share:  # none is allowed
            multiples[name] = max(1.0, multiples[name])
    worst = max(multiples, key=lambda name: multiples[name])
    score = multiples[worst]
    return Judged(
        layer, shares, of_products, of_promotions, score, worst if score else "", ulp_mean, ulp_max, first_bad
    )


def _shares(counted: NDArray[np.int64]) -> dict[str, float]:
    totals = dict(zip(COUNTED, counted.sum(0).tolist(), strict=True))
    return {name: totals[name] / totals["steps"] if totals["steps"] else 0.0 for name in (*EVENTS, "inexact")}


def _distance(distances: NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Return the mean relative distance, the mean and the largest in ulp, each None if it was never measured."""
    known = distances[np.isfinite(distances).all(1)]
    if not len(known):
        return None, None, None
    return float(known[:, 0].mean()), float(known[:, 1].mean()), float(known[:, 2].max())


def share_of_steps(layer: Layer, name: str) -> NDArray[np.float64]:
    """Return an event's share in every observed step: the larger of products and promotions, shape (n,)."""
    if name == "distance":
        return layer.distances[:, 0]
    column = COUNTED.index(name)
    return np.maximum(_ratio(layer.products, column), _ratio(layer.promotions, column))


def _ratio(counted: NDArray[np.int64], column: int) -> NDArray[np.float64]:
    return counted[:, column] / np.maximum(counted[:, 0], 1)
