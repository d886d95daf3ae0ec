"""``python -m lab.boards``: the self-test for an FPGA board, with the signature that the golden model expects."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lab.boards.bitstream import STEPS, Bitstream, build
from lab.boards.board import BOARDS, platform_of
from lab.boards.expectation import expect
from lab.boards.plan import Plan
from tools.errors import MeasurementError
from tools.interrupts import ending_on_interrupt
from tools.paths import folder_to_write

__all__ = ["main"]

_SHOWN_CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "MULT18X18D", "EHXPLLL")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.boards", description="Build a self-test of the multiply-accumulate unit for a board."
    )
    parser.add_argument("board", metavar="BOARD", help=", ".join(BOARDS))
    parser.add_argument("--clock", type=float, metavar="MHZ", help="made by the PLL (default: the clock of the board)")
    parser.add_argument("-o", "--output", type=folder_to_write, default=Path("build/bitstream"), metavar="FOLDER")
    return parser


class _Progress:
    """One numbered line for every step, with the time since the start."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._started = total, 0, time.monotonic()

    def __call__(self, line: str) -> None:
        self._done += 1
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        print(f"[{self._done}/{self._total}] {minutes:>2}:{seconds:02} {line}", flush=True)


def _tell(made: Bitstream, expected: int) -> None:
    cells = ", ".join(
        f"{kind.removeprefix('TRELLIS_')} {made.cells[kind][0]} of {made.cells[kind][1]}"
        for kind in _SHOWN_CELLS
        if kind in made.cells
    )
    print(f"clock: {made.wanted:.1f} MHz wanted, {made.achieved:.1f} MHz achieved")
    print(f"cells: {cells}")
    print(f"signature: {expected:08x}")
    print(f"bitstream: {made.path}, {made.path.stat().st_size} bytes")


@ending_on_interrupt("lab.boards", "the bitstream is not made")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad arguments end it with one line and status 2, a failed build with status 1."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        platform_of(given.board)  # better known before the work than after it
        plan = Plan()
        progress = _Progress(1 + STEPS)
        progress(f"the golden model's answers to {plan.results} reductions of {plan.length} products")
        expected = expect(plan).signature
        made = build(given.board, expected, given.output, megahertz=given.clock, progress=progress)
    except ValueError as error:
        parser.error(str(error))
    except MeasurementError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    _tell(made, expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
