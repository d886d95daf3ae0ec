"""The findings of all tools in the documentation: the kept results, the pages that show them, and one picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tools.evidence import KEPT, Means, Part, Record, collect, published, records_of, said
from tools.pages import refresh
from tools.paths import ROOT
from tools.results import keep
from tools.style import picture

__all__ = ["PICTURE", "draw", "publish"]

PICTURE = ROOT / "docs" / "figures" / "evidence.svg"
_COLOURS = {
    "all": "#2f7d4f",
    "bounded": "#8fc3a2",
    "sample": "#9cc3dd",
    "faults": "#e3b75f",
    "wrong": "#c0392b",
    "none": "#f0f0ee",
}
_LEGEND = {
    "all": "for every input",
    "bounded": "for every input, within a bound",
    "sample": "samples, none wrong",
    "faults": "the checks can fail",
    "none": "none",
}
_SAMPLES = (Means.SAMPLED, Means.REPLAYED, Means.SUITES)


def publish(tools: Collection[str] | None = None) -> list[Path]:
    """Publish the findings of the last whole runs, and return the pages that have changed.

    Parameters
    ----------
    tools : collection of str, optional
        Publish the findings of these tools alone. Without any, the pages and the picture still follow the kept results.
    """
    for name, result in collect().items():
        if tools is None or name in tools:
            keep(result, KEPT)
    pages = refresh()
    before = PICTURE.read_bytes()
    draw([record for result in published().values() for record in records_of(result)], PICTURE)
    return pages if PICTURE.read_bytes() == before else [*pages, PICTURE]


def _colour(records: Sequence[Record]) -> str:
    if not records:
        return "none"
    if any(record.wrong for record in records):
        return "wrong"
    if records[0].kind in _SAMPLES:
        return "sample"
    if records[0].kind is Means.FAULTS:
        return "faults"
    return "bounded" if any(record.limit for record in records) else "all"


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw the table of evidence as SVG."""
    from matplotlib.patches import Patch, Rectangle

    with picture(path, figsize=(12, 0.9 * len(Part) + 0.7)) as (figure, (axes,)):
        for row, unit in enumerate(Part):
            for column, kind in enumerate(Means):
                found = [record for record in records if (record.unit, record.kind) == (unit, kind)]
                colour = _colour(found)
                axes.add_patch(Rectangle((column + 0.03, row + 0.05), 0.94, 0.9, color=_COLOURS[colour]))
                lines = [
                    f"{said(record.count)} {record.noun}"
                    + (f",\n{record.wrong} wrong" if record.wrong else "")
                    + (f",\n{record.limit}" if record.limit else "")
                    for record in found
                ]
                ink = "white" if colour in ("all", "wrong") else "#222" if found else "#999"
                text = "\n".join(lines) or "–"
                axes.text(column + 0.5, row + 0.5, text, color=ink, ha="center", va="center", fontsize=8.5)
        axes.set_xlim(0, len(Means))
        axes.set_ylim(len(Part), 0)
        axes.set_xticks([column + 0.5 for column in range(len(Means))], list(Means))
        axes.set_yticks([row + 0.5 for row in range(len(Part))], [unit.replace("-", "-\n", 1) for unit in Part])
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=10)
        for side in axes.spines.values():
            side.set_visible(False)
        handles = [Patch(color=_COLOURS[name], label=label) for name, label in _LEGEND.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
