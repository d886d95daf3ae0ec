"""``python -m lab.evidence``: the evidence for every unit, in a table and a picture.

Whole runs of `make formal`, `make exhaustive`, `make sim`, `make sim-mutants` and `make replay` leave their findings.
This command shows them beside earlier findings, and says whether the source has changed since.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.evidence.publish import draw, publish
from lab.evidence.stale import listed, renew, stale
from tools.evidence import BUILD, Record, collect, published, records_of, said
from tools.interrupts import ending_on_interrupt
from tools.paths import ROOT, file_to_write
from tools.results import Result, kept

__all__ = ["main"]


def _table(found: dict[str, list[Record]], results: dict[str, Result]) -> Table:
    table = Table("unit", "how", "count", "of", "wrong", "within", "said by", "on", "source")
    for tool, records in found.items():
        age = "older" if results[tool].changed else ""
        for one in records:
            style = "bold red" if one.wrong else None
            cells = one.unit, one.kind, said(one.count), one.noun, str(one.wrong), one.limit, tool
            table.add_row(*cells, results[tool].date, age, style=style)
    return table


@ending_on_interrupt("lab.evidence", "each page is whole, run it again")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a finding is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.evidence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "-o", "--output", type=file_to_write, default=BUILD / "evidence.svg", help="default: %(default)s"
    )
    parser.add_argument("--update-docs", action="store_true", help="keep it for the documentation, and its picture")
    parser.add_argument("--stale", action="store_true", help="only list what is older, and what renews it")
    parser.add_argument(
        "--refresh-stale",
        type=float,
        metavar="MINUTES",
        nargs="?",
        const=10,
        help="only run what renews it, where that takes no longer than this (%(const)s), and write it into the pages",
    )
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="only write the kept figures into the pages and the picture, with their age, and stop",
    )
    given = parser.parse_args(arguments)
    if given.refresh:
        print("\n".join(str(page.relative_to(ROOT)) for page in publish(())) or "all pages are as they should be")
        return 0
    if given.stale or given.refresh_stale is not None:
        runs = stale({**kept(), **{f"evidence: {tool}": result for tool, result in published().items()}})
        if given.refresh_stale is not None:
            return renew(runs, 60 * given.refresh_stale)
        Console(width=None if sys.stdout.isatty() else 150).print(listed(runs))
        return 0
    results = collect()
    if not results:
        print("lab.evidence: nothing is known yet: run make formal, make exhaustive or make sim first", file=sys.stderr)
        return 2
    found = {tool: records_of(result) for tool, result in results.items()}
    Console(width=None if sys.stdout.isatty() else 150).print(_table(found, results))
    records = [record for tool in found.values() for record in tool]
    draw(records, given.output)
    if given.update_docs:
        publish()
    return int(any(record.wrong for record in records))


if __name__ == "__main__":
    sys.exit(main())
