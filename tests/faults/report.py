"""The page about the rulings on faults."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tools.pages import publish
from tools.results import Table, measured

from .fault import CAUGHT, NO_BUILD, NOT_REACHED, SAME_CODE, SURVIVED, Fault, Ruling
from .reasons import reason_of

_HEADINGS = ("folder", "files", "judged", "caught", "survive", "of these open", "none", "score")
_SURVIVORS = (SURVIVED, NOT_REACHED)
_UNSEEN = "no test reaches it"
#: How the reason of a fault begins that has none.
_OPEN = "**open**"
#: Counted beside the results.
_IS_OPEN, _IS_NONE = "open", "none"
_COUNTED_AS = {NOT_REACHED: SURVIVED, SAME_CODE: _IS_NONE, NO_BUILD: _IS_NONE}


def write(
    tool: str, parts: Mapping[str, tuple[int, list[Ruling]]], seed: int, recording: float, left_out: int = 0
) -> int:
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
    left_out : int
        How many faults are in files that this machine does not compile into any path that it runs.
    """
    verdicts = [verdict for _, found in parts.values() for verdict in found]
    reasons = {verdict.fault: _reason(verdict) for verdict in verdicts if verdict.result in _SURVIVORS}
    files = {
        part: {
            file: dict(_counted([each for each in found if each.fault.file == file], reasons))  # as JSON takes it
            for file in sorted({verdict.fault.file for verdict in found})
        }
        for part, (_, found) in parts.items()
    }
    survivors = [
        (f"{fault.file}:{fault.line}", fault.kind, f"`{_short(fault.old)}` → `{_short(fault.new)}`", reason)
        for fault, reason in reasons.items()
    ]
    sources = ["golden.*"] if recording else ["golden.kernels.*"]
    # The command of a whole run, not of one that judges survivors once more.
    command = " ".join(["python -m tests.faults", *(f"--part {part}" for part in parts)])
    data = {"files": files, "survivors": survivors}
    note, shown = _note(parts, seed, recording, left_out), tables(files, survivors)
    publish(measured(tool, sources, command, note=note, tables=shown, data=data))
    total = _counted(verdicts, reasons)
    said = f"{total[CAUGHT]} caught, {total[SURVIVED]} survive, {total[_IS_OPEN]} of them open"
    print(f"docs/faults-golden.md, {tool}: {said}")
    return int(total[_IS_OPEN] > 0)


def tables(files: Mapping[str, Mapping[str, Mapping[str, int]]], survivors: Sequence[Sequence[str]]) -> list[Table]:
    """Return the tables of the page.

    Parameters
    ----------
    files : mapping of str to mapping of str to mapping of str to int
        How many faults of each file had each result, by part.
    survivors : sequence of (str, str, str, str)
        Place, kind, change and reason of each fault that survives.

    Returns
    -------
    list of Table
        A row for each folder; every survivor that is open; how many faults survive for each reason, and where.
    """
    rows = []
    for part, counts in files.items():
        for folder in sorted({posixpath.dirname(file) for file in counts}):
            rows.append(_row(f"`{folder}`", [counts[file] for file in counts if posixpath.dirname(file) == folder]))
        if len(files) > 1:
            rows.append(_row(f"all {part}", list(counts.values())))
    rows.append(_row("all", [counts for part in files.values() for counts in part.values()]))
    found, names = [Table(_HEADINGS, rows)], ", ".join(files)
    if still := [each for each in survivors if each[-1].startswith(_OPEN)]:
        found.append(Table(("place", "kind", "change", "reason"), still, left=4, title=f"Open: {names}"))
    places: dict[str, list[str]] = {}
    for place, _, _, reason in survivors:
        if not reason.startswith(_OPEN):
            places.setdefault(reason, []).append(place)
    if places:
        inside = posixpath.commonpath([posixpath.dirname(each) for its in places.values() for each in its])
        by_reason = [
            (reason, _joined(its, inside), str(len(its)))
            for reason, its in sorted(places.items(), key=lambda item: -len(item[1]))
        ]
        columns = "reason", f"files of `{inside}`, and lines", "faults"
        found.append(Table(columns, by_reason, left=2, title=f"Survivors: {names}"))
    return found


def _joined(places: Sequence[str], inside: str) -> str:
    """Return the lines of each file once, the files without the folder that all are in."""
    lines: dict[str, list[int]] = {}
    for place in places:
        file, _, line = place.rpartition(":")
        lines.setdefault(posixpath.relpath(file, inside), []).append(int(line))
    return "; ".join(f"{file} {', '.join(map(str, sorted(set(its))))}" for file, its in sorted(lines.items()))


def is_open(verdict: Ruling) -> bool:
    """Return whether a fault survives without a reason."""
    return verdict.result in _SURVIVORS and not reason_of(verdict.fault)


def _note(parts: Mapping[str, tuple[int, list[Ruling]]], seed: int, recording: float, left_out: int) -> str:
    lines = [
        f"- {part}: {len(found):,} of {made:,} faults, in {_minutes(each.seconds for each in found)} processor minutes."
        for part, (made, found) in parts.items()
    ]
    said = f"Judged in the last run, drawn with seed {seed}:\n\n" + "\n".join(lines) + "\n\n"
    if left_out:
        said += (
            f"{left_out:,} more faults are not part of the sample: they are in files of paths that the judging machine "
            "lacks, so no question reaches them there. "
        )
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
    return reason_of(verdict.fault) or ": ".join([_OPEN, *([told] if told else [])])


def _counted(verdicts: Sequence[Ruling], reasons: Mapping[Fault, str]) -> Counter[str]:
    counts = Counter(_COUNTED_AS.get(verdict.result, verdict.result) for verdict in verdicts)
    named = [reasons[verdict.fault] for verdict in verdicts if verdict.fault in reasons]
    counts[_IS_OPEN] = sum(reason.startswith(_OPEN) for reason in named)
    return counts


def _row(name: str, files: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    caught, survive, still, none = (
        sum(counts.get(kind, 0) for counts in files) for kind in (CAUGHT, SURVIVED, _IS_OPEN, _IS_NONE)
    )
    faults = caught + still
    # Cut off, not rounded: 100 % is all of them.
    score = f"{1000 * caught // faults / 10} %" if faults else "-"
    return (name, *map(str, (len(files), caught + survive + none, caught, survive, still, none)), score)


def _short(code: str) -> str:
    line = " ".join(code.split()).replace("|", "\\|")
    return line if len(line) <= 50 else line[:47] + "..."
