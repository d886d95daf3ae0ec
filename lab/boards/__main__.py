"""``python -m lab.boards``: a bitstream for an FPGA board: the self-test, or a matrix engine for the driver."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.boards.bitstream import STEPS, Bitstream, build
from lab.boards.board import BOARDS, engine_of, platform_of
from lab.boards.expectation import expect
from lab.boards.plan import Plan
from lab.boards.station import EngineStation, Station
from tools.errors import MeasurementError
from tools.interrupts import ending_on_interrupt
from tools.pages import add_update_docs, publish
from tools.paths import folder_to_write
from tools.programs import versions
from tools.results import Table, measured
from tools.sources import unit_source

__all__ = ["main"]

_SHOWN_CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "DP16KD", "MULT18X18D", "EHXPLLL")
_MEASURED_CELLS = ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "MULT18X18D")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.boards", description="Build a self-test or a matrix engine for a board."
    )
    parser.add_argument("board", metavar="BOARD", help=", ".join(BOARDS))
    parser.add_argument(
        "--design",
        choices=list(_DESIGNS),
        default="selftest",
        help="selftest: the multiply-accumulate unit, with the golden model's verdict (default); "
        "engine: a matrix engine with memory and UART bridge",
    )
    parser.add_argument("--clock", type=float, metavar="MHZ", help="made by the PLL (default: the clock of the board)")
    parser.add_argument("-o", "--output", type=folder_to_write, default=Path("build/bitstream"), metavar="FOLDER")
    add_update_docs(parser, "boards", "put area and frequency of the engine into docs/engine.md")
    return parser


class _Progress:
    """One numbered line for every step, with the time since the start."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._started = total, 0, time.monotonic()

    def __call__(self, line: str) -> None:
        self._done += 1
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        print(f"[{self._done}/{self._total}] {minutes:>2}:{seconds:02} {line}", flush=True)


def _self_test(board: str, progress: _Progress) -> tuple[Callable[..., Any], str]:
    plan = Plan()
    progress(f"the golden model's answers to {plan.results} reductions of {plan.length} products")
    expected = expect(plan).signature
    return partial(Station, expected, plan=plan), f"signature: {expected:08x}"


def _engine(board: str, progress: _Progress) -> tuple[Callable[..., Any], str]:
    parameters = engine_of(board)
    shape = f"{parameters['rows']} x {parameters['columns']} lanes, {parameters['memory'] // 1024} KiB"
    progress(f"the matrix engine: {shape}")
    return partial(EngineStation, **parameters), f"engine: {shape}; the driver is hdl.engine.Engine.serial"


#: Each makes the station of a board, and a line about it.
_DESIGNS = {"selftest": _self_test, "engine": _engine}


def _tell(made: Bitstream, said: str) -> None:
    print(f"clock: {made.wanted:.1f} MHz wanted, {made.achieved:.1f} MHz achieved")
    print(f"cells: {', '.join(_shown(made))}")
    print(said)
    print(f"bitstream: {made.path}, {made.path.stat().st_size} bytes")


def _shown(made: Bitstream) -> list[str]:
    found = {kind.removeprefix("TRELLIS_"): made.cells[kind] for kind in _SHOWN_CELLS if kind in made.cells}
    return [f"{kind} {used} of {there}" for kind, (used, there) in found.items()]


def _update_docs(board: str, made: Bitstream) -> None:
    parameters = engine_of(board)
    columns = ("board", "lanes", "memory", "COMB", "FF", "block RAM", "DSP", "MHz")
    used = [f"{made.cells[kind][0]} of {made.cells[kind][1]}" for kind in _MEASURED_CELLS]
    lanes, memory = f"{parameters['rows']} × {parameters['columns']}", f"{parameters['memory'] // 1024} KiB"
    row = (f"`{board}`", lanes, memory, *used, f"{made.achieved:.1f}")
    note = (
        f"One run of the placer with its default seed, for a clock of {made.wanted:g} MHz. COMB are cells of one LUT4, "
        f"half a carry cell, or a part of a memory in LUTs. Tools: "
        f"{', '.join(f'{name} {version}' for name, version in versions().items())}."
    )
    publish(measured("boards", [unit_source("matrix_engine")], note=note, tables=(Table(columns, [row], left=2),)))


@ending_on_interrupt("lab.boards", "the bitstream is not made")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; bad arguments end it with one line and status 2, a failed build with status 1."""
    parser = _parser()
    given = parser.parse_args(arguments)
    is_engine = given.design == "engine"
    try:
        if given.update_docs and not is_engine:
            raise ValueError(f"--update-docs: got the design {given.design}, must be engine")
        platform_of(given.board)  # better known before the work than after it
        progress = _Progress(1 + STEPS)
        station, said = _DESIGNS[given.design](given.board, progress)
        design = given.design if is_engine else ""
        made = build(given.board, station, given.output, megahertz=given.clock, design=design, progress=progress)
    except ValueError as error:
        parser.error(str(error))
    except MeasurementError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    _tell(made, said)
    if given.update_docs:
        _update_docs(given.board, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
