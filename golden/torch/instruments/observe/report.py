"""The report of an observed run, in memory: its rows, what went bad first, and the worst places."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from golden.torch.common.arguments import check_count
from golden.torch.instruments.report.advice import Advice, Case, LevelMap, case_of, merged
from golden.torch.instruments.report.reading import Reader
from golden.torch.instruments.report.rules import advice
from golden.torch.instruments.report.views import advice_text
from golden.torch.instruments.rows import FirstBadRow, ProductRow, Row, RunRow, StepRow, TrialRow

__all__ = ["ObservationReport", "WorstPlace"]

_SHOWN = 10
_WIDTH = 120


@dataclass(frozen=True)
class WorstPlace:
    """The products of one operation in one pass of one module, over all steps that were observed.

    Parameters
    ----------
    module, direction, operation : str
    level : int
    overflow, invalid : int
        Steps and promotions of the counted rows that raised the flag.
    not_finite : int
        Results that are infinite or NaN.
    swamped : float
        Share of the addends that were lost whole.
    underflow : float
        Share of the steps that raised the flag.
    relative : float
        Largest distance from the fp32 result in any step.
    first_bad : FirstBadRow or None
    """

    module: str
    direction: str
    operation: str
    level: int
    overflow: int
    invalid: int
    not_finite: int
    swamped: float
    underflow: float
    relative: float
    first_bad: FirstBadRow | None


class ObservationReport:
    """The result of `golden.torch.observe`; it grows with the run.

    Attributes
    ----------
    run : RunRow or None
        What is observed, as of the latest beginning; None before the first step is done.
    rows : list of ProductRow
        In the order in which the products first ran.
    steps : list of StepRow
        Every step.
    trial : TrialRow or None
        What the new levels that are advised did to a step; None if there are none, or before the end.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.run: RunRow | None = None
        self.rows: list[ProductRow] = []
        self.steps: list[StepRow] = []
        self.trial: TrialRow | None = None
        self._bad: dict[tuple[str, str], FirstBadRow] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take a row of the file."""
        if isinstance(row, RunRow):
            self.run = row
        elif isinstance(row, ProductRow):
            self.rows.append(row)
        elif isinstance(row, StepRow):
            self.steps.append(row)
        elif isinstance(row, TrialRow):
            self.trial = row
        else:
            self._bad.setdefault((row.module, row.direction), row)

    @property
    def first_bad(self) -> FirstBadRow | None:
        """Where the run went bad first: in the earliest step, what ran first. None if nothing did."""
        return min(self._bad.values(), key=lambda row: row.step, default=None)

    @property
    def all_first_bad(self) -> list[FirstBadRow]:
        """Where each module went bad first in each pass; by step, then in the order of execution."""
        return sorted(self._bad.values(), key=lambda row: row.step)

    def is_bad(self, module: str, direction: str) -> bool:
        """Return whether a module has gone bad in a pass."""
        return (module, direction) in self._bad

    def worst(self, n: int = _SHOWN) -> list[WorstPlace]:
        """Return the worst places: first those that went bad, in this order, then the farthest from fp32.

        Parameters
        ----------
        n : int
            How many at most, from 1.

        Raises
        ------
        TypeError, ValueError
            If `n` is not an int from 1.
        """
        check_count(n, "n")
        places: dict[tuple[str, str, str], list[ProductRow]] = {}
        for row in self.rows:
            places.setdefault((row.module, row.direction, row.operation), []).append(row)
        found = [self._place(*key, rows) for key, rows in places.items()]
        order = {id(bad): number for number, bad in enumerate(self.all_first_bad)}

        def goodness(place: WorstPlace) -> tuple[float, ...]:
            bad = len(order) if place.first_bad is None else order[id(place.first_bad)]
            return bad, -place.overflow - place.invalid - place.not_finite, -place.relative, -place.swamped

        return sorted(found, key=goodness)[:n]

    def _place(self, module: str, direction: str, operation: str, rows: list[ProductRow]) -> WorstPlace:
        events = [each for row in rows for each in (row.products, row.promotions)]
        steps = max(1, sum(each.steps for each in events))
        return WorstPlace(
            module,
            direction,
            operation,
            rows[-1].level,
            overflow=sum(each.overflow for each in events),
            invalid=sum(each.invalid for each in events),
            not_finite=sum(row.tensors.output.infinite + row.tensors.output.nan for row in rows),
            swamped=sum(each.swamped for each in events) / steps,
            underflow=sum(each.underflow for each in events) / steps,
            relative=max((row.distance.relative for row in rows if row.distance is not None), default=0.0),
            first_bad=self._bad.get((module, direction)),
        )

    def table(self, n: int = _SHOWN) -> Table:
        """Return the worst places as a table of rich."""
        observed, skipped = sum(each.observed for each in self.steps), sum(each.skipped for each in self.steps)
        table = Table(title=f"{len(self.steps)} steps, {observed} observed, {skipped} skipped; the worst places first")
        for heading in ("module", "pass", "operation"):
            table.add_column(heading, overflow="fold")
        for heading in ("level", "overflow", "not finite", "swamped", "from fp32", "bad since"):
            table.add_column(heading, justify="right")
        for each in self.worst(n):
            bad = each.first_bad
            table.add_row(
                each.module or "(model)",
                each.direction.replace("_", " "),
                each.operation,
                str(each.level),
                str(each.overflow or ""),
                str(each.not_finite or ""),
                f"{each.swamped:.2%}",
                f"{each.relative:.2%}",
                "" if bad is None else f"step {bad.step}: {bad.cause}",
                style=None if bad is None else "bold red",
            )
        return table

    def advice(self) -> list[Advice]:
        """Return the advice by the rules of the report's page, the most urgent first.

        Levels that were tried and do not help are not in it.
        """
        case = self._case()
        return [] if case is None else [each for _, each in advice(case)]

    def new_levels(self) -> LevelMap:
        """Return the new levels of all advice, by module and there by ``fwd`` and ``bwd``; the lower of two holds."""
        return merged(each.levels for each in self.advice())

    def _case(self) -> Case | None:
        if self.run is None or not self.steps:
            return None
        reader = Reader("this run")
        rows: list[Row | None] = [self.run, *self.steps, *self.rows, *self._bad.values(), self.trial]
        for row in rows:
            if row is not None:
                reader.take(row.model_dump(by_alias=True))
        return case_of(reader.finished())

    def __rich_console__(self, console: Console, options: object) -> Iterator[Table | Text]:
        yield self.table()
        case = self._case()
        if case is not None:
            yield Text(advice_text(case))

    def __str__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=_WIDTH).print(self)
        return text.getvalue()
