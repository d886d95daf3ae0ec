"""Run the experiments and draw the pictures of the documentation."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tools.interrupts import ending_on_interrupt
from tools.pages import publish
from tools.paths import ROOT, folder_to_write
from tools.results import measured

__all__ = ["DOCS", "NAMES", "main"]

#: The pictures of the documentation.
DOCS = ROOT / "docs" / "figures"

#: The modules of this package that measure and draw.
NAMES = ("swamping", "product_error", "gradient_exponents", "loss_scale_window", "weight_updates")


@ending_on_interrupt("lab.figures", "the pictures that it has drawn are kept")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument(
        "-o", "--output", type=folder_to_write, default=Path("build/figures"), help="folder (default %(default)s)"
    )
    parser.add_argument("--update-docs", action="store_true", help="draw all of them into docs/figures")
    given = parser.parse_args(arguments)
    if given.update_docs and given.names:
        parser.error("--update-docs: must be given without NAME: the pictures of the documentation come from one run")
    for name in given.names:
        if name not in NAMES:
            parser.error(f"NAME: got {name!r}, must be one of {', '.join(NAMES)}")

    console = Console(stderr=True)
    given.output.mkdir(parents=True, exist_ok=True)
    names = given.names or NAMES
    for number, name in enumerate(names, 1):
        started = time.perf_counter()
        figure = importlib.import_module(f"lab.figures.{name}")
        with console.status(f"[{number}/{len(names)}] {name} ..."):
            found = figure.measure()
            figure.draw(found, given.output / f"{name}.svg")
            if given.update_docs:
                figure.draw(found, DOCS / f"{name}.svg")
        (given.output / f"{name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        console.print(
            f"{number}/{len(names)} {given.output / name}.svg and .json, {time.perf_counter() - started:.0f} s",
            highlight=False,
        )
    if given.update_docs:
        sources = [f"lab.figures.{name}" for name in NAMES]
        publish(measured("figures", sources, pictures=tuple(f"{name}.svg" for name in NAMES)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
