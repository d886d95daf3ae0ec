"""Compare golden.accumulators with MMA-Sim, Spike, QEMU or this machine's processor, bit for bit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import golden
from golden.formats import FloatFormat
from lab.suites.accumulators.cases import Cases, draw
from lab.suites.accumulators.judges import JUDGES, Judge, judge_of
from lab.suites.accumulators.mma_sim import MmaSim
from tools.interrupts import ending_on_interrupt

__all__ = ["compare", "main"]

Runner = Callable[[Cases, FloatFormat, Any], np.ndarray]

_SHOWN = 10
#: Presets whose NaN a judge knows; for the others, any NaN is right.
_WITH_NAN = ("nvidia", "deepseek", "riscv", "arm")
#: Where an H100 differs from MMA-Sim (tests/golden/test_h100.py), the comparison follows MMA-Sim.
_MMA_SIM_ZEROS: dict[str, Any] = {"zero_exponent": -126, "zero_total_exponent": -126}
_OWN_ZEROS = ("nvidia_hopper", "nvidia_hopper_into_fp16")


def run_golden(cases: Cases, fmt: FloatFormat, preset: golden.Accumulator) -> np.ndarray:
    """Compute cases with the array functions."""
    return golden.matmul(cases.a, cases.b, operand=fmt, reduction=preset, initial=cases.totals)


def compare(
    judge: Judge, name: str, fmt: FloatFormat, count: int, seed: int, *, run: Runner = run_golden, advance: Any = None
) -> tuple[int, int, list[str]]:
    """Return how many cases were compared, how many differ, and the first differences in words."""
    rng = np.random.default_rng([seed, *name.encode(), *fmt.name.encode()])
    preset, compared, wrong = golden.accumulators[name], 0, 0
    if isinstance(judge, MmaSim) and name in _OWN_ZEROS:
        preset = replace(preset, **_MMA_SIM_ZEROS)
    shown, digits = list[str](), 2 + preset.outer.width // 4
    while compared < count:
        cases = draw(rng, fmt, judge.m, judge.k, judge.n, preset.outer)
        got, wanted = run(cases, fmt, preset), judge.results(cases)
        differ = got != wanted
        if not name.startswith(_WITH_NAN):
            differ &= ~(preset.outer.is_nan(got) & preset.outer.is_nan(wanted))
        compared += got.size
        wrong += int(differ.sum())
        for i, j in np.argwhere(differ)[: _SHOWN - len(shown)]:
            a, b = (" ".join(f"{code:x}" for code in codes) for codes in (cases.a[i], cases.b[:, j]))
            shown.append(
                f"{name}, {fmt}: {a} times {b} plus {cases.totals[i, j]:#0{digits}x}: "
                f"got {got[i, j]:#0{digits}x}, must be {wanted[i, j]:#0{digits}x}"
            )
        if advance:
            advance(got.size)
    return compared, wrong, shown


@ending_on_interrupt("lab.suites.accumulators", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if all cases match, 1 if one does not, 2 on bad input."""
    parser = argparse.ArgumentParser(prog="python -m lab.suites.accumulators", description=__doc__)
    parser.add_argument("judge", choices=JUDGES, help="the outside judge")
    parser.add_argument(
        "checkout", nargs="?", type=Path, help="its checkout, or the file qemu-aarch64; the processor needs none"
    )
    parser.add_argument("--preset", action="append", help="name in golden.accumulators; may be repeated (default: all)")
    parser.add_argument("--cases", type=int, default=1_000_000, metavar="N", help="of a preset (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the operands (default %(default)s)")
    given = parser.parse_args(arguments)
    formats = JUDGES[given.judge]
    for name in given.preset or ():
        if name not in formats:
            parser.error(f"argument --preset: got {name}, must be one of {', '.join(formats)} for {given.judge}")
    if given.checkout is None and given.judge != "processor":
        parser.error(f"argument checkout: got none, must be the path of {given.judge}")
    if given.cases < 1:
        parser.error(f"argument --cases: got {given.cases}, must be 1 or more")
    table = Table(title=f"golden.accumulators against {given.judge}, bit for bit")
    for column in ("preset", "operands"):
        table.add_column(column)
    for column in ("cases", "differences"):
        table.add_column(column, justify="right")
    failed, examples = False, []
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        for name in given.preset or formats:
            for fmt in formats[name]:
                count = -(-given.cases // len(formats[name]))
                task = progress.add_task(f"{name}, {fmt}", total=count)
                step = lambda size, task=task: progress.advance(task, size)  # noqa: E731
                try:
                    judge = judge_of(given.judge, given.checkout, name, fmt)
                    compared, wrong, shown = compare(judge, name, fmt, count, given.seed, advance=step)
                except (OSError, RuntimeError, ImportError) as error:
                    print(f"lab.suites.accumulators: {error}", file=sys.stderr)
                    return 2
                table.add_row(name, str(fmt), f"{compared:,}", f"{wrong:,}", style="red" if wrong else None)
                examples += shown
                failed |= bool(wrong)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for example in examples:
        console.print(example, style="red", highlight=False, markup=False, soft_wrap=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
