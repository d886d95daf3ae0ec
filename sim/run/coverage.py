"""The coverage page: bins that were met, required bins, and register bits that never changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from sim.run.outcome import Outcome

__all__ = ["write_coverage"]

_TEMPLATE = Path(__file__).with_name("coverage.html.j2")


@dataclass(frozen=True)
class _Grid:
    """Counts by row and column; rows and columns that no unit requires may be empty."""

    title: str
    note: str
    rows: list[str]
    columns: list[str]
    counts: dict[tuple[str, str], int]
    required: set[tuple[str, str]]

    def kind(self, row: str, column: str) -> str:
        """Return the style of a cell: hole, empty, or its shade."""
        count = self.counts.get((row, column), 0)
        if not count:
            return "hole" if (row, column) in self.required else "empty"
        return f"met{min(4, int(math.log10(count)))}"


#: A function from a bin to its row and column in a grid, or None if it is not in it.
_Place = Callable[[list[str]], "tuple[str, str] | None"]


def _cross(level: str) -> _Place:
    def place(parts: list[str]) -> tuple[str, str] | None:
        if len(parts) == 7 and parts[1] == level and parts[2] == "cross":
            return f"{parts[3]} × {parts[4]}", f"{parts[5]}, {parts[6]}"
        return None

    return place


def _conversion(parts: list[str]) -> tuple[str, str] | None:
    return (parts[0], f"{parts[1]}, {parts[2]}") if len(parts) == 3 and parts[0] in _CLASSES else None


def _chunk_edge(parts: list[str]) -> tuple[str, str] | None:
    if len(parts) == 4 and parts[2].startswith("chunk_"):
        return f"{parts[0]}, {parts[1]}", f"{parts[2]}: {parts[3]}"
    return None


def _by_second(first: str) -> _Place:
    def place(parts: list[str]) -> tuple[str, str] | None:
        return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == first else None

    return place


def _directed(kind: str) -> _Place:
    def place(parts: list[str]) -> tuple[str, str] | None:
        return (f"{parts[0]}, {parts[1]}", parts[3]) if len(parts) == 4 and parts[2] == kind else None

    return place


def _state(parts: list[str]) -> tuple[str, str] | None:
    return (parts[0], parts[1]) if len(parts) == 2 and parts[0] in ("reset", "chunk_port", "register_beyond") else None


_CLASSES = ("zero", "subnormal", "normal", "infinity", "nan", "signalling")
_GRIDS: tuple[tuple[str, str, _Place], ...] = (
    ("Resets, the port chunk, registers beyond the unit", "States in which each met the units.", _state),
    ("Conversions: operand × result and rounding", "All converters together.", _conversion),
    *(
        (f"Steps at level {level}: operands × result and rounding", "All formats together.", _cross(f"level_{level}"))
        for level in (0, 1, 2)
    ),
    ("Chunk edges: format and level × chunk length and products", "", _chunk_edge),
    ("Long chunks: level × length", "Each length was told from every wrong one.", _by_second("long_chunk")),
    ("Distances: what follows what on the same registers × cycles in between", "", _by_second("distance")),
    ("What only a promotion does: format and level × event", "", _directed("promotion")),
    ("Tininess: format and level × place below the smallest normal number", "", _directed("tininess")),
    ("Counters: format and level × what was counted", "In products and promotions.", _directed("counted")),
    ("Near path: format and level × exponent field of the accumulator", "", _directed("near_limit")),
)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort numbers by value."""
    parts = name.replace(":", " ").replace("_", " ").split()
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _grids(outcomes: Sequence[Outcome]) -> Iterable[_Grid]:
    bins = sum((outcome.bins for outcome in outcomes), Counter[str]())
    required = set().union(*(outcome.required for outcome in outcomes)) if outcomes else set()
    for title, note, place in _GRIDS:
        counts: Counter[tuple[str, str]] = Counter()
        for name, count in bins.items():
            if at := place(name.split("/")):
                counts[at] += count
        wanted = {at for name in required if (at := place(name.split("/")))}
        places = {*counts, *wanted}
        if places:
            rows, columns = (sorted({at[axis] for at in places}, key=_natural) for axis in (0, 1))
            yield _Grid(title, note, rows, columns, dict(counts), wanted)


def write_coverage(outcomes: Sequence[Outcome], heading: str, path: Path) -> None:
    """Write the page as one self-contained file."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    path.write_text(template.render(outcomes=outcomes, heading=heading, grids=list(_grids(outcomes))), encoding="utf-8")
