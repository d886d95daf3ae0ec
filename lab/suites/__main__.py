"""Run files of published vectors against the golden model and the netlists.

It reads IBM FPgen's .fptest files and vectors of TestFloat's testfloat_gen. Build the latter with SoftFloat's RISC-V
specialisation, which has our NaNs. Generate with -tininessafter and -rnear_even, or another mode and --rounding here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.progress import Progress

from golden.rounding import Rounding
from lab.suites.designs import DESIGNS
from lab.suites.fpgen import read_fpgen
from lab.suites.functions import FUNCTIONS, Function, VectorError, Vectors
from lab.suites.judge import Tally, judge, print_report
from lab.suites.testfloat import read_testfloat
from tools.evidence import note
from tools.interrupts import ending_on_interrupt

__all__ = ["main"]

#: All except the reference, which takes a second for some 20,000 vectors.
DEFAULT_DESIGNS = tuple(name for name in DESIGNS if name != "reference")
#: Modes as options of TestFloat name them.
ROUNDINGS = {
    "near_even": Rounding.NEAREST_EVEN,
    "minMag": Rounding.TOWARD_ZERO,
    "min": Rounding.DOWN,
    "max": Rounding.UP,
    "near_maxMag": Rounding.NEAREST_AWAY,
    "odd": Rounding.TO_ODD,
}
_FPGEN = ".fptest"
_STANDARD_INPUT = "-"


@ending_on_interrupt("lab.suites", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if all vectors match, 2 on bad input.

    It returns 1 if a vector does not match, if none could be run, or if a file has none.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.show < 0:
        parser.error(f"argument --show: got {given.show}, must be 0 or more")
    if given.rounding != "near_even" and any(Path(path).suffix == _FPGEN for path in given.files):
        parser.error(f"argument --rounding: got {given.rounding} for a {_FPGEN} file, must be near_even there")
    functions = {path: _function_of(path, given.operation, parser) for path in given.files}
    console = Console(width=None if sys.stdout.isatty() else 120)
    tally, empty = Tally(), []
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
            for path, function in functions.items():
                before = tally.read
                for vectors in _read(path, function, tally, progress):
                    judge(
                        vectors,
                        given.design or DEFAULT_DESIGNS,
                        path,
                        tally,
                        shown=given.show,
                        rounding=ROUNDINGS[given.rounding],
                    )
                if tally.read == before:
                    empty.append(path)
    except (VectorError, OSError, RuntimeError) as error:
        print(f"lab.suites: {error}", file=sys.stderr)
        return 2
    print_report(console, tally)
    if given.evidence and tally.applied and not empty:
        designs = "".join(f"--design {name} " for name in given.design or ())
        note("suites", tally.records(), ["lab.suites"], command=f"python -m lab.suites {designs}--evidence FILE...")
    for path in empty:
        console.print(f"FAILED: {path}: no vector in it", style="bold red", highlight=False, markup=False)
    return 1 if tally.wrong.total() or not tally.applied or empty else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.suites", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
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
        "--rounding",
        choices=ROUNDINGS,
        default="near_even",
        help="mode of the TestFloat files, as its options name them (default %(default)s)",
    )
    parser.add_argument(
        "--design",
        action="append",
        choices=DESIGNS,
        metavar="NAME",
        help=f"what to run, of {', '.join(DESIGNS)}; may be repeated (default: {', '.join(DEFAULT_DESIGNS)}); "
        "reference takes a second for some 20,000 vectors",
    )
    parser.add_argument(
        "--show", type=int, default=20, metavar="N", help="mismatches to list, all are counted (default %(default)s)"
    )
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="store the counts as this project's evidence: give all files of docs/outside-suites.md at once, then run "
        "python -m lab.evidence --update-docs",
    )
    return parser


def _function_of(path: str, operation: str | None, parser: argparse.ArgumentParser) -> Function | None:
    """Return the function that a TestFloat file tests; None for a file of FPgen, whose lines name theirs."""
    if Path(path).suffix == _FPGEN:
        return None
    name = operation or Path(path).stem
    if name not in FUNCTIONS:
        parser.error(f"argument --operation: got none for {path}, must be one of {', '.join(FUNCTIONS)}")
    return FUNCTIONS[name]


def _read(path: str, function: Function | None, tally: Tally, progress: Progress) -> Iterator[Vectors]:
    if path == _STANDARD_INPUT:
        progress.add_task("standard input", total=None)
        source: AbstractContextManager[BinaryIO] = nullcontext(sys.stdin.buffer)
    else:
        source = progress.open(path, "rb", description=Path(path).name)
    with source as stream:
        if function is None:
            yield from read_fpgen(stream, path, tally.left_out, tally.translated)
        else:
            yield from read_testfloat(stream, path, function)


if __name__ == "__main__":
    sys.exit(main())
