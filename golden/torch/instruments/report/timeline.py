"""The timeline: loss, loss scale, skipped steps and events above one axis of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from golden.torch.instruments.report.curves import (
    Axis,
    Tick,
    decade_ticks,
    line,
    number_ticks,
    power_ticks,
    stairs,
    whole_ticks,
)
from golden.torch.instruments.report.judging import share_of_steps
from golden.torch.instruments.report.limits import EVENTS, LIMITS
from golden.torch.instruments.report.records import Run
from golden.torch.instruments.report.words import number, percent, power

__all__ = ["LEFT", "WIDTH", "Line", "Panel", "Timeline", "sparkline", "timeline"]

WIDTH, LEFT, _RIGHT = 960, 112, 944
_GAP = 26
_NAME = 16  # letters of a run that fit beside a panel
_LOWEST = -6  # the smallest share that is drawn, as a power of ten


@dataclass(frozen=True)
class Line:
    """A curve of a panel, and the number of its run."""

    path: str
    run: int


@dataclass(frozen=True)
class Panel:
    """One strip of the timeline.

    Parameters
    ----------
    label, unit : str
    top, height : float
    ticks : list of Tick
    lines : list of Line
    bars : list of tuple
        Place and height of each bar.
    marks : list of tuple
        Place and number of each mark.
    limit : float or None
        Where the limit is drawn.
    empty : str
        What stands in a strip without anything.
    """

    label: str
    unit: str
    top: float
    height: float
    ticks: list[Tick] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    bars: list[tuple[float, float]] = field(default_factory=list)
    marks: list[tuple[float, int]] = field(default_factory=list)
    limit: float | None = None
    empty: str = ""

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


@dataclass(frozen=True)
class Timeline:
    """All panels, their common axis, and their captions."""

    panels: list[Panel]
    ticks: list[Tick]
    height: float
    words: str


def timeline(runs: Sequence[Run]) -> Timeline:
    """Draw one run with its events, or several over each other without."""
    numbers = [step.step for run in runs for step in run.steps]
    x = Axis(min(numbers, default=0), max(numbers, default=1), LEFT, _RIGHT)
    top, panels = 12.0, []
    if len(runs) == 1:
        marks = _first_steps(x, runs[0])
        panels.append(Panel("first bad", "", top, 18, marks=marks, empty="" if marks else "nothing went bad"))
        top = panels[-1].bottom + 12
    panels.append(_losses(x, runs, top))
    panels.append(_scales(x, runs, panels[-1].bottom + _GAP))
    for place, run in enumerate(runs):
        name = "" if len(runs) == 1 else run.name
        panels.append(_skipped(x, run, panels[-1].bottom + (_GAP if not place else 18), name))
    if len(runs) == 1:
        for place, name in enumerate(EVENTS):
            panels.append(_event(x, runs[0], name, panels[-1].bottom + (_GAP if not place else 10)))
    return Timeline(panels, whole_ticks(x, 10), panels[-1].bottom + 44, _in_words(runs))


def _first_steps(x: Axis, run: Run) -> list[tuple[float, int]]:
    """Return a mark for each of the steps at which something went bad first, as many as are legible."""
    marks: list[tuple[float, int]] = []
    for at, bad in enumerate(run.telling, 1):
        if not marks or abs(x(bad.step) - marks[-1][0]) > 14:
            marks.append((x(bad.step), at))
    return marks


def _losses(x: Axis, runs: Sequence[Run], top: float) -> Panel:
    values = [step.loss for run in runs for step in run.steps if step.loss is not None and math.isfinite(step.loss)]
    if not values:
        return Panel("loss", "", top, 24, empty="no loss was written")
    low, high, bottom = min(values), max(values), top + 130
    if low > 0 and high / low > 50:
        logs = Axis(math.log10(low), math.log10(high), bottom, top)
        ticks = decade_ticks(logs, lambda value: number(value, 2))
        curves = [[(at, math.log10(loss) if loss > 0 else math.nan) for at, loss in _with_loss(run)] for run in runs]
        return Panel("loss", "log scale", top, 130, ticks, [Line(line(x, logs, c), n) for n, c in enumerate(curves)])
    y = Axis(min(low, 0.0) if low < 0.4 * high else low, high, bottom, top)
    ticks = number_ticks(y, lambda value: number(value, 3))
    return Panel(
        "loss", "", top, 130, ticks,
        [Line(line(x, y, _with_loss(run)), n) for n, run in enumerate(runs)],
    )  # fmt: skip


def _with_loss(run: Run) -> list[tuple[int, float]]:
    return [(step.step, step.loss) for step in run.steps if step.loss is not None]


def _scales(x: Axis, runs: Sequence[Run], top: float) -> Panel:
    curves = [[(s.step, math.log2(s.loss_scale) if s.loss_scale else math.nan) for s in run.steps] for run in runs]
    values = [value for curve in curves for _, value in curve if math.isfinite(value)]
    if not values:
        return Panel("loss scale", "", top, 24, empty="the loss was not scaled")
    y = Axis(math.floor(min(values)) - 0.5, math.ceil(max(values)) + 0.5, top + 84, top)
    ticks = power_ticks(y, power, 4)
    return Panel("loss scale", "", top, 84, ticks, [Line(stairs(x, y, curve), n) for n, curve in enumerate(curves)])


def _skipped(x: Axis, run: Run, top: float, name: str) -> Panel:
    places = sorted({round(x(step.step)) for step in run.steps if step.skipped})
    return Panel(
        "skipped",
        name if len(name) <= _NAME else f"{name[: _NAME - 1]}…",
        top,
        16,
        bars=[(place, 16.0) for place in places],
        empty="" if places else "none",
    )


def _event(x: Axis, run: Run, name: str, top: float) -> Panel:
    """Draw the largest share of any layer at each observed step; the height is its logarithm."""
    largest: dict[int, float] = {}
    for layer in run.layers:
        shares = share_of_steps(layer, name)
        for step, share in zip(layer.steps[shares > 0].tolist(), shares[shares > 0].tolist(), strict=True):
            if share > largest.get(step, 0.0):
                largest[step] = share
    height = 34.0
    y = Axis(_LOWEST, 0, 0, height)
    bars: dict[float, float] = {}
    for step, share in largest.items():
        place = round(x(step))
        bars[place] = max(bars.get(place, 0.0), y(math.log10(share)), 1.5)
    limit = LIMITS[name].share
    top_share = max(largest.values(), default=0.0)
    return Panel(
        LIMITS[name].label,
        f"up to {percent(top_share)}" if largest else "",
        top,
        height,
        bars=sorted(bars.items()),
        limit=top + height - y(math.log10(limit)) if limit and largest else None,
        empty="" if largest else "none",
    )


def _in_words(runs: Sequence[Run]) -> str:
    said = []
    for run in runs:
        losses = [step.loss for step in run.steps if step.loss is not None]
        loss = f"loss {number(losses[0], 3)} to {number(losses[-1], 3)}, " if losses else ""
        said.append(f"{run.name}: {loss}{sum(step.skipped for step in run.steps)} steps skipped")
    return "; ".join(said)


def sparkline(steps: np.ndarray, shares: np.ndarray, width: float = 132, height: float = 26) -> str:
    """Draw a share over the observed steps, as high as its logarithm."""
    if not len(steps) or not np.nanmax(np.nan_to_num(shares)):
        return ""
    x, y = Axis(float(steps[0]), float(steps[-1]), 0, width), Axis(_LOWEST, 0, height, 0)
    values = np.log10(np.maximum(np.nan_to_num(shares), 10.0**_LOWEST))
    if len(steps) > 44:  # the largest of neighbours
        groups = np.array_split(np.arange(len(steps)), 44)
        steps, values = np.array([steps[g[0]] for g in groups]), np.array([values[g].max() for g in groups])
    return line(x, y, list(zip(steps.tolist(), values.tolist(), strict=True)))
