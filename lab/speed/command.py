"""The command line of a measurement: rows are taken one after the other, shown as a table, and published on request."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.console import Console

from lab.speed.measure import machine
from tools.pages import check, publish
from tools.results import Table, measured

__all__ = ["Measurement"]

Row = TypeVar("Row")


@dataclass(frozen=True)
class Measurement(Generic[Row]):
    """What is measured, and how it is told.

    Parameters
    ----------
    module : str
        Its name behind ``lab.speed``.
    result : str
        Name of what is kept in ``docs/results``.
    measure : callable
        Takes a number of repetitions, gives the rows.
    tell : callable
        Gives a line about a row.
    table : callable
        Gives the table of all rows.
    wrong : callable
        How many numbers of a row are wrong.
    note : str
        What the figures are, in the page; the machine is added.
    repetitions : int
        Unless the command line says otherwise.
    """

    module: str
    result: str
    measure: Callable[[int], Iterable[Row]]
    tell: Callable[[Row], str]
    table: Callable[[Sequence[Row]], Table]
    wrong: Callable[[Row], int]
    note: str
    repetitions: int = 5

    def main(self, description: str | None, arguments: Sequence[str] | None) -> int:
        """Run the command line; return 0 if there are rows, and nothing in them is wrong."""
        parser = argparse.ArgumentParser(prog=f"python -m lab.speed.{self.module}", description=description)
        parser.add_argument(
            "--repetitions", type=int, default=self.repetitions, help="timings of each (default %(default)s)"
        )
        parser.add_argument("--update-docs", action="store_true", help="put the table into its page of docs")
        given = parser.parse_args(arguments)
        if given.repetitions < 1:
            parser.error(f"--repetitions: got {given.repetitions}, must be at least 1")
        if given.update_docs:
            try:
                check(self.result)
            except ValueError as error:
                parser.error(str(error))
        console, rows = Console(stderr=True), []
        for row in self.measure(given.repetitions):
            rows.append(row)
            console.print(self.tell(row), highlight=False)
        print(self.table(rows).markdown(), end="")
        if given.update_docs:
            note = f"{self.note}; {machine()}."
            publish(measured(self.result, [f"lab.speed.{self.module}"], note=note, tables=[self.table(rows)]))
        return int(not rows or any(self.wrong(row) for row in rows))
