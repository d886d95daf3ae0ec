"""``python -m sim.suites``: run a file of published vectors against the golden model and the netlists.

Reads what TestFloat's testfloat_gen writes (build it with SoftFloat's RISC-V specialisation, whose NaNs are ours, and
generate with -rnear_even -tininessafter) and IBM FPgen's .fptest files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from sim.suites.designs import DESIGNS
from sim.suites.errors import VectorError
from sim.suites.fpgen import read_fpgen
from sim.suites.functions import FUNCTIONS, Function, Vectors
from sim.suites.judge import Tally, judge
from sim.suites.report import print_report
from sim.suites.testfloat import read_testfloat

__all__ = ["main"]

_FPGEN = ".fptest"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if all vectors match, 1 if one does not or none could be run, 2 on bad input."""
    given = _parser().parse_args(arguments)
    designs = given.design or list(DESIGNS)
    console = Console(width=None if sys.stdout.isatty() else 120)
    tally = Tally()
    try:
        functions = {path: _function_of(path, given.operation) for path in given.files}
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
            for path, function in functions.items():
                task = progress.add_task(str(path), total=None)
                for vectors in _read(path, function, tally):
                    judge(vectors, designs, str(path), tally, shown=given.show)
                    progress.update(task, description=f"{path}: {tally.applied.total():,} vectors")
                progress.update(task, total=1, completed=1)
    except (VectorError, OSError, ValueError, RuntimeError) as error:
        print(f"sim.suites: {error}", file=sys.stderr)
        return 2
    print_report(console, tally)
    return 1 if tally.wrong.total() or not tally.applied.total() else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sim.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a .fptest file, or vectors of TestFloat; - is standard input, vectors of TestFloat",
    )
    parser.add_argument(
        "--operation",
        choices=FUNCTIONS,
        metavar="NAME",
        help="function of the TestFloat files (default: the file's name without its suffix): " + ", ".join(FUNCTIONS),
    )
    parser.add_argument(
        "--design",
        action="append",
        choices=DESIGNS,
        metavar="NAME",
        help=f"what to run, may be repeated (default: all): {', '.join(DESIGNS)}; reference takes 30 µs a vector",
    )
    parser.add_argument(
        "--show", type=int, default=20, metavar="N", help="mismatches to list, all are counted (default %(default)s)"
    )
    return parser


def _function_of(path: str, operation: str | None) -> Function | None:
    """Return what a TestFloat file tests, None for a file of FPgen, which tells it itself."""
    if Path(path).suffix == _FPGEN:
        return None
    name = operation or Path(path).stem
    if name not in FUNCTIONS:
        raise ValueError(f"{path}: got no --operation, and {name!r} is not one of {', '.join(FUNCTIONS)}")
    return FUNCTIONS[name]


def _read(path: str, function: Function | None, tally: Tally) -> Iterator[Vectors]:
    with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as stream:
        if function is None:
            yield from read_fpgen(stream, path, tally.left_out, tally.translated)
        else:
            yield from read_testfloat(stream, path, function)


if __name__ == "__main__":
    sys.exit(main())
