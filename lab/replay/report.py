"""Reports of the replay: a table of counts, and a picture of the events in the sums of every layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.replay.judge import Replayed
from tools.results import Table
from tools.style import picture

__all__ = ["Total", "draw", "table", "totals"]

_KINDS = ("overflowed", "underflowed", "swamped")


@dataclass(frozen=True)
class Total:
    """All replayed products of a format at a level."""

    operand: str
    level: int
    matrices: int
    outputs: int
    products: int
    differ: int
    cycles: int


def totals(verdicts: Iterable[Replayed]) -> list[Total]:
    """Sum up by format and level."""
    groups: dict[tuple[str, int], list[Replayed]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.product.operand.name, verdict.level), []).append(verdict)
    return [
        Total(
            operand, level, len(group),
            sum(each.product.a.shape[0] * each.product.b.shape[1] for each in group),
            sum(each.product.size for each in group),
            sum(each.differ for each in group), sum(each.cycles for each in group),
        )
        for (operand, level), group in groups.items()
    ]  # fmt: skip


def table(rows: list[Total]) -> Table:
    """Return the rows as a table."""
    counts = ("matrix products", "outputs", "multiply-accumulates", "cycles", "outputs that differ")
    cells = []
    for row in rows:
        numbers = row.level, row.matrices, row.outputs, row.products, row.cycles, row.differ
        cells.append((row.operand, *(f"{each:,}" for each in numbers)))
    return Table(("operands", "level", *counts), cells)


def draw(verdicts: list[Replayed], path: Path) -> None:
    """Draw a panel each for the shares of overflowed and underflowed outputs and of swamped products."""
    from matplotlib.colors import LogNorm

    layers = list(dict.fromkeys(_layer(each) for each in verdicts))
    modes = list(dict.fromkeys((each.product.operand.name, each.level) for each in verdicts))
    size = (11, 1.6 + 0.17 * len(layers))
    with picture(path, len(_KINDS), figsize=size, sharey=True) as (figure, panels):
        for axes, kind in zip(panels, _KINDS, strict=True):
            shares = np.full((len(layers), len(modes)), np.nan)
            for row, layer in enumerate(layers):
                for column, mode in enumerate(modes):
                    its = [each for each in verdicts if _layer(each) == layer]
                    found = [getattr(each, kind) for each in its if (each.product.operand.name, each.level) == mode]
                    if found:
                        shares[row, column] = np.mean(found)
            image = axes.imshow(
                np.where(shares == 0, np.nan, shares), aspect="auto", cmap="YlOrRd", norm=LogNorm(1e-4, 1)
            )
            axes.set_title({"swamped": "swamped products"}.get(kind, f"{kind} outputs"), fontsize=9)
            axes.set_xticks(range(len(modes)), [f"{name} {level}" for name, level in modes], rotation=90)
            axes.set_yticks(range(len(layers)), layers)
            axes.set_xticks(np.arange(len(modes)) - 0.5, minor=True)
            axes.set_yticks(np.arange(len(layers)) - 0.5, minor=True)
            axes.grid(which="minor", color="#ddd", lw=0.5)
            axes.tick_params(which="both", length=0, labelsize=8)
            for side in axes.spines.values():
                side.set_visible(False)
        bar = figure.colorbar(image, ax=panels, shrink=0.6, pad=0.01)
        bar.set_label("share; white: none")


def _layer(verdict: Replayed) -> str:
    return f"{verdict.product.layer} {verdict.product.direction}"
