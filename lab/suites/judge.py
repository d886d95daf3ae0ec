"""Comparison of vectors with designs, in every bit of result and flags, and the report of the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.table import Table

import golden
from golden import FP32
from golden.formats import SIXTEEN_BIT_FORMATS
from golden.rounding import Rounding
from lab.suites.designs import DESIGNS
from lab.suites.functions import FUNCTIONS, Codes, Conversion, Operation, Step, Vectors
from tools.evidence import Means, Part, Record

__all__ = ["Tally", "judge", "print_report"]


@dataclass
class Tally:
    """The counts over all vectors.

    Attributes
    ----------
    applied : int
        Vectors that were run.
    judged, wrong : Counter of (function, unit, design)
        The same vectors, counted for each unit that computes them and each design of that unit.
    left_out, translated : Counter
        See `read_fpgen`.
    examples : list of str
        The first mismatches.
    """

    applied: int = 0
    judged: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    wrong: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    translated: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def read(self) -> int:
        """Vectors that were run or left out."""
        return self.applied + self.left_out.total()

    def records(self) -> list[Record]:
        """Return the findings about the converters and about the fused step, as far as vectors reached them."""
        counts, wrong = Counter[Part](), Counter[Part]()
        for row, count in self.judged.items():
            part = Part.CONVERTERS if isinstance(FUNCTIONS[row[0]].unit, Conversion) else Part.STEP
            counts[part] += count
            wrong[part] += self.wrong[row]
        return [Record(part, Means.SUITES, count, "comparisons", wrong[part]) for part, count in counts.items()]


def judge(
    vectors: Vectors,
    designs: Sequence[str],
    name: str,
    tally: Tally,
    *,
    shown: int,
    rounding: Rounding = Rounding.NEAREST_EVEN,
) -> None:
    """Run vectors and count.

    Parameters
    ----------
    vectors : Vectors
    designs : sequence of str
        Names in `DESIGNS`.
    name : str
        Of the file.
    tally : Tally
        Takes all counts.
    shown : int
        The maximum length of the list of examples.
    rounding : Rounding
        The rounding mode of the vectors.
    """
    was_run = np.zeros(len(vectors.lines), bool)
    for unit, chosen, operands in _ways(vectors):
        for design in designs:
            made = DESIGNS[design](unit, operands, rounding)
            if made is None:
                continue
            was_run[chosen] = True
            results, flags = made
            row = (vectors.function.name, str(unit), design)
            wrong = (results != vectors.results[chosen]) | (flags != vectors.flags[chosen])
            tally.judged[row] += len(wrong)
            tally.wrong[row] += int(wrong.sum())
            for at in np.flatnonzero(wrong)[: shown - len(tally.examples)]:
                line = int(chosen[at])
                got = _hexadecimal(unit, results[at], flags[at])
                wanted = _hexadecimal(unit, vectors.results[line], vectors.flags[line])
                arguments = " ".join(f"{int(each[at]):#x}" for each in operands)
                tally.examples.append(
                    f"{name}:{vectors.lines[line]}: {vectors.function.name}, {unit}, {design}: {arguments} -> "
                    f"got {got}, must be {wanted}"
                )
    tally.applied += int(was_run.sum())
    if not was_run.all():
        tally.left_out["computed by none of the designs"] += int((~was_run).sum())


def _ways(vectors: Vectors) -> Iterator[tuple[Operation, Codes, list[Codes]]]:
    """Yield each unit that computes some of the vectors, with the indices and operands of those vectors.

    A float32 step whose factors are both values of a 16-bit format is also a step of that format into float32.
    """
    unit, arguments = vectors.function.unit, vectors.function.arguments(*vectors.given)
    yield unit, np.arange(len(vectors.lines)), list(arguments)
    if unit != Step(FP32, FP32):
        return
    a, b, acc = arguments
    for fmt in SIXTEEN_BIT_FORMATS:
        (x, lost_of_a), (y, lost_of_b) = (golden.convert(each, FP32, fmt, return_flags=True) for each in (a, b))
        chosen = np.flatnonzero((lost_of_a | lost_of_b) == 0)
        if chosen.size:
            yield Step(fmt, FP32), chosen, [x[chosen], y[chosen], acc[chosen]]


def _hexadecimal(unit: Operation, result: int, flags: int) -> str:
    return f"0x{int(result):0{unit.result.width // 4}x} flags {int(flags):#04x}"


def print_report(console: Console, tally: Tally) -> None:
    """Print tables of judged and omitted vectors, the first mismatches, and a line with the verdict."""
    judged = Table(title="judged, bit for bit, result and flags")
    for column in ("function", "computed as", "design"):
        judged.add_column(column)
    for column in ("vectors", "mismatches"):
        judged.add_column(column, justify="right")
    for row in sorted(tally.judged):
        wrong = tally.wrong[row]
        judged.add_row(*row, f"{tally.judged[row]:,}", f"{wrong:,}", style="red" if wrong else None)
    if tally.judged:
        console.print(judged)
    if tally.left_out:
        left_out = Table(title="left out")
        left_out.add_column("reason")
        left_out.add_column("vectors", justify="right")
        for reason, count in tally.left_out.most_common():
            left_out.add_row(reason, f"{count:,}")
        console.print(left_out)
    for function, count in tally.translated.items():
        console.print(f"{function}: {count:,} results tiny before rounding only, for us no underflow", highlight=False)
    for example in tally.examples:
        console.print(example, style="red", highlight=False, markup=False, soft_wrap=True)
    if tally.wrong.total() > len(tally.examples):
        console.print(f"... and {tally.wrong.total() - len(tally.examples):,} more")
    applied, left = tally.applied, tally.left_out.total()
    console.print(
        f"{tally.read:,} vectors read, {applied:,} run, {left:,} left out, "
        f"{tally.judged.total():,} comparisons, {tally.wrong.total():,} mismatches",
        highlight=False,
        style="red" if tally.wrong.total() or not applied else "green",
    )
    if not applied:
        console.print("FAILED: no vector that our operations can express", style="bold red")
