"""Write vectors for the tests: for every fault of every rule, one that shows it, with the result of an outside judge.

Standard output is tests/golden/accumulator_vectors.txt.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import golden
from golden import Accumulator, FloatFormat
from lab.suites.accumulators.cases import Cases, draw
from lab.suites.accumulators.faults import faults_of
from lab.suites.accumulators.judges import JUDGES, Judge, judge_of
from tools.interrupts import ending_on_interrupt

__all__ = ["main"]

_ATTEMPTS = 400


class _Kept(NamedTuple):
    a: list[int]
    b: list[int]
    total: int
    result: int


@ending_on_interrupt("lab.suites.accumulators.keep", "nothing is kept of this run")
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.suites.accumulators.keep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mma-sim", type=Path, required=True, help="a checkout of MMA-Sim")
    parser.add_argument("--spike", type=Path, required=True, help="a checkout of riscv-isa-sim")
    parser.add_argument("--qemu", type=Path, required=True, help="the file qemu-aarch64, of version 9.2 or later")
    given = parser.parse_args(arguments)
    print("# preset, format, judge, total, result; then the codes of both operands. All numbers are hexadecimal.")
    for name, rule in golden.accumulators.items():
        source = next(kind for kind, presets in JUDGES.items() if name in presets)
        for fmt in JUDGES[source][name]:
            judge = judge_of(source, getattr(given, source.replace("-", "_"), None), name, fmt)
            for vector in _vectors(name, rule, fmt, judge):
                print(f"{name} {fmt} {source} {vector.total:08x} {vector.result:08x}")
                for codes in (vector.a, vector.b):
                    print(" ", *(f"{code:x}" for code in codes))
    return 0


def _vectors(name: str, rule: Accumulator, fmt: FloatFormat, judge: Judge) -> list[_Kept]:
    """Return a few vectors that show every fault which this format can show."""
    rng = np.random.default_rng([1, *name.encode(), *fmt.name.encode()])
    faults, kept = dict(faults_of(rule)), []
    for _ in range(_ATTEMPTS):
        cases = draw(rng, fmt, min(judge.m, 16), judge.k, min(judge.n, 16), rule.outer)
        options: dict[str, Any] = {"operand": fmt, "initial": cases.totals}
        right = golden.matmul(cases.a, cases.b, reduction=rule, **options)
        shows = {
            fault: golden.matmul(cases.a, cases.b, reduction=wrong, **options) != right
            for fault, wrong in faults.items()
        }
        while shows and (best := sum(each.astype(int) for each in shows.values())).any():
            i, j = np.unravel_index(np.argmax(best), best.shape)
            kept.append(_asked(judge, cases, int(i), int(j)))
            both_nan = rule.outer.is_nan(right[i, j]) and rule.outer.is_nan(kept[-1].result)
            if kept[-1].result != right[i, j] and not both_nan:
                raise ValueError(f"{name}, {fmt}: the judge has {kept[-1].result:#x}, golden {right[i, j]:#x}")
            for fault in [fault for fault, where in shows.items() if where[i, j]]:
                del shows[fault], faults[fault]
    for fault in faults:
        print(f"{name}, {fmt}: no vector shows {fault}", file=sys.stderr)
    return kept


def _asked(judge: Judge, cases: Cases, i: int, j: int) -> _Kept:
    """Ask the judge about one case, placed in the corner of its matrices."""
    a, b = np.zeros((judge.m, judge.k), cases.a.dtype), np.zeros((judge.k, judge.n), cases.b.dtype)
    totals = np.zeros((judge.m, judge.n), cases.totals.dtype)
    a[0], b[:, 0], totals[0, 0] = cases.a[i], cases.b[:, j], cases.totals[i, j]
    result = int(judge.results(Cases(a, b, totals))[0, 0])
    return _Kept(cases.a[i].tolist(), cases.b[:, j].tolist(), int(cases.totals[i, j]), result)


if __name__ == "__main__":
    sys.exit(main())
