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

__all__ = ["NAMES", "main"]

#: The modules of this package that measure and draw.
NAMES = ("swamping", "product_error", "gradient_exponents", "loss_scale_window")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.figures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)} (default: all)")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/figures"), help="folder (default %(default)s)")
    given = parser.parse_args(arguments)
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
        (given.output / f"{name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        console.print(
            f"{number}/{len(names)} {given.output / name}.svg and .json, {time.perf_counter() - started:.0f} s",
            highlight=False,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
