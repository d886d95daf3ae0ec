"""Speed on a card, beside cuBLAS in fp32 with TF32 off, in one process: python -m lab.gpu.speed.

Square products of each kind of chain; rounding beside a copy; MPTorch, if it is installed; training steps of GPT-2's
shape. Every row has its goal, and whether it is met. What was found, every repetition of it, is kept after every
contest, in docs/results/gpu-speed.json unless told otherwise. Where there is no card, one line says so.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from golden.torch.examples.python_gpt import Sizes
from lab.gpu import card
from lab.gpu.contests import CONTESTS, Entry, strictly_fp32
from tools.interrupts import ending_on_interrupt
from tools.results import Table

__all__ = ["main", "rows_of", "table"]

TOOL = "gpu-speed"


def rows_of(entries: list[Entry]) -> list[dict[str, Any]]:
    """Return the rows of a contest as they are kept."""
    return [
        {
            "name": entry.name,
            "seconds": entry.seconds,
            "median": entry.median if entry.seconds else None,
            "than": entries[0].name,
            "speed": entry.speed(entries[0]),
            "goal": entry.goal,
            "met": entry.is_met(entries[0]),
            "error": entry.error,
        }
        for entry in entries
    ]


def table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Return the table of a contest."""
    shown = []
    for row in rows:
        goal = "" if row["goal"] is None else f"{row['goal']:g}"
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        time = row["error"] or f"{row['median'] * 1e3:.3f}"
        speed = "" if row["speed"] is None else f"{row['speed']:.3f}"
        shown.append((row["name"], time, speed, goal, met))
    than = rows[0]["name"] if rows else ""
    return Table(("", "ms", f"speed, relative to {than}", "goal", "met"), shown, title=title)


@ending_on_interrupt("lab.gpu.speed", "the contests that have ended are kept")
def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 if a contestant failed, whatever the goals."""
    parser = argparse.ArgumentParser(prog="python -m lab.gpu.speed", description=__doc__)
    parser.add_argument("--contests", nargs="+", choices=CONTESTS, default=list(CONTESTS), help="which to run (all)")
    parser.add_argument("--size", type=int, default=8192, help="of the square matrices (%(default)s)")
    parser.add_argument("--small", type=int, default=2048, help="of those beside MPTorch (%(default)s)")
    parser.add_argument("--values", type=int, default=1 << 28, help="that are rounded (2^28)")
    parser.add_argument("--batch", type=int, default=Sizes.batch, help="sequences of a training step (%(default)s)")
    parser.add_argument("--repeats", type=int, default=11, help="runs of which the median is taken (%(default)s)")
    parser.add_argument("--into", type=Path, help="folder of the result (docs/results)")
    given = parser.parse_args(arguments)
    if card.skipped("bench-gpu"):
        return 0
    strictly_fp32()
    sizes = {"products": given.size, "rounding": given.values, "MPTorch": given.small,
             "training": replace(Sizes(), batch=given.batch)}  # fmt: skip
    found = card.earlier(TOOL, given.into).get("contests", {})
    for name in given.contests:
        print(f"==> {name}", flush=True)
        rows = rows_of(CONTESTS[name](sizes[name], given.repeats))
        if not rows:
            continue
        found = {**found, name: {"size": str(sizes[name]), "rows": rows}}
        tables = [table(title, each["rows"]) for title, each in found.items()]
        Console().print(table(name, rows).markdown())
        card.keep(TOOL, {"contests": found}, tables, given.into)
    failed = [row for name in given.contests for row in found.get(name, {"rows": ()})["rows"] if row["error"]]
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
