"""The page that tells what became of the faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tools.pages import publish
from tools.results import Table, measured

from .fault import CAUGHT, NO_BUILD, NOT_REACHED, SAME_CODE, SURVIVED, Fault, Ruling
from .reasons import reason_of

_HEADINGS = ("module", "judged", "caught", "survive", "of these open", "none", "score")
_SURVIVORS = (SURVIVED, NOT_REACHED)
_UNSEEN = "no test reaches it"


def write(tool: str, parts: Mapping[str, tuple[int, list[Ruling]]], seed: int, recording: float) -> int:
    """Write result and page; return 1 if a fault survives that no reason accounts for.

    Parameters
    ----------
    tool : str
        The name of the result.
    parts : mapping of str to (int, list of Ruling)
        How many faults there are of each part, and those that were judged.
    seed : int
        Of the sample.
    recording : float
        Processor seconds that it took to find out what each test reaches; 0 for faults of C++.
    """
    verdicts = [verdict for _, found in parts.values() for verdict in found]
    reasons = {verdict.fault: _reason(verdict) for verdict in verdicts if verdict.result in _SURVIVORS}
    total, rows = _counted(verdicts, reasons), []
    for part, (_, found) in parts.items():
        for file in sorted({verdict.fault.file for verdict in found}):
            rows.append(_row(f"`{file}`", _counted([each for each in found if each.fault.file == file], reasons)))
        rows.append(_row(f"all {part}", _counted(found, reasons)))
    survivors = [
        (
            f"{fault.file.removeprefix('golden/')}:{fault.line}",
            fault.kind,
            f"`{_short(fault.old)}` → `{_short(fault.new)}`",
            reason,
        )
        for fault, reason in reasons.items()
    ]
    tables = (
        Table(_HEADINGS, [*rows, _row("all", total)]),
        Table(("place", "kind", "change", "reason"), survivors, left=4, title=f"Survivors: {', '.join(parts)}"),
    )
    sources = ["golden", "golden.torch"] if recording else ["golden"]
    publish(measured(tool, sources, note=_note(parts, seed, recording), tables=tables))
    said = f"{total[CAUGHT]} caught, {total[SURVIVED]} survive, {total['open']} of them open"
    print(f"docs/faults-golden.md, {tool}: {said}")
    return int(total["open"] > 0)


def is_open(verdict: Ruling) -> bool:
    """Tell whether a fault survives without a reason."""
    return verdict.result in _SURVIVORS and not reason_of(verdict.fault)


def _note(parts: Mapping[str, tuple[int, list[Ruling]]], seed: int, recording: float) -> str:
    lines = [
        f"- {part}: {len(found):,} of {made:,} faults, in {_minutes(each.seconds for each in found)} processor minutes."
        for part, (made, found) in parts.items()
    ]
    said = f"Judged in the last run, drawn with seed {seed}:\n\n" + "\n".join(lines) + "\n\n"
    if recording:
        said += (
            f"To find out which lines each test reaches took {_minutes([recording])} processor minutes, once for this "
            "source. "
        )
    return said + "The score is the share caught of the faults that no reason accounts for."


def _minutes(seconds: Iterable[float]) -> str:
    return f"{sum(seconds) / 60:.1f}"


def _reason(verdict: Ruling) -> str:
    told = _UNSEEN if verdict.result == NOT_REACHED else f"shown to {verdict.by}" if verdict.by else ""
    return reason_of(verdict.fault) or ": ".join(["**open**", *([told] if told else [])])


def _counted(verdicts: Sequence[Ruling], reasons: Mapping[Fault, str]) -> Counter[str]:
    counts = Counter(SURVIVED if verdict.result in _SURVIVORS else verdict.result for verdict in verdicts)
    named = [reasons[verdict.fault] for verdict in verdicts if verdict.fault in reasons]
    counts["open"] = sum(reason.startswith("**open**") for reason in named)
    return counts


def _row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    none = counts[SAME_CODE] + counts[NO_BUILD]
    judged = counts[CAUGHT] + counts[SURVIVED] + none
    faults = counts[CAUGHT] + counts["open"]
    # Cut off, not rounded: 100 % is all of them.
    score = f"{1000 * counts[CAUGHT] // faults / 10} %" if faults else "-"
    return (name, *map(str, (judged, counts[CAUGHT], counts[SURVIVED], counts["open"], none)), score)


def _short(code: str) -> str:
    line = " ".join(code.split()).replace("|", "\\|")
    return line if len(line) <= 50 else line[:47] + "..."
