"""Compute the products of training runs again with the generated Verilog, and compare."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track

from golden import LEVELS, FloatFormat
from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate
from lab.replay.judge import judge
from lab.replay.netlist import Netlist
from lab.replay.recording import Product
from lab.replay.report import draw, table, totals
from lab.replay.training import EXAMPLES, recorded_products
from tools.evidence import Means, Part, Record, note
from tools.interrupts import ended_by_interrupts, ending_on_interrupt
from tools.paths import ROOT, at_least_one, folder_to_write

__all__ = ["main"]

_ENOUGH = 10_000_000
_PICTURE = ROOT / "docs" / "figures" / "replay.svg"


def enough_products(operand: FloatFormat, least: int) -> list[Product]:
    """Return the recorded products of all examples, with enough rows of each to reach the total."""
    whole = [product for example in EXAMPLES for product in recorded_products(example, operand)]
    most, rows = max(product.a.shape[0] for product in whole), 1
    while True:
        # The same number of rows of each, so that no layer outweighs the others.
        cut = [replace(product, a=product.a[:rows]) for product in whole]
        size = sum(product.size for product in cut)
        if size >= least:
            return cut
        if rows >= most:
            raise ValueError(f"--products: got {least}, must be at most {size}, which is what the examples record")
        rows *= 2


@ending_on_interrupt("lab.replay", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.replay", description=__doc__)
    parser.add_argument(
        "--products",
        type=at_least_one,
        default=_ENOUGH,
        help="multiply-accumulates of each format at each level, at least (default %(default)s)",
    )
    parser.add_argument(
        "--counters", action="store_true", help="build the unit with counters, and compare what they count, too"
    )
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count() or 1, help="threads (default: processors)")
    parser.add_argument(
        "-o", "--output", type=folder_to_write, default=Path("build/replay"), help="folder (default %(default)s)"
    )
    parser.add_argument("--update-docs", action="store_true", help="also draw the picture that the documentation shows")
    given = parser.parse_args(arguments)

    console = Console(stderr=True)
    console.print("translating and compiling the Verilog")
    netlist = Netlist(MultiplyAccumulate(operands=HALF_FORMATS, counters=given.counters))
    products = []
    for operand in HALF_FORMATS:
        console.print(f"training in {operand}, a few steps of {' and '.join(EXAMPLES)}")
        products += enough_products(operand, given.products)
    jobs = list(itertools.product(products, LEVELS))
    with ThreadPoolExecutor(given.jobs) as pool, ended_by_interrupts(pool):
        verdicts = list(
            track(
                pool.map(lambda job: judge(job[0], job[1], netlist, counters=given.counters), jobs),
                "replaying",
                total=len(jobs),
                console=console,
            )
        )
    counts = totals(verdicts)
    text = table(counts).markdown()
    count, differ = (sum(getattr(row, name) for row in counts) for name in ("products", "differ"))
    if given.products >= _ENOUGH and not given.counters:
        records = [Record(Part.MAC, Means.REPLAYED, count, "products", differ)]
        pictures = (_PICTURE.name,) if given.update_docs else ()
        note("replay", records, ["lab.replay"], pictures=pictures)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "replay.md").write_text(text, encoding="utf-8")
    draw(verdicts, given.output / "replay.svg")
    if given.update_docs:
        draw(verdicts, _PICTURE)
    print(text, end="")
    wrong = [verdict for verdict in verdicts if verdict.differ]
    for verdict in wrong[:10]:
        console.print(f"{verdict.differ} outputs differ, first {verdict.first}", style="red")
    console.print("all products are replayed bit for bit" if not wrong else f"{len(wrong)} matrix products differ")
    miscounted = [verdict.miscounted for verdict in verdicts if verdict.miscounted]
    for line in miscounted[:10]:
        console.print(line, style="red")
    if given.counters and not miscounted:
        console.print("all counters count what golden counts")
    return 1 if wrong or miscounted else 0


if __name__ == "__main__":
    sys.exit(main())
