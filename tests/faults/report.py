"""The page that tells what became of the faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tools.pages import publish
from tools.results import Table, measured

from .fault import CAUGHT, NO_BUILD, SAME_CODE, SURVIVED, Ruling
from .reasons import reason_of

_HEADINGS = ("module", "judged", "caught", "survive", "of these open", "none")


def write(parts: Mapping[str, tuple[int, list[Ruling]]], seed: int) -> int:
    """Write result and page; return 1 if a fault survives that no reason accounts for."""
    verdicts = [verdict for _, found in parts.values() for verdict in found]
    reasons = {verdict.fault: reason_of(verdict.fault) for verdict in verdicts if verdict.result == SURVIVED}
    sample = "; ".join(f"{len(found)} of the {made:,} {part} faults" for part, (made, found) in parts.items())
    files = sorted({verdict.fault.file for verdict in verdicts})
    total: Counter[str] = Counter()
    rows = []
    for file in files:
        counts = Counter(verdict.result for verdict in verdicts if verdict.fault.file == file)
        counts["open"] = sum(not reason for fault, reason in reasons.items() if fault.file == file)
        total += counts
        rows.append(_row(f"`{file}`", counts))
    survivors = [
        (
            f"{fault.file.removeprefix('golden/')}:{fault.line}",
            fault.kind,
            f"`{_short(fault.old)}` → `{_short(fault.new)}`",
            reason or "**open**",
        )
        for fault, reason in reasons.items()
    ]
    tables = (
        Table(_HEADINGS, [*rows, _row("all", total)]),
        Table(("place", "kind", "change", "reason"), survivors, left=4, title="Survivors"),
    )
    note = f"Judged in the last run: {sample}, drawn with seed {seed}."
    publish(measured("golden-faults", ["golden", "golden.torch"], note=note, tables=tables))
    print(f"docs/faults-golden.md: {total[CAUGHT]} caught, {total[SURVIVED]} survive, {total['open']} of them open")
    return int(total["open"] > 0)


def _row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    none = counts[SAME_CODE] + counts[NO_BUILD]
    judged = counts[CAUGHT] + counts[SURVIVED] + none
    return (name, *map(str, (judged, counts[CAUGHT], counts[SURVIVED], counts["open"], none)))


def _short(code: str) -> str:
    line = " ".join(code.split()).replace("|", "\\|")
    return line if len(line) <= 50 else line[:47] + "..."
