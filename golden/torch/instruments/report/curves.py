"""Coordinates of drawings: places on an axis, round numbers along it, and paths through many points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Axis", "Tick", "decade_ticks", "line", "number_ticks", "power_ticks", "stairs", "whole_ticks"]

#: Points of a path: more are joined to their lowest and highest.
_POINTS = 400


@dataclass(frozen=True)
class Axis:
    """A straight map from values to places in a drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value, with a tenth of a unit; what lies beyond is put on the end."""
        inside = min(max(value, self.low), self.high)
        width = (self.high - self.low) or 1.0
        return round(self.start + (self.end - self.start) * (inside - self.low) / width, 1)


@dataclass(frozen=True)
class Tick:
    """A place on an axis with its label."""

    place: float
    label: str


def whole_ticks(axis: Axis, most: int = 8) -> list[Tick]:
    """Return round whole numbers along an axis."""
    step = max(1, math.ceil(_round_step((axis.high - axis.low) / most)))
    first = math.ceil(axis.low / step) * step
    return [Tick(axis(value), f"{value:,}") for value in range(first, math.floor(axis.high) + 1, step)]


def number_ticks(axis: Axis, label: Callable[[float], str], most: int = 4) -> list[Tick]:
    """Return round numbers along an axis."""
    step = _round_step((axis.high - axis.low) / most) or 1.0
    values = np.arange(math.ceil(axis.low / step), math.floor(axis.high / step) + 1) * step
    return [Tick(axis(value), label(float(f"{value:.12g}"))) for value in values.tolist()]


def decade_ticks(axis: Axis, label: Callable[[float], str]) -> list[Tick]:
    """Return powers of ten along an axis of their exponents, and 2 and 5 times them where there are few."""
    factors = (1, 2, 5) if axis.high - axis.low < 2.5 else (1,)
    values = [
        factor * 10.0**exponent
        for exponent in range(math.floor(axis.low), math.floor(axis.high) + 1)
        for factor in factors
    ]
    return [
        Tick(axis(math.log10(value)), label(value)) for value in values if axis.low <= math.log10(value) <= axis.high
    ]


def power_ticks(axis: Axis, label: Callable[[int], str], most: int = 8) -> list[Tick]:
    """Return whole exponents along an axis of exponents: every one, or every 2, 5, 10 and so on."""
    step = next((step for step in (1, 2, 5, 10, 20, 50) if (axis.high - axis.low) / step <= most), 100)
    first = math.ceil(axis.low / step) * step
    return [Tick(axis(value), label(value)) for value in range(first, math.floor(axis.high) + 1, step)]


def _round_step(step: float) -> float:
    if step <= 0 or not math.isfinite(step):
        return 0.0
    size = 10.0 ** math.floor(math.log10(step))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step * (1 - 1e-9))


def line(x: Axis, y: Axis, points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points, with gaps where a value is not finite."""
    path, is_drawing = [], False
    for at, value in _joined(x, points):
        if not math.isfinite(value):
            is_drawing = False
            continue
        path.append(f"{'L' if is_drawing else 'M'}{x(at):g} {y(value):g}")
        is_drawing = True
    return "".join(path)


def _joined(x: Axis, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points, or of each narrow stripe of many only the lowest and the highest."""
    if len(points) <= 2 * _POINTS:
        return list(points)
    stripes: dict[int, list[tuple[float, float]]] = {}
    width = (x.high - x.low) / _POINTS or 1.0
    for point in points:
        stripes.setdefault(int((point[0] - x.low) / width), []).append(point)
    joined = []
    for stripe in stripes.values():
        finite = [point for point in stripe if math.isfinite(point[1])]
        if len(finite) < len(stripe):
            joined.append((stripe[0][0], math.nan))
        if finite:
            joined += sorted({min(finite, key=_value), max(finite, key=_value)})
    return joined


def _value(point: tuple[float, float]) -> float:
    return point[1]


def stairs(x: Axis, y: Axis, points: Sequence[tuple[float, float]]) -> str:
    """Return a path of steps: each value holds until the next place."""
    path, last = [], math.nan
    for at, value in points:
        if not math.isfinite(value):
            last = math.nan
        elif math.isnan(last):
            path.append(f"M{x(at):g} {y(value):g}")
            last = value
        elif y(value) != y(last):
            path.append(f"H{x(at):g}V{y(value):g}")
            last = value
    if path and points:
        path.append(f"H{x(points[-1][0]):g}")
    return "".join(path)
