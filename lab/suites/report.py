"""Reports of outside suites: a table of what was judged, one of what was left out, and the first mismatches."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from lab.suites.judge import Tally

__all__ = ["print_report"]


def print_report(console: Console, tally: Tally) -> None:
    """Print the tables, and a line with the verdict."""
    judged = Table(title="judged, bit for bit, result and flags")
    for column in ("function", "computed as", "design"):
        judged.add_column(column)
    for column in ("vectors", "mismatches"):
        judged.add_column(column, justify="right")
    for row in sorted(tally.judged):
        wrong = tally.wrong[row]
        judged.add_row(*row, f"{tally.judged[row]:,}", f"{wrong:,}", style="red" if wrong else None)
    if tally.judged:
        console.print(judged)
    if tally.left_out:
        left_out = Table(title="left out")
        left_out.add_column("reason")
        left_out.add_column("vectors", justify="right")
        for reason, count in tally.left_out.most_common():
            left_out.add_row(reason, f"{count:,}")
        console.print(left_out)
    for function, count in tally.translated.items():
        console.print(f"{function}: {count:,} results tiny before rounding only, for us no underflow", highlight=False)
    for example in tally.examples:
        console.print(example, style="red", highlight=False, markup=False, soft_wrap=True)
    if tally.wrong.total() > len(tally.examples):
        console.print(f"... and {tally.wrong.total() - len(tally.examples):,} more")
    applied, left = tally.applied, tally.left_out.total()
    console.print(
        f"{tally.read:,} vectors read, {applied:,} run, {left:,} left out, "
        f"{tally.judged.total():,} comparisons, {tally.wrong.total():,} mismatches",
        highlight=False,
        style="red" if tally.wrong.total() or not applied else "green",
    )
    if not applied:
        console.print("FAILED: no vector that our operations can express", style="bold red")
