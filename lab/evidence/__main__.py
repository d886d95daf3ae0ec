"""``python -m lab.evidence``: what is known of every unit, in a table and a picture.

`make formal`, `make exhaustive`, `make sim`, `make sim-mutants` and `make replay` leave what they found when they ran
as a whole; this shows it, together with what earlier runs found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.evidence.picture import draw, said
from tools.evidence import BUILD, KEPT, Means, Record, collect, write
from tools.paths import ROOT
from tools.regions import conclude

__all__ = ["PICTURE", "SUBJECT", "conclusion", "main"]

#: The row of the front page, and what each kind of evidence counts there.
SUBJECT = "evidence"
_COUNTED = {
    Means.PROVEN: "proofs for every input",
    Means.EVERY_INPUT: "inputs in exhaustive runs",
    Means.SAMPLED: "vectors simulated",
    Means.REPLAYED: "products of training replayed",
    Means.SUITES: "comparisons with outside suites",
    Means.FAULTS: "deliberate faults tried",
}
PICTURE = ROOT / "docs" / "figures" / "evidence.svg"


def _table(found: dict[str, list[Record]]) -> Table:
    table = Table("unit", "how", "count", "of", "wrong", "within", "said by")
    for tool, records in found.items():
        for one in records:
            style = "bold red" if one.wrong else None
            table.add_row(one.unit, one.kind, said(one.count), one.noun, str(one.wrong), one.limit, tool, style=style)
    return table


def conclusion(records: Sequence[Record]) -> str:
    """Return one line: how much there is of every kind of evidence, and how much of it is wrong."""
    counts = {kind: sum(record.count for record in records if record.kind is kind) for kind in Means}
    wrong = sum(record.wrong for record in records)
    parts = [f"{said(count)} {_COUNTED[kind]}" for kind, count in counts.items() if count]
    return f"{', '.join(parts)}: {wrong or 'none'} wrong"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something is known to be wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.evidence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=BUILD / "evidence.svg", help="default: %(default)s")
    parser.add_argument("--update-docs", action="store_true", help="keep it for the documentation, and its picture")
    given = parser.parse_args(arguments)
    found = collect()
    if not found:
        print("lab.evidence: nothing is known yet: run make formal, make exhaustive or make sim first", file=sys.stderr)
        return 2
    Console(width=None if sys.stdout.isatty() else 150).print(_table(found))
    records = [record for tool in found.values() for record in tool]
    draw(records, given.output)
    if given.update_docs:
        write(found, KEPT)
        conclude(SUBJECT, conclusion(records))
        draw(records, PICTURE)
    return int(any(record.wrong for record in records))


if __name__ == "__main__":
    sys.exit(main())
