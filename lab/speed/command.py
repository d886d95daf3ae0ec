"""The frame of a measurement: it takes rows one after the other, shows them as a table, and publishes on request."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from rich.console import Console

from golden import LEVELS, FloatFormat, kernels
from golden.formats import HALF_FORMATS
from lab.speed.measure import machine
from tools.pages import add_update_docs, publish
from tools.paths import at_least_one
from tools.results import Table, measured

__all__ = ["Measurement", "Row", "differing", "on_vector_paths", "thread_seconds", "timed"]


@dataclass(frozen=True)
class Row:
    """A line of figures.

    Parameters
    ----------
    names : tuple of str
        The cells that name the measured thing.
    figures : tuple of str
    wrong, judged : int
        How many numbers are wrong, and how many were judged.
    """

    names: tuple[str, ...]
    figures: tuple[str, ...]
    wrong: int
    judged: int

    @property
    def cells(self) -> tuple[str, ...]:
        """All cells of the line."""
        return *self.names, *self.figures, f"{self.wrong:,} of {self.judged:,}" if self.wrong else "none"


@dataclass(frozen=True)
class Measurement:
    """A command line that measures.

    Parameters
    ----------
    module : str
        Its name behind ``lab.speed``.
    result : str
        Its name in ``docs/results``.
    columns : sequence of str
        Headings of the names and figures of a row, and of its wrong numbers.
    measure : callable
        Takes a number of repetitions, returns the rows.
    note : str
        The conditions, for the page; the machine is added.
    repetitions : int
        The default of the command line.
    left : int
        The number of columns with text.
    """

    module: str
    result: str
    columns: Sequence[str]
    measure: Callable[[int], Iterable[Row]]
    note: str
    repetitions: int = 5
    left: int = 2

    def main(self, description: str | None, arguments: Sequence[str] | None) -> int:
        """Run the command line; return 0 if there are rows, and nothing in them is wrong."""
        parser = argparse.ArgumentParser(prog=f"python -m lab.speed.{self.module}", description=description)
        parser.add_argument(
            "--repetitions", type=at_least_one, default=self.repetitions, help="timings of each (default %(default)s)"
        )
        add_update_docs(parser, self.result, "put the table into its page of docs")
        given = parser.parse_args(arguments)
        console, rows = Console(stderr=True), []
        for row in self.measure(given.repetitions):
            rows.append(row)
            told = ", ".join(f"{name} {cell}" for name, cell in zip(self.columns[1:], row.cells[1:], strict=True))
            console.print(f"{row.cells[0]}: {told}", highlight=False)
        table = Table(self.columns, [row.cells for row in rows], left=self.left)
        print(table.markdown(), end="")
        if given.update_docs:
            note = f"{self.note}; {machine()}."
            publish(measured(self.result, [f"lab.speed.{self.module}"], note=note, tables=[table]))
        return int(not rows or any(row.wrong for row in rows))


def thread_seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of this thread for a call, which other work of the machine does not lengthen."""
    started = time.thread_time()
    run()
    return time.thread_time() - started


def timed(plain: Callable[[], Any], others: Iterable[Callable[[], Any]], repetitions: int) -> tuple[float, list[float]]:
    """Time a call in turns with others.

    Returns
    -------
    seconds : float
        Of the plain call, the median.
    ratios : list of float
        The time of each other call divided by the time of the plain call right before, medians.
    """
    plain()
    times, ratios = [], []
    for other in others:
        other()
        found = []
        for _ in range(repetitions):
            seconds = statistics.median(thread_seconds(plain) for _ in range(3))
            times.append(seconds)
            found.append(statistics.median(thread_seconds(other) for _ in range(3)) / seconds)
        ratios.append(statistics.median(found))
    return statistics.median(times), ratios


def differing(run: Callable[[], Iterable[NDArray[Any]]]) -> tuple[int, int]:
    """Return how many codes in the arrays of a call differ from NumPy's, and how many there are."""
    got = list(run())
    with kernels.use("numpy"):
        pairs = list(zip(got, run(), strict=True))
    return sum(int((one != other).sum()) for one, other in pairs), sum(each.size for each in got)


def on_vector_paths(names: Collection[str], row: Callable[[str, FloatFormat, int], Row]) -> Iterator[Row]:
    """Yield a row for each of these paths that the machine has, 16-bit format and level, on one thread."""
    for path in kernels.paths():
        if path in names:
            with kernels.use(path, threads=1):
                for fmt in HALF_FORMATS:
                    for level in LEVELS:
                        yield row(path, fmt, level)
