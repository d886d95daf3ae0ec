"""Results on the pages: what their files say when the site is built, marked where the source has changed since."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes

from lab.fpga.report import published
from lab.fpga.units import parameters_of
from tools import evidence
from tools.pages import filled
from tools.results import Result, kept, read

__all__ = ["OLDER", "mark", "measurement", "outdated", "refresh"]

_MARKER = "<!-- results "
OLDER = "Measured on an older source"


@cache
def _known() -> tuple[dict[str, Result], dict[str, Result]]:
    return dict(kept()), dict(evidence.published())


def refresh(app: Any, document: str, source: list[str]) -> None:
    """Write the results of today into the regions of a page that is read."""
    if _MARKER in source[0]:
        source[0] = filled(source[0], *_known())


def outdated(app: Any, environment: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return the pages with results: whether their source has changed depends on the code, not on the page."""
    paths = {document: environment.doc2path(document) for document in environment.found_docs - added}
    return [document for document, path in paths.items() if _MARKER in Path(path).read_text(encoding="utf-8")]


def mark(app: Any, document: nodes.document, name: str) -> None:
    """Mark the words about an older source with a class for the style sheet."""
    for strong in document.findall(nodes.strong):
        if strong.astext().startswith(OLDER):
            strong["classes"].append("older")


def measurement(built: Any) -> Iterator[str]:
    """Yield the measurements of a unit on an FPGA as lines of reStructuredText; nothing if there are none."""
    report, kept_result = published(), read("fpga")
    found = {result.parameters: result for result in report.results}.get(parameters_of(built))
    if found is None:
        return
    low, high = found.frequencies[0], found.frequencies[-1]
    area = ", ".join(f"{found.area[kind]} {what}" for kind, what in _CELLS.items() if found.area.get(kind))
    yield f"{report.target}: {area}; {found.megahertz:.0f} MHz, {low:.0f} to {high:.0f} over {len(found.frequencies)}"
    yield f"seeds of the placement. Measured on {kept_result.date}, at commit {kept_result.commit}, with"
    yield f"``{kept_result.command}``; :doc:`all units </results/fpga>` says how."
    if kept_result.age:
        yield f"**{kept_result.age.replace('`', '')}**"


_CELLS = {"COMB": "LUTs", "FF": "flip-flops", "DSP": "multiplier blocks", "TRELLIS_DPR16X4": "memories of 16 × 4 bits"}
