"""The score, module by module, and the list of what has survived: for the eye, and for docs/faults.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.faults.campaign import SEEDS, Fate, Judged
from lab.faults.fault import KINDS
from lab.faults.reasons import reason_of

__all__ = ["NOT_KNOWN", "markdown", "new_survivors", "summary", "write_json"]

NOT_KNOWN = "nobody has looked into it yet"
_INTRODUCTION = f"""# Faults put into the netlists

Written by `make faults ARGS=--update-docs`; do not edit. `lab/faults` puts a fault into a cell of a unit's netlist and
asks, in this order: does the stimulus of `make sim` (seed {", ".join(map(str, SEEDS))}) tell it from what golden says;
is it provably no fault, because the unit gives the same in every cycle with it; do the proofs of `make formal` refute a
unit with the same fault in the same line, or prove the core right all the same? What none of this tells has survived.

What is no fault changes what is never looked at, or what is said twice. The score is the share of the others that is
told.
"""


def summary(judged: Sequence[Judged]) -> str:
    """Return one line of counts."""
    counts = Counter(one.verdict for one in judged)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Fate)
    return f"{len(judged)} faults: {said}; score {_score(judged)}"


def _score(judged: Iterable[Judged]) -> str:
    counts = Counter(one.verdict for one in judged)
    told = counts[Fate.SIMULATION] + counts[Fate.PROOF]
    real = told + counts[Fate.OPEN]
    # Cut off, not rounded: 100 % is all of them.
    return f"{1000 * told // real / 10} %" if real else "-"


def markdown(judged: Sequence[Judged], facts: str) -> str:
    """Return docs/faults.md.

    Parameters
    ----------
    judged : sequence of Judged
    facts : str
        Command, machine and time.
    """
    lines = [_INTRODUCTION, facts, "", f"**{summary(judged)}.**", "", "## By module", ""]
    lines += _table("module of `hdl`", [(one.fault.file, one) for one in judged])
    lines += ["", "## By kind", ""]
    lines += _table("kind", [(f"{one.fault.kind}: {KINDS[one.fault.kind]}", one) for one in judged])
    lines += ["", "## By unit", ""]
    lines += _table("unit", [(one.unit, one) for one in judged])
    survivors = [one for one in judged if one.verdict is Fate.OPEN]
    lines += ["", f"## The {len(survivors)} that survived", ""]
    for reason in dict.fromkeys(_reason(one) for one in survivors):
        lines += [f"{reason[0].upper()}{reason[1:]}:", ""]
        lines += [_line(one) for one in sorted(survivors, key=_line) if _reason(one) == reason]
        lines += [""]
    return "\n".join(lines)


def _table(title: str, rows: Sequence[tuple[str, Judged]]) -> list[str]:
    lines = [
        f"| {title} | faults | told by `make sim` | refuted by a proof | no fault | survived | score |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in sorted({name for name, _ in rows}):
        its = [one for other, one in rows if other == name]
        counts = Counter(one.verdict for one in its)
        cells = [len(its), *(counts[verdict] for verdict in Fate), _score(its)]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines


def _reason(one: Judged) -> str:
    return reason_of(one.fault) or NOT_KNOWN


def _line(one: Judged) -> str:
    return f"- `{one.fault.name}` ({one.unit}, `{one.fault.module}`)"


def new_survivors(judged: Sequence[Judged], kept: Path) -> list[str]:
    """Return the lines of survivors that the list does not have."""
    known = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    return [line for one in judged if one.verdict is Fate.OPEN and (line := _line(one)) not in known]


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
