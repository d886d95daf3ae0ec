"""The pages that show figures: each region between ``<!-- results TOOL:begin -->`` and its end is made from a result.

The measurements of a tool are written into docs/results/TOOL.json, and from there into every page that has a region for
them. All pages have the same words with the origin of the figures, and a warning if the source has changed since.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import evidence
from tools.interrupts import whole_in_spite_of_interrupts
from tools.paths import ROOT
from tools.results import Result, Table, keep, kept

__all__ = [
    "CONCLUSIONS",
    "OLDER",
    "PROVENANCE",
    "add_update_docs",
    "filled",
    "markers",
    "pages",
    "publish",
    "refresh",
    "replace_region",
    "replace_row",
]

#: Markers of the table of conclusions in README.md: a row for each tool that measures or judges.
CONCLUSIONS = ("<!-- conclusions:begin -->", "<!-- conclusions:end -->")
#: The note on the front page about a conclusion that is older than the tree.
OLDER = " (*measured on an older source*)"
#: The region that names the origin of every figure.
PROVENANCE = "provenance"


def markers(tool: str) -> tuple[str, str]:
    """Return the comments around the region of a tool."""
    return f"<!-- results {tool}:begin -->", f"<!-- results {tool}:end -->"


def pages() -> list[Path]:
    """Return the pages that may show figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def add_update_docs(parser: argparse.ArgumentParser, tool: str, text: str) -> None:
    """Add the option ``--update-docs``, which is an error unless some page has a region for a tool.

    It reports a missing region before a long measurement, not after it.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    tool : str
    text : str
        The help of the option.
    """

    class UpdateDocs(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any) -> None:
            begin, end = markers(tool)
            texts = (page.read_text(encoding="utf-8") for page in pages() if page.is_file())
            if not any(begin in text and end in text.partition(begin)[2] for text in texts):
                parser.error(f"--update-docs: got no page in {ROOT} with a region {begin} ... {end}, must have one")
            namespace.update_docs = True

    parser.add_argument("--update-docs", action=UpdateDocs, nargs=0, default=False, help=text)


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
    """Return a page with the results between its markers.

    Parameters
    ----------
    text : str
        The page.
    results : mapping of str to Result
        Results with tables, by tool.
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
    """Return the origin of every figure, one result on each line."""
    named = dict(results) | {f"evidence: {tool}": result for tool, result in judged.items()}
    rows = []
    for name, result in named.items():
        source = "older" if result.changed else "this tree"
        rows.append((name, result.date, result.commit, f"`{result.command}`", source))
    return Table(("figures", "measured on", "at commit", "with", "source"), rows, left=5)


def replace_region(text: str, content: str, begin: str, end: str, page: str = "page") -> str:
    """Return a page with new content between two markers.

    Parameters
    ----------
    text : str
        The page.
    content : str
        Whole lines.
    begin, end : str
        The markers.
    page : str
        Name of the page, for the error.

    Raises
    ------
    ValueError
        If the page does not have the markers, in order.
    """
    head, has_begin, rest = text.partition(begin)
    _, has_end, tail = rest.partition(end)
    if not has_begin or not has_end:
        raise ValueError(f"{page}: got no region {begin} ... {end}, must have one for the table")
    return f"{head}{begin}\n{content}{end}{tail}"


def replace_row(text: str, subject: str, conclusion: str) -> str:
    """Return a page with a new conclusion in a subject's row of the table of conclusions.

    Parameters
    ----------
    text : str
        The page.
    subject : str
        First cell of the row.
    conclusion : str
        Second cell; the third, a link, stays.

    Raises
    ------
    ValueError
        If there is no such table, or no such row.
    """
    begin, end = CONCLUSIONS
    lines, found = text.partition(begin)[2].partition(end)[0].strip("\n").splitlines(), False
    for at, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0] == subject:
            lines[at], found = f"| {subject} | {conclusion} | {cells[2]} |", True
    if not found:
        raise ValueError(f"README.md: got no row {subject!r} between {begin} and {end}, must have one")
    return replace_region(text, "\n".join(lines) + "\n", begin, end, "README.md")
