"""The page that tells what became of the faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .fault import CAUGHT, NO_BUILD, ROOT, SAME_CODE, SURVIVED, Ruling
from .reasons import reason_of

PAGE = ROOT / "docs" / "faults-golden.md"

_HEAD = """# Faults put into golden

Written by `make golden-faults`: small changes of the source of `golden`, made by a program from its tokens (C++) and
its syntax tree (Python), and judged one by one. A C++ fault is compiled and asked some 1,200 products and roundings on
every path of the processor; a Python fault is judged by tests of its module. Whatever gives the machine code that was
there before, or does not compile, is no fault. A survivor without a reason is open: a hole in the judge, until someone
shows that it is none.

{sample}

| module | judged | caught | survive | of these open | none |
|---|---:|---:|---:|---:|---:|
"""


def write(parts: Mapping[str, tuple[int, list[Ruling]]], seed: int) -> int:
    """Write the page; return 1 if a fault survives that no reason accounts for."""
    verdicts = [verdict for _, found in parts.values() for verdict in found]
    reasons = {verdict.fault: reason_of(verdict.fault) for verdict in verdicts if verdict.result == SURVIVED}
    sample = "; ".join(f"{len(found)} of the {made:,} {part} faults" for part, (made, found) in parts.items())
    text = _HEAD.format(sample=f"Judged in the last run: {sample}, drawn with seed {seed}.")
    files = sorted({verdict.fault.file for verdict in verdicts})
    total: Counter[str] = Counter()
    for file in files:
        counts = Counter(verdict.result for verdict in verdicts if verdict.fault.file == file)
        counts["open"] = sum(not reason for fault, reason in reasons.items() if fault.file == file)
        total += counts
        text += _row(f"`{file}`", counts)
    text += _row("all", total)
    text += "\n## Survivors\n\n| place | kind | change | reason |\n|---|---|---|---|\n"
    for fault, reason in reasons.items():
        change = f"`{_short(fault.old)}` → `{_short(fault.new)}`"
        place = f"{fault.file.removeprefix('golden/')}:{fault.line}"
        text += f"| {place} | {fault.kind} | {change} | {reason or '**open**'} |\n"
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {total[CAUGHT]} caught, {total[SURVIVED]} survive, {total['open']} of them open")
    return int(total["open"] > 0)


def _row(name: str, counts: Counter[str]) -> str:
    none = counts[SAME_CODE] + counts[NO_BUILD]
    judged = counts[CAUGHT] + counts[SURVIVED] + none
    return f"| {name} | {judged} | {counts[CAUGHT]} | {counts[SURVIVED]} | {counts['open']} | {none} |\n"


def _short(code: str) -> str:
    line = " ".join(code.split()).replace("|", "\\|")
    return line if len(line) <= 50 else line[:47] + "..."
