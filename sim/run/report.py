"""Reports of the regression: a line per unit, a table, Markdown, JUnit XML."""

from __future__ import annotations

from pathlib import Path

from junitparser import Failure, JUnitXml, TestCase, TestSuite
from rich.console import Console
from rich.table import Table

from sim.run.judge import read_cases
from sim.run.outcome import Outcome
from tools.results import Table as Figures

__all__ = ["SUBJECT", "conclusion", "figures", "print_outcome", "print_table", "write_junit"]

_COLUMNS = ("unit", "result", "vectors", "seconds", "vectors/s", "required bins", "all bins met")
SUBJECT = "regression"
_SHOWN_LINES = 24


def _row(outcome: Outcome) -> tuple[str, ...]:
    rate = outcome.vectors / outcome.seconds if outcome.seconds else 0.0
    required = len(outcome.required)
    met = f"{required - len(outcome.holes)}/{required}" if required else "-"
    result = "pass" if outcome.passed else "ERROR" if outcome.is_broken else "FAIL"
    return (
        outcome.unit,
        result,
        f"{outcome.vectors:,}",
        f"{outcome.seconds:.1f}",
        f"{rate:,.0f}",
        met,
        f"{len(outcome.bins):,}",
    )


def print_outcome(console: Console, outcome: Outcome, done: int, total: int) -> None:
    """Print the line of a finished unit, and its failures."""
    unit, result, vectors, seconds, rate, required, met = _row(outcome)
    style = "green" if outcome.passed else "bold red"
    console.print(
        f"[{done}/{total}] [{style}]{result:<5}[/] {unit}: {vectors} vectors in {seconds} s ({rate}/s), "
        f"coverage {required} required bins, {met} in all".replace(f"[{done}/", f"\\[{done}/"),
        highlight=False,
        soft_wrap=True,
    )
    for failure in outcome.failures:
        lines = failure.splitlines()
        if len(lines) > _SHOWN_LINES:  # the last line is the command that repeats it
            lines[_SHOWN_LINES - 2 : -1] = ["..."]
        console.print("\n".join(f"    {line}" for line in lines), markup=False, highlight=False, soft_wrap=True)


def print_table(console: Console, outcomes: list[Outcome], title: str) -> None:
    """Print all units."""
    table = Table(title=title)
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("unit", "result") else "right")
    for outcome in outcomes:
        table.add_row(*_row(outcome), style=None if outcome.passed else "red")
    console.print(table)


def figures(outcomes: list[Outcome]) -> Figures:
    """Return all units as a table for a page."""
    return Figures(_COLUMNS, [(f"`{unit}`", *rest) for unit, *rest in map(_row, outcomes)], left=2)


def conclusion(outcomes: list[Outcome]) -> str:
    """Return one line on all units."""
    vectors = sum(outcome.vectors for outcome in outcomes)
    failed = sum(not outcome.passed for outcome in outcomes)
    holes = sum(len(outcome.holes) for outcome in outcomes)
    return (
        f"{vectors:,} vectors on {len(outcomes)} units: {failed or 'none'} failed, "
        f"{holes or 'none'} of the required coverage bins missed"
    )


def write_junit(outcomes: list[Outcome], results: dict[str, Path], path: Path) -> None:
    """Write one suite per unit: the tests run by cocotb, and one for the unit as a whole."""
    xml = JUnitXml("regression")
    for outcome in outcomes:
        suite = TestSuite(outcome.unit)
        if results[outcome.unit].is_file():
            for case in read_cases(results[outcome.unit]):
                name = (case.name or "").rpartition("=")[2]
                copy = TestCase(name, classname=outcome.unit, time=case.time)
                copy.result = case.result
                suite.add_testcase(copy)
        whole = TestCase("results_and_coverage", classname=outcome.unit, time=0)
        if not outcome.passed:
            whole.result = [Failure("\n".join(outcome.failures))]
        suite.add_testcase(whole)
        xml.add_testsuite(suite)
    xml.update_statistics()
    xml.write(str(path), pretty=True)
