"""The score, module by module, and the list of survivors: for the eye, and for docs/faults.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.faults.campaign import Fate, Judged
from lab.faults.reasons import reason_of
from lab.netlists.fault import HOLDS, KINDS
from tools.results import Table

__all__ = ["NOT_KNOWN", "figures", "summary", "survivors", "unexpected", "write_json"]

NOT_KNOWN = "nobody has looked into it yet"
_HOLDS = f" {HOLDS}"
_OPEN = "open: "


def summary(judged: Sequence[Judged]) -> str:
    """Return one line of counts."""
    counts = Counter(one.verdict for one in judged)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Fate)
    return f"{len(judged)} faults: {said}; score {_score(judged)}"


def _score(judged: Iterable[Judged]) -> str:
    counts = Counter(one.verdict for one in judged)
    told = counts[Fate.SIMULATION] + counts[Fate.PROOF]
    real = told + counts[Fate.OPEN]
    # Rounded down: 100 % means all of them.
    return f"{1000 * told // real / 10} %" if real else "-"


def figures(judged: Sequence[Judged]) -> tuple[Table, ...]:
    """Return the tables of docs/faults.md: the score by module, kind and unit, and the survivors."""
    survivors = [one for one in judged if one.verdict is Fate.OPEN]
    rows = sorted((_reason(one), f"`{one.fault.name}`", one.unit, f"`{one.fault.module}`") for one in survivors)
    listed = [(fault, unit, module, reason) for reason, fault, unit, module in rows]
    return (
        _table("module of `hdl`", "By module", [(one.fault.file, one) for one in judged]),
        _table("kind", "By kind", [(f"{one.fault.kind}: {KINDS[one.fault.kind]}", one) for one in judged]),
        _table("unit", "By unit", [(one.unit, one) for one in judged]),
        Table(("fault", "unit", "module", "why"), listed, left=4, title=f"The {len(survivors)} that survived"),
    )


def _table(heading: str, title: str, rows: Sequence[tuple[str, Judged]]) -> Table:
    lines = []
    for name in sorted({name for name, _ in rows}):
        its = [one for other, one in rows if other == name]
        counts = Counter(one.verdict for one in its)
        lines.append((name, *map(str, (len(its), *(counts[verdict] for verdict in Fate), _score(its)))))
    columns = heading, "faults", "caught by `make sim`", "refuted by a proof", "no fault", "survived", "score"
    return Table(columns, lines, title=title)


def _reason(one: Judged) -> str:
    return reason_of(one.fault, one.unit) or _of_proofs(one.remark) or f"{_OPEN}{one.remark or NOT_KNOWN}"


def _of_proofs(remark: str) -> str:
    """Return the remark on proofs that go through with the same fault, if there are any."""
    proofs = [part.removesuffix(_HOLDS) for part in remark.split("; ") if part.endswith(_HOLDS)]
    return f"the specification holds of a unit with it all the same: {', '.join(proofs)}" if proofs else ""


def survivors(judged: Sequence[Judged]) -> list[str]:
    """Return the survivors, a line for each."""
    return [_line(one) for one in judged if one.verdict is Fate.OPEN]


def unexpected(judged: Sequence[Judged], known: Sequence[str]) -> list[str]:
    """Return the survivors that are not among the `known` lines, or have no reason to survive."""
    survived = (one for one in judged if one.verdict is Fate.OPEN)
    return [_line(one) for one in survived if _line(one) not in known or _reason(one).startswith(_OPEN)]


def _line(one: Judged) -> str:
    return f"{one.fault.name} ({one.unit}, {one.fault.module})"


def write_json(judged: Sequence[Judged], path: Path) -> None:
    """Write everything into a file."""
    rows = [
        {
            "unit": one.unit,
            "module": one.fault.module,
            "fault": one.fault.name,
            "verdict": one.verdict.value,
            "by": one.by,
            "remark": one.remark,
        }
        for one in judged
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=0), encoding="utf-8")
