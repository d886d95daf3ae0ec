"""Reports of a measurement: a table on the terminal, Markdown, JSON, and one line for the front page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from lab.fpga.picture import drawn
from lab.fpga.placement import Target
from lab.fpga.result import Report, Result
from tools.results import Table as Figures
from tools.results import read

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SUBJECT", "conclusion", "figures", "markdown", "note", "published", "read_json", "table", "write_json"]

#: The row of the front page, and its units.
SUBJECT = "area and frequency"
_CONCLUDED = {"mac_cbfloat16": "multiply-accumulate unit", "cbfloat16_to_float32": "cbfloat16 to float32"}
_HEADINGS = (
    "unit", "parameters", "COMB", "FF", "DSP", "DPR16X4", "Fmax in MHz", "latency", "accumulate latency"
)  # fmt: skip
_LEFT = ("unit", "parameters")


def _row(result: Result) -> list[str]:
    area = result.area
    low, high = result.frequencies[0], result.frequencies[-1]
    frequency = f"{result.megahertz:.0f}" + (f" ({low:.0f}–{high:.0f})" if len(result.frequencies) > 1 else "")
    cells = [str(area.get(kind, 0)) for kind in ("COMB", "FF", "DSP", "TRELLIS_DPR16X4")]
    latencies = ["" if cycles is None else str(cycles) for cycles in (result.latency, result.accumulate_latency)]
    return [result.name, result.parameters, *cells, frequency, *latencies]


def table(report: Report) -> Table:
    """Return the table for the terminal; a star marks results from the cache."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table(title=str(report.target), caption="* from the cache" if _has_cached(report) else None)
    for heading in _HEADINGS:
        shown.add_column(heading, justify="left" if heading in _LEFT else "right")
    for result in report.results:
        name, *cells = map(escape, _row(result))
        shown.add_row(f"{name} *" if result.cached else name, *cells)
    return shown


def _has_cached(report: Report) -> bool:
    return any(result.cached for result in report.results)


def note(report: Report) -> str:
    """Return the conditions of a measurement."""
    seeds = sorted({len(result.placements) for result in report.results})
    counted = " or ".join(map(str, seeds))
    tools = ", ".join(f"{name} {version}" for name, version in report.tools.items())
    assert isinstance(report.target, Target)
    return (
        f"{report.target}; target {report.target.megahertz} MHz; {tools}; Fmax is the median of {counted} "
        f"{'seed' if seeds == [1] else 'seeds'}, with the lowest and the highest."
    )


def figures(report: Report) -> Figures:
    """Return the table for the page, without the units that its picture shows."""
    shown = [result for result in report.results if result.name not in drawn(report)]
    rows = [(f"`{name}`", *cells) for name, *cells in map(_row, shown)]
    return Figures(_HEADINGS, rows, left=len(_LEFT))


def markdown(report: Report) -> str:
    """Return the conditions and the table as Markdown."""
    return f"{note(report)}\n\n{figures(report).markdown()}"


def conclusion(report: Report) -> str | None:
    """Return one line on a released unit of each kind, or None if the report lacks one of them."""
    found = {result.name: result for result in report.results}
    if not set(_CONCLUDED) <= set(found):
        return None
    units = [
        f"{what}: {found[name].area['COMB']} LUTs at {found[name].megahertz:.0f} MHz"
        for name, what in _CONCLUDED.items()
    ]
    return f"{'; '.join(units)} ({report.target})"


def published() -> Report:
    """Return the report that the documentation shows; it raises as `tools.results.read` does."""
    return Report.from_json(read("fpga").data)


def write_json(report: Report, path: Path) -> None:
    """Write a report into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Report:
    """Return the report in a file."""
    return Report.from_json(json.loads(path.read_text(encoding="utf-8")))
