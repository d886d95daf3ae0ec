"""Reports of the comparison: Markdown for docs/results/speed.md, and a picture of speed against wrong outputs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lab.speed.measure import Row
from lab.speed.quantise import VALUES, QuantiseRow
from tools.results import Table
from tools.style import COLOURS, picture, plain

__all__ = ["SUBJECT", "conclusion", "draw", "products", "quantising"]

SUBJECT = "speed of the model"
_COLOURS = {fmt.name: colour for fmt, colour in COLOURS.items()}
#: The place of 0 wrong outputs on the logarithmic axis.
_NONE_WRONG = 3e-5
_CLOSE = 1.6  # ratio of two points on an axis, below which their names would overlap


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.2g} G" if rate >= 1e8 else f"{rate / 1e6:.2g} M"


def conclusion(rows: list[Row], path: str) -> str:
    """Return one line: golden's rates in cbfloat16 on one thread, beside PyTorch's fp32 product.

    `path` names the kernels in use, on which the rates depend most.
    """
    rates = {
        row.name.removeprefix("golden, "): f"{_rate(row.rate)} ({row.ratio:.2g} × `torch.mm`)"
        for row in rows
        if row.name.startswith("golden") and row.operand == "cbfloat16" and row.threads == 1
    }
    wrong = sum(row.wrong for row in rows if row.name.startswith("golden"))
    said = "; ".join(f"{level}: {rate}" for level, rate in rates.items())
    return f"products per second in cbfloat16 on one thread, {path} kernels, {said}; {wrong or 'no'} wrong outputs"


def products(rows: list[Row]) -> Table:
    """Return the table of products."""
    lines = []
    for row in rows:
        wrong = "none" if row.wrong == 0 else f"{100 * row.wrong / row.judged:.2g} %"
        name = f"{row.name} ({row.version})" if not row.name.startswith("golden") else f"**{row.name}**"
        lines.append((name, row.operand, row.reduction, _rate(row.rate), f"{row.ratio:.2g}", wrong))
    return Table(("product", "operands", "meant", "products/s", "× torch.mm", "wrong outputs"), lines, left=3)


def quantising(rows: list[QuantiseRow]) -> Table:
    """Return the table of roundings."""
    lines = []
    for row in rows:
        wrong = "none" if row.wrong == 0 else f"{100 * row.wrong / VALUES:.2g} %"
        name = f"**{row.name}**" if row.name.startswith("golden") else row.name
        lines.append((name, row.format or "-", _rate(row.rate), wrong))
    return Table(("rounding", "to", "values/s", "wrong outputs"), lines, left=2)


def draw(rows: list[Row], path: Path) -> None:
    """Draw speed against the share of wrong outputs."""
    shown = [row for row in rows if row.threads == 1]
    with picture(path, figsize=(9, 5.2)) as (_, (axes,)):
        for row in shown:
            share = max(row.wrong / row.judged, _NONE_WRONG)
            marker = "*" if row.name.startswith("golden") else "o"
            axes.scatter(share, row.rate, s=60, color=_COLOURS[row.operand], marker=marker)
        _label(axes, shown)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(_NONE_WRONG / 2, 6)
        axes.set_xlabel("share of outputs with a wrong bit, K = 2048")
        axes.set_ylabel("multiply-accumulates per second, one thread")
        axes.set_xticks([_NONE_WRONG, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["none", "0.01 %", "0.1 %", "1 %", "10 %", "100 %"])
        plain(axes)
        for number, (name, colour) in enumerate(_COLOURS.items()):
            axes.text(0.99, 0.03 + 0.05 * number, name, color=colour, transform=axes.transAxes, ha="right")


def _label(axes: Any, rows: list[Row]) -> None:
    """Name every cluster of points once: the points of a library lie together."""
    clusters: dict[str, list[Row]] = {}
    for row in rows:
        clusters.setdefault(_cluster(row.name), []).append(row)
    places = []
    for name, members in clusters.items():
        rightmost = max(members, key=lambda row: row.wrong)
        places.append((rightmost.rate, max(rightmost.wrong / rightmost.judged, _NONE_WRONG), name))
    above = (math.inf, 0.0)
    for rate, share, name in sorted(places, reverse=True):
        # A name close below another one goes below its point.
        is_close = above[0] / rate < _CLOSE and 1 / _CLOSE < above[1] / share < _CLOSE
        axes.annotate(name, (share, rate), xytext=(7, -11 if is_close else 4), textcoords="offset points", fontsize=8)
        above = (rate, share)


def _cluster(name: str) -> str:
    if name in ("golden, level 1", "golden, level 2"):
        return "golden, levels 1 and 2"
    if name.startswith(("golden", "torch")):
        return name
    if name.endswith(", a loop"):
        return name.partition(" of ")[2] or name
    return name.partition(",")[0].partition(" of ")[0]
