"""Measure how many products the units take per cycle, per second and per area."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path

from rich.progress import track

from lab.fpga.report import published, read_json
from lab.pace.measure import products_per_cycle
from lab.pace.report import SUBJECT, conclusion, every_pace, figures, measured_units, paces
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import measured as measured_now
from tools.results import read

__all__ = ["main"]


@ending_on_interrupt("lab.pace", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.pace", description=__doc__)
    parser.add_argument("--chunk", type=at_least_one, default=32, help="products in a chunk (default %(default)s)")
    parser.add_argument("--measured", type=Path, metavar="JSON", help="areas and frequencies (default: published)")
    add_update_docs(parser, "pace", "put the table into docs/results/fpga.md")
    given = parser.parse_args(arguments)

    try:
        report = read_json(given.measured) if given.measured else published()
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"--measured: got {given.measured}, which is no report of lab.fpga: {error}")
    units = {name: build() for name, build in measured_units(report).items()}
    runs = [(name, level) for name, unit in units.items() for level in unit.levels]
    measured: dict[tuple[str, int], Fraction] = {}
    for name, level in track(runs, description="simulating at full rate", disable=not sys.stderr.isatty()):
        measured[name, level] = products_per_cycle(units[name], level=level, chunk=given.chunk)
    rows = list(paces(report, measured, units))
    whole = every_pace(rows)
    table = figures(whole)
    print(table.markdown(), end="")
    if given.update_docs:
        said = conclusion(rows)
        found = measured_now("pace", ["hdl"], subject=SUBJECT, conclusion=said, tables=(table,), data=asdict(whole))
        # The frequencies come from the published table, and so does its age.
        publish(found if given.measured else replace(found, sources=read("fpga").sources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
