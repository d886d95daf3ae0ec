"""Numbers and names as a reader of the page sees them."""

from __future__ import annotations

import math
from typing import Any

from golden.torch.instruments.report.limits import RARE

__all__ = ["count", "number", "pass_in_words", "percent", "power", "shape", "short_percent", "short_power", "times"]

_PASSES = {
    "forward": "forward",
    "gradient_of_input": "input gradient",
    "gradient_of_weight": "weight gradient",
}
_SPACE = "\u00a0"  # at which no line is broken
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def pass_in_words(direction: str) -> str:
    """Return the name of a pass."""
    return _PASSES[direction]


def percent(share: float | None) -> str:
    """Write a share with two digits that count."""
    if share is None or math.isnan(share):
        return "not measured"
    if share == 0:
        return f"0{_SPACE}%"
    if share < RARE:
        return f"under{_SPACE}0.0001{_SPACE}%"
    return f"{number(100 * share)}{_SPACE}%"


def short_percent(share: float | None) -> str:
    """Write a share for a narrow cell, in percent without the sign."""
    if share is None or math.isnan(share):
        return "–"
    if share == 0:
        return "0"
    return "<.01" if share < 1e-4 else number(100 * share, 2).removeprefix("0")


def number(value: float | None, digits: int = 2) -> str:
    """Write a number with some digits that count, and no exponent where that is readable."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if 1000 <= abs(value) < 1e12:
        rounded = round(value, digits - 1 - math.floor(math.log10(abs(value)))) if digits < 4 else value
        return f"{rounded:,.0f}".replace("-", "−")
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        places = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
        text = f"{value:.{max(0, min(places, 8))}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits - 1}e}"
    return text.replace("-", "−")


def count(value: int) -> str:
    """Write a whole number; a large one is rounded to thousands, millions and so on."""
    for size, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if value >= size:
            return f"{number(value / size, 3)} {name}"
    return f"{value:,}"


def times(many: int, one: str, more: str) -> str:
    """Write how many there are of something."""
    return f"{many:,} {one if many == 1 else more}"


def power(exponent: int) -> str:
    """Write a power of two."""
    return "2" + str(exponent).translate(_RAISED)


def short_power(scale: float | None) -> str:
    """Write a loss scale, as a power of two if it is one."""
    if scale is None:
        return "none"
    if not math.isfinite(scale):
        return number(scale)
    fraction, exponent = math.frexp(scale)
    return power(exponent - 1) if fraction == 0.5 else number(scale, 4)


def shape(sizes: tuple[Any, ...]) -> str:
    """Write the sizes of a product."""
    return " × ".join(map(str, sizes))
