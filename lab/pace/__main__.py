"""Measure how many products the units take per cycle, per second and per area."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from rich.progress import track

from lab.fpga.cli import MEASURED, PAGE
from lab.fpga.report import read_json
from lab.pace.measure import products_per_cycle
from lab.pace.report import BEGIN, END, SUBJECT, conclusion, markdown, measured_units, paces
from tools.regions import check_page, conclude, write_region

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.pace", description=__doc__)
    parser.add_argument("--chunk", type=int, default=32, help="products in a chunk (default %(default)s)")
    parser.add_argument("--measured", type=Path, default=MEASURED, metavar="JSON", help="areas and frequencies")
    parser.add_argument("--update-docs", action="store_true", help="put the table into docs/results/fpga.md")
    given = parser.parse_args(arguments)
    if given.chunk < 1:
        parser.error(f"--chunk: got {given.chunk}, must be at least 1")
    if given.update_docs:
        try:
            check_page(PAGE, BEGIN, END)
        except ValueError as error:
            parser.error(str(error))

    report = read_json(given.measured)
    units = {name: build() for name, build in measured_units(report).items()}
    runs = [(name, level) for name, unit in units.items() for level in unit.levels]
    measured: dict[tuple[str, int], Fraction] = {}
    for name, level in track(runs, description="simulating at full rate", disable=not sys.stderr.isatty()):
        measured[name, level] = products_per_cycle(units[name], level=level, chunk=given.chunk)
    rows = list(paces(report, measured, units))
    table = markdown(rows)
    print(table, end="")
    if given.update_docs:
        write_region(PAGE, table, BEGIN, END)
        conclude(SUBJECT, conclusion(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
