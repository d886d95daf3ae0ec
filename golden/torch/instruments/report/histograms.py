"""Drawings of exponents: how many values have each one, against the range of their format."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from golden.formats import FloatFormat
from golden.torch.instruments.report.curves import Axis, Tick, power_ticks
from golden.torch.instruments.report.records import Histogram, known_format
from golden.torch.instruments.report.words import power

__all__ = ["HEIGHT", "WIDTH", "Bars", "Frame", "bars", "frames"]

WIDTH, HEIGHT = 300, 96
#: The smallest share that is drawn, as a power of ten.
_LOWEST = -6
# A format with more binades than this is shown where the values are, with its limits where they are near.
_WHOLE, _NEAR, _MARGIN = 90, 12, 3
_EDGE = 12  # half the width of a label


@dataclass(frozen=True)
class Frame:
    """The background that all drawings of one format share.

    Parameters
    ----------
    format : str
    axis : Axis
        From exponents to places.
    ticks : list of Tick
    subnormal, overflow : float or None
        Where the normal numbers begin, and where they end; None beyond the drawing.
    smallest : float or None
        Where the subnormal numbers begin.
    limits : str
        The limits in words.
    """

    format: str
    axis: Axis
    ticks: list[Tick]
    subnormal: float | None
    overflow: float | None
    smallest: float | None
    limits: str


@dataclass(frozen=True)
class Bars:
    """A histogram: the outline of its bars, and its caption."""

    outline: str
    spread: str
    is_at_top: bool


def frames(histograms: Iterable[Histogram]) -> dict[str, Frame]:
    """Return a frame for each format that some histograms have."""
    ends: dict[str, list[int]] = {}
    for histogram in histograms:
        known = ends.setdefault(histogram.format, [])
        exponents = [int(each) for each, count in histogram.exponents.items() if count]
        if exponents:
            known += [min(exponents), max(exponents)]
    return {name: _frame(name, known or [0, 0]) for name, known in ends.items()}


def _frame(name: str, exponents: list[int]) -> Frame:
    fmt = known_format(name)
    low, high = min(exponents) - _MARGIN, max(exponents) + _MARGIN
    if fmt is not None:
        low, high = _with_limits(fmt, low, high)
    axis = Axis(low, high + 1, 0, WIDTH)
    # A label stands in the middle of the bar of its exponent.
    half = (axis(low + 1) - axis(low)) / 2
    ticks = [
        Tick(round(tick.place + half, 1), tick.label) for tick in power_ticks(Axis(low, high, 0, axis(high)), power)
    ]
    ticks = [tick for tick in ticks if _EDGE <= tick.place <= WIDTH - _EDGE]
    if fmt is None:
        return Frame(name, axis, ticks, None, None, None, "its range is not known here")
    smallest = fmt.emin - fmt.fraction_bits
    limits = (
        f"normal from {power(fmt.emin)}, subnormal from {power(smallest)}, overflow beyond {power(fmt.emax)} × "
        f"{2 - 2.0**-fmt.fraction_bits:.4g}"
    )
    return Frame(
        name, axis, ticks, _inside(axis, fmt.emin), _inside(axis, fmt.emax + 1), _inside(axis, smallest), limits
    )


def _with_limits(fmt: FloatFormat, low: int, high: int) -> tuple[int, int]:
    smallest, largest = fmt.emin - fmt.fraction_bits, fmt.emax
    if largest - smallest <= _WHOLE:
        return min(low, smallest - _MARGIN), max(high, largest + _MARGIN)
    first = smallest - _MARGIN if low - smallest < _NEAR else low - _NEAR
    last = largest + _MARGIN if largest - high < _NEAR else high + _NEAR
    return first, last


def _inside(axis: Axis, exponent: int) -> float | None:
    return axis(exponent) if axis.low <= exponent <= axis.high else None


def bars(histogram: Histogram, frame: Frame) -> Bars:
    """Draw a histogram: the height of a bar is the logarithm of its share."""
    exponents, total = histogram.by_exponent, histogram.finite
    height, path, last = Axis(_LOWEST, 0, HEIGHT, 0), [], None
    for exponent, count in exponents:
        if last != exponent:  # a gap
            path.append(f"{'' if last is None else f'V{HEIGHT}'}M{frame.axis(exponent):g} {HEIGHT}")
        top = min(height(math.log10(count / total)), HEIGHT - 1.5)
        path.append(f"V{top:g}H{frame.axis(exponent + 1):g}")
        last = exponent + 1
    if path:
        path.append(f"V{HEIGHT}")
    fmt = histogram.number_format
    top_exponent = histogram.top
    return Bars(
        "".join(path),
        f"{power(exponents[0][0])} to {power(exponents[-1][0])}" if exponents else "no finite value but 0",
        bool(histogram.infinite or (fmt is not None and top_exponent is not None and top_exponent >= fmt.emax)),
    )
