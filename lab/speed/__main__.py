"""Time matrix products of golden, PyTorch and other libraries, and count wrong outputs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import golden
from lab.speed import report
from lab.speed.contestants import Contestant, contestants
from lab.speed.measure import Row, count_wrong, machine, measure_speed, same_as_reference
from lab.speed.quantise import QuantiseRow, measure_quantising
from tools.interrupts import ending_on_interrupt, whole_in_spite_of_interrupts
from tools.pages import add_update_docs, publish
from tools.paths import ROOT, at_least_one, folder_to_write
from tools.results import measured

__all__ = ["main"]

PICTURE = ROOT / "docs" / "figures" / "speed.svg"


def _meant(contestant: Contestant) -> str:
    plan = contestant.reduction
    chunk = "" if plan.chunk is None else f", chunks of {plan.chunk}"
    formats = str(plan.inner) if plan.inner == plan.outer else f"{plan.inner} and {plan.outer}"
    return f"sums in {formats}{chunk}" + (f", result in {contestant.out}" if contestant.out else "")


def measure(contestant: Contestant, repetitions: int) -> Row:
    """Time and judge one contestant."""
    if contestant.name.startswith("golden"):
        same_as_reference(contestant, count=8)
    shape, rate, ratio = measure_speed(contestant, repetitions)
    wrong, judged = count_wrong(contestant)
    return Row(
        contestant.name, contestant.version, contestant.operand.name, _meant(contestant), contestant.threads, shape,
        rate, ratio, wrong, judged,
    )  # fmt: skip


@ending_on_interrupt("lab.speed", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if no output of golden is wrong, 1 if one is, 130 on Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m lab.speed", description=__doc__)
    parser.add_argument(
        "--repetitions", type=at_least_one, default=9, help="timings of each, an odd number (default %(default)s)"
    )
    parser.add_argument("--threads", type=at_least_one, default=2, help="also time golden with as many (%(default)s)")
    parser.add_argument(
        "-o", "--output", type=folder_to_write, default=Path("build/bench"), help="folder (default %(default)s)"
    )
    add_update_docs(parser, "speed", "put tables and picture into docs/results/speed.md")
    given = parser.parse_args(arguments)

    console = Console(stderr=True)
    all_of_them = list(contestants(given.threads))
    rows = []
    for number, contestant in enumerate(all_of_them, 1):
        row = measure(contestant, given.repetitions)
        rows.append(row)
        console.print(
            f"{number}/{len(all_of_them)} {row.name}, {row.operand}: {row.rate / 1e9:.4f} G products/s, "
            f"{row.ratio:.3g} × torch.mm, {row.wrong} of {row.judged} outputs wrong",
            highlight=False,
        )
    quantising = []
    for quantised in measure_quantising(given.repetitions):
        quantising.append(quantised)
        console.print(
            f"{quantised.name} {quantised.format}: {quantised.rate / 1e9:.3f} G values/s, {quantised.wrong} wrong",
            highlight=False,
        )

    with whole_in_spite_of_interrupts():
        _finish(given, rows, quantising)
    wrong = [row.name for row in rows if row.name.startswith("golden") and row.wrong]
    return 1 if wrong else 0


def _finish(given: argparse.Namespace, rows: list[Row], quantising: list[QuantiseRow]) -> None:
    """Show and write the tables and the picture."""
    given.output.mkdir(parents=True, exist_ok=True)
    note = f"{machine()}; one thread unless said."
    tables = report.products(rows), report.quantising(quantising)
    text = "\n".join([f"{note}\n", *(table.markdown() for table in tables)])
    (given.output / "bench.md").write_text(text, encoding="utf-8")
    stored = {
        "machine": machine(),
        "products": [row.to_json() for row in rows],
        "quantising": [row.to_json() for row in quantising],
    }
    (given.output / "bench.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    report.draw(rows, given.output / "speed.svg")
    print(text, end="")
    if given.update_docs:
        found = measured(
            "speed",
            ["lab.speed"],
            subject=report.SUBJECT,
            conclusion=report.conclusion(rows, str(golden.kernel_info()["path"])),
            note=note,
            tables=tables,
            pictures=(PICTURE.name,),
        )
        publish(found)
        report.draw(rows, PICTURE)


if __name__ == "__main__":
    sys.exit(main())
