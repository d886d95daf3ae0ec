"""Records of a tool's findings about a unit in a whole run, kept for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tools.paths import ROOT
from tools.results import FOLDER, Result, keep, kept, measured

__all__ = [
    "BUILD",
    "KEPT",
    "SUBJECT",
    "Means",
    "Part",
    "Record",
    "collect",
    "conclusion",
    "note",
    "published",
    "records_of",
    "said",
]  # fmt: skip

#: The findings of each tool's last whole run; and the published findings.
BUILD, KEPT = ROOT / "build" / "evidence", FOLDER / "evidence"
#: The row of the front page.
SUBJECT = "evidence"


class Part(StrEnum):
    """The subjects: rows of the picture."""

    CONVERTERS = "converters"
    STEP = "fused step"
    MAC = "multiply-accumulate unit"
    VECTOR = "vector unit"
    MATRIX = "matrix unit"
    ENGINE = "matrix engine"
    KERNELS = "compiled kernels"


class Means(StrEnum):
    """The kinds of evidence: columns of the picture."""

    PROVEN = "proven"
    EVERY_INPUT = "every input run"
    SAMPLED = "simulated"
    REPLAYED = "training replayed"
    SUITES = "outside suites"
    FAULTS = "faults put in, caught"


#: The nouns of the counts on the front page.
_COUNTED = {
    Means.PROVEN: "proofs for every input",
    Means.EVERY_INPUT: "inputs in exhaustive runs",
    Means.SAMPLED: "vectors simulated",
    Means.REPLAYED: "products of training replayed",
    Means.SUITES: "comparisons with outside suites",
    Means.FAULTS: "deliberate faults judged",
}


@dataclass(frozen=True)
class Record:
    """The finding of one tool about one unit.

    Parameters
    ----------
    unit : Part
    kind : Means
    count : int
    noun : str
        The counted things.
    wrong : int
        How many of them were wrong.
    limit : str
        A bound or gap of the evidence; empty if it covers everything.
    """

    unit: Part
    kind: Means
    count: int
    noun: str
    wrong: int = 0
    limit: str = ""


def note(
    tool: str,
    records: Sequence[Record],
    sources: Iterable[str],
    folder: Path | None = None,
    *,
    pictures: Sequence[str] = (),
    **when: Any,
) -> None:
    """Store the findings of a tool's whole run, and replace earlier findings.

    Parameters
    ----------
    tool : str
    records : sequence of Record
    sources : iterable of str
        The judged sources, as `tools.results.measured` takes them.
    folder : Path, optional
        `BUILD` if it is not given.
    pictures : sequence of str
        Files of docs/figures that the run has drawn.
    **when
        ``date``, ``commit`` and ``seconds`` of findings that an earlier run of the same source has left; by default
        this run's.
    """
    data = [asdict(record) for record in records]
    result = measured(tool, sources, data=data, pictures=pictures)
    keep(replace(result, **when), folder or BUILD)


def records_of(result: Result) -> list[Record]:
    """Return the records in a result that `note` has kept."""
    return [Record(**{**each, "unit": Part(each["unit"]), "kind": Means(each["kind"])}) for each in result.data]


def published() -> dict[str, Result]:
    """Return the published results, by tool."""
    return kept(KEPT)


def collect(folder: Path | None = None, known: Mapping[str, Result] | None = None) -> dict[str, Result]:
    """Return the result of every tool's last whole run here, or else its published one."""
    return dict(published() if known is None else known) | kept(folder or BUILD)


def said(count: int) -> str:
    """Return a count in at most five characters."""
    for size, letter in ((10**9, " G"), (10**6, " M")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:,}"


def conclusion(records: Sequence[Record]) -> str:
    """Return one line: the count of every kind of evidence, and of wrong findings."""
    counts = {kind: sum(record.count for record in records if record.kind is kind) for kind in Means}
    wrong = sum(record.wrong for record in records)
    parts = [f"{said(count)} {_COUNTED[kind]}" for kind, count in counts.items() if count]
    return f"{', '.join(parts)}: {wrong or 'no'} wrong results"
