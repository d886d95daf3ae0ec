"""The pages that show figures: each region between ``<!-- results TOOL:begin -->`` and its end is made from a result.

What a tool has measured is written into docs/results/TOOL.json, and from there into every page that has a region for
it: the same words everywhere, with where they come from, and with a warning where the source has changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools import evidence
from tools.interrupts import whole_in_spite_of_interrupts
from tools.paths import ROOT
from tools.regions import CONCLUSIONS, replace_region, replace_row
from tools.results import Result, Table, keep, kept

__all__ = ["OLDER", "PROVENANCE", "check", "filled", "markers", "pages", "publish", "refresh"]

#: What the front page says of a conclusion that is older than the tree.
OLDER = " (*measured on an older source*)"
#: The region with the origin of every figure.
PROVENANCE = "provenance"


def markers(tool: str) -> tuple[str, str]:
    """Return the comments around the region of a tool."""
    return f"<!-- results {tool}:begin -->", f"<!-- results {tool}:end -->"


def pages() -> list[Path]:
    """Return the pages that may show figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def check(tool: str) -> None:
    """Raise an error unless some page has a region for a tool: better known before a long measurement than after it.

    Raises
    ------
    ValueError
        If none has; the message names the markers.
    """
    begin, end = markers(tool)
    texts = (page.read_text(encoding="utf-8") for page in pages() if page.is_file())
    if not any(begin in text and end in text.partition(begin)[2] for text in texts):
        raise ValueError(f"--update-docs: got no page in {ROOT} with a region {begin} ... {end}, must have one")


def publish(result: Result) -> None:
    """Keep a result and write it into the pages."""
    with whole_in_spite_of_interrupts():
        keep(result)
        refresh()


def refresh() -> list[Path]:
    """Write all results into the pages, and return the pages that have changed."""
    results, judged, changed = kept(), evidence.published(), []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := filled(text, results, judged)) != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed


def filled(text: str, results: Mapping[str, Result], judged: Mapping[str, Result]) -> str:
    """Return a page with what the results say between its markers.

    Parameters
    ----------
    text : str
        The page.
    results : mapping of str to Result
        Those with tables, by tool.
    judged : mapping of str to Result
        The evidence, by tool.
    """
    for tool, result in results.items():
        begin, end = markers(tool)
        if begin in text:
            text = replace_region(text, result.markdown(), begin, end)
    begin, end = markers(PROVENANCE)
    if begin in text:
        text = replace_region(text, _origins(results, judged).markdown(), begin, end)
    if CONCLUSIONS[0] in text:
        for result in results.values():
            if result.subject:
                text = replace_row(text, result.subject, result.conclusion + (OLDER if result.changed else ""))
        is_older = any(result.changed for result in judged.values())
        said = evidence.conclusion([record for result in judged.values() for record in evidence.records_of(result)])
        text = replace_row(text, evidence.SUBJECT, said + (OLDER if is_older else ""))
    return text


def _origins(results: Mapping[str, Result], judged: Mapping[str, Result]) -> Table:
    """Return where every figure comes from, one result on each line."""
    named = dict(results) | {f"evidence: {tool}": result for tool, result in judged.items()}
    rows = []
    for name, result in named.items():
        source = "older" if result.changed else "this tree"
        rows.append((name, result.date, result.commit, f"`{result.command}`", source))
    return Table(("figures", "measured on", "at commit", "with", "source"), rows, left=5)
