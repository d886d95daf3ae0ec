"""Reports of the proofs: a table on the terminal, Markdown, JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from lab.netlists.errors import ToolError
from lab.proofs.faults import pinned_faults
from lab.proofs.proof import ENGINES, Answer, Verdict, engine_version
from tools.evidence import Means, Part, Record
from tools.results import Table as Figures

__all__ = ["SUBJECT", "conclusion", "evidence", "markdown", "note", "summary", "table", "write_json"]

SUBJECT = "proofs"
#: Proven only up to a size, or a length.
_LIMITS = {"vector/bounded": "up to 5 beats", "matrix/values": "of up to 3 products"}
#: Beginnings of ids; all others are of the multiply-accumulate unit.
_UNITS = {
    "converter/": Part.CONVERTERS,
    "flushed/converter/": Part.CONVERTERS,
    "stream/": Part.CONVERTERS,
    "philox/": Part.CONVERTERS,
    "mx/": Part.CONVERTERS,
    "step/": Part.STEP,
    "flushed/step/": Part.STEP,
    "multiplier/": Part.STEP,
    "vector/": Part.VECTOR,
    "matrix/": Part.MATRIX,
    "engine/": Part.ENGINE,
}
_HEADINGS = ("unit", "mode", "specification", "engine", "verdict", "CPU seconds")


def _rows(outcomes: Sequence[Answer]) -> list[tuple[str, ...]]:
    return [
        (one.unit, one.mode, one.specification, one.engine, one.verdict.value, f"{one.seconds:.1f}") for one in outcomes
    ]


def table(outcomes: Sequence[Answer]) -> Table:
    """Return the table for the terminal; what came from the cache is marked with a star."""
    shown = Table(caption="* from the cache" if any(one.cached for one in outcomes) else None)
    for heading in _HEADINGS:
        shown.add_column(heading, justify="right" if heading == _HEADINGS[-1] else "left")
    for one, row in zip(outcomes, _rows(outcomes), strict=True):
        seconds = row[-1] + (" *" if one.cached else "")
        shown.add_row(*row[:-1], seconds, style=None if one.verdict.is_good else "bold red")
    return shown


def markdown(outcomes: Sequence[Answer]) -> str:
    """Return one row for every proof, as Markdown."""
    lines = [_engines(outcomes), "", f"| {' | '.join(_HEADINGS)} |", "|---|---|---|---|---|---:|"]
    lines += [f"| {' | '.join(row)} |" for row in _rows(outcomes)]
    lines += [f"\n{one.unit} {one.mode}, {one.engine}: {one.remark}" for one in outcomes if one.remark]
    return "\n".join(lines) + "\n"


def _engines(outcomes: Sequence[Answer]) -> str:
    return "; ".join(_versions(outcomes))


def _versions(outcomes: Sequence[Answer]) -> list[str]:
    """Return the version of each engine that was asked, or the error if it is missing."""
    used = {one.engine for one in outcomes}
    versions = []
    for engine in filter(used.__contains__, ENGINES):
        try:
            versions.append(engine_version(engine))
        except ToolError as error:
            versions.append(f"{engine}: {error}")
    return versions


def conclusion(outcomes: Sequence[Answer]) -> str:
    """Return one line for proofs that all went through, with deliberate changes that were all caught."""
    changes = sum(one.unit in ("faults", "mutants") for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    return (
        f"{len(outcomes) - changes} proofs, {changes} deliberate changes judged, in {seconds:,.0f} CPU seconds: "
        "all are proven, or caught, or proven to change nothing"
    )


def note(outcomes: Sequence[Answer]) -> str:
    """Return the conclusion, the versions of the solvers, and how many formulas an earlier run has solved."""
    earlier = sum(one.cached for one in outcomes)
    told = f" An earlier run had solved {earlier:,} of these formulas with the same engine." if earlier else ""
    return f"{conclusion(outcomes)}. Versions: {_engines(outcomes)}.{told}"


def summary(outcomes: Sequence[Answer]) -> Figures:
    """Return one row for every unit and specification."""
    rows = []
    for group in dict.fromkeys((one.unit, one.specification, one.engine) for one in outcomes):
        members = [one for one in outcomes if (one.unit, one.specification, one.engine) == group]
        counts = Counter(one.verdict.value for one in members)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        told = told.removesuffix(" proven") if set(counts) == {"proven"} else told
        seconds = [one.seconds for one in members]
        rows.append((*group, str(len(members)), told, f"{sum(seconds):.0f}", f"{max(seconds):.1f}"))
    return Figures(("what", "against", "engine", "proofs", "proven", "CPU seconds", "longest"), rows, left=3)


def _unit(outcome: Answer) -> Part:
    """Return the subject of a proof; of a change of a unit, the changed part."""
    if outcome.unit == "faults":
        return next(one.fault.part for one in pinned_faults() if one.id == outcome.id)
    about = outcome.id.removeprefix("mutant/")
    return next((unit for name, unit in _UNITS.items() if about.startswith(name)), Part.MAC)


def evidence(outcomes: Sequence[Answer]) -> list[Record]:
    """Return the counts of proofs, and of changes that they have judged, for every unit."""
    counts: Counter[tuple[Part, Means, str]] = Counter()
    wrong: Counter[tuple[Part, Means, str]] = Counter()
    for one in outcomes:
        is_change = one.unit in ("faults", "mutants")
        limit = "" if is_change else next((text for name, text in _LIMITS.items() if one.id.startswith(name)), "")
        group = _unit(one), Means.FAULTS if is_change else Means.PROVEN, limit
        if one.verdict is not Verdict.EQUIVALENT:
            counts[group] += 1
            wrong[group] += not one.verdict.is_good
    return [
        Record(unit, kind, count, "by proof" if kind is Means.FAULTS else "proofs", wrong[unit, kind, limit], limit)
        for (unit, kind, limit), count in counts.items()
    ]


def write_json(outcomes: Sequence[Answer], path: Path) -> None:
    """Write all outcomes into a file."""
    report = {"engines": _versions(outcomes), "proofs": [one.to_json() for one in outcomes]}
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
