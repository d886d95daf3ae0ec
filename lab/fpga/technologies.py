"""One table of units in several technologies: FPGAs of several families, and standard cells before layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lab.fpga.asic import BLIND
from lab.fpga.families import FAMILIES
from lab.fpga.liberty import StandardCells
from lab.fpga.result import Report, Result
from tools import results
from tools.results import Table
from tools.sources import unit_source

__all__ = ["NAME", "known", "note", "publishable", "table"]

#: The file of docs/results, and the region of pages.
NAME = "technologies"
ORDER = (*FAMILIES, "asic")
_HEADINGS = ("unit", "technology", "area", "FF", "DSP", "Fmax in MHz")
_MEMORIES = ("TRELLIS_DPR16X4", "DPR16X4", "RAM16SDP4")


def _device(report: Report) -> str:
    target = report.target
    return "ASIC" if isinstance(target, StandardCells) else target.device


def _area(report: Report, result: Result) -> str:
    if isinstance(report.target, StandardCells):
        area = result.square_micrometres or 0.0
        return f"{area:.0f} µm² = {area / report.target.nand2_area:.0f} NAND2"
    memories = sum(result.cells.get(kind, 0) for kind in _MEMORIES)
    return f"{result.area['COMB']} LUTs" + (f" and {memories} memories" if memories else "")


def _row(report: Report, result: Result) -> list[str]:
    low, high = result.frequencies[0], result.frequencies[-1]
    spread = f" ({low:.0f}–{high:.0f})" if len(result.frequencies) > 1 else ""
    counts = (result.area["FF"], result.area["DSP"])
    return [
        f"`{result.name}`",
        _device(report),
        _area(report, result),
        *map(str, counts),
        f"{result.megahertz:.0f}{spread}",
    ]


def table(reports: Mapping[str, Report]) -> Table:
    """Return the table: a row for each unit in each technology, the units together."""
    names = dict.fromkeys(result.name for report in reports.values() for result in report.results)
    rows = [
        _row(reports[family], result)
        for name in names for family in ORDER if family in reports
        for result in reports[family].results if result.name == name
    ]  # fmt: skip
    return Table(_HEADINGS, rows, left=3)


def note(reports: Mapping[str, Report]) -> str:
    """Return the conditions, and the limits of each flow: a line for each technology."""
    lines = []
    for family in ORDER:
        if report := reports.get(family):
            seeds = sorted({len(result.placements) for result in report.results})
            tools = ", ".join(f"{name} {version}" for name, version in report.tools.items())
            said = BLIND if family == "asic" else FAMILIES[family].blind
            plural = "seed" if seeds == [1] else "seeds"
            counted = "" if family == "asic" else f"; {' or '.join(map(str, seeds))} {plural}"
            lines.append(f"- {_device(report)}: {report.target}; {tools}{counted}. {said}\n")
    return "".join(lines).rstrip("\n")


def known(family: str) -> Report | None:
    """Return the published report for a family; None if it shows nothing."""
    name = "fpga" if family == "ecp5" else NAME
    if not (results.FOLDER / f"{name}.json").is_file():
        return None
    data = results.read(name).data
    if family != "ecp5":
        data = data.get(family)
    return None if data is None else Report.from_json(data)


def publishable(
    newer: Mapping[str, Report], sources: Mapping[str, str], order: Iterable[str], command: str
) -> results.Result:
    """Return the published table with newer reports put in, and the rows of the ECP5 from its page.

    Parameters
    ----------
    newer : mapping of str to Report
        By family, without the ECP5.
    sources : mapping of str to str
        The hash of the Verilog of each unit that was measured.
    order : iterable of str
        Names of all units.
    command : str
        The command that repeats the run.
    """
    names, whole = list(order), dict(newer)
    for family in ORDER[1:]:
        if older := known(family):
            whole[family] = older.updated(newer[family], names) if family in newer else older
    shown = {result.name for report in whole.values() for result in report.results}
    if ecp5 := known("ecp5"):
        rows = tuple(result for result in ecp5.results if result.name in shown)
        whole["ecp5"] = Report(ecp5.target, ecp5.tools, rows)
    found = results.measured(
        NAME,
        ["hdl"],
        command,
        note=note(whole),
        tables=(table(whole),),
        data={family: whole[family].to_json() for family in ORDER if family in whole},
    )
    return _dated(found, sources, whole, newer)


def _dated(
    found: results.Result, sources: Mapping[str, str], whole: Mapping[str, Report], newer: Mapping[str, Report]
) -> results.Result:
    """Date each unit by its Verilog, which must be the same in all its rows: one older row makes the unit older."""
    ecp5 = results.read("fpga").sources if "ecp5" in whole else {}
    before = results.read(NAME).sources if (results.FOLDER / f"{NAME}.json").is_file() else {}
    dated = {}
    for name in dict.fromkeys(result.name for report in whole.values() for result in report.results):
        shows = {family for family in whole if family != "ecp5" and any(r.name == name for r in whole[family].results)}
        is_whole = all(family in newer and any(r.name == name for r in newer[family].results) for family in shows)
        area = unit_source(name)
        dated[area] = sources[name] if is_whole else before.get(area, "")
        if ecp5.get(area, dated[area]) != dated[area]:
            dated[area] = ecp5[area]
    return replace(found, sources=dated)
