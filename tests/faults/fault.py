"""A fault, and its fate."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CAUGHT, SURVIVED, NOT_REACHED = "caught", "survived", "not reached"
SAME_CODE, NO_BUILD = "same code", "does not build"


@dataclass(frozen=True)
class Fault:
    """One place of one file, rewritten: `start` and `end` count characters of the file."""

    file: str  # from the project's root
    start: int
    end: int
    kind: str
    new: str
    line: int
    old: str

    @property
    def name(self) -> str:
        """A short name that stays while the line and its place in the file's text of that kind stay."""
        text = f"{self.file} {self.kind} {self.start} {self.old} {self.new}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def applied(self, text: str) -> str:
        assert text[self.start : self.end] == self.old
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True)
class Ruling:
    """A judge's verdict on a fault, and the time it took."""

    fault: Fault
    result: str
    by: str
    seconds: float


def fault_at(file: str, text: str, start: int, end: int, kind: str, new: str) -> Fault:
    return Fault(file, start, end, kind, new, text.count("\n", 0, start) + 1, text[start:end])


def sampled(faults: list[Fault], share: float, seed: int, *, every_kind: bool) -> list[Fault]:
    """Return a share of the faults, the same for the same seed: at least one of every file, or file and kind."""
    if share >= 1:
        return faults
    groups: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.file, fault.kind if every_kind else ""), []).append(fault)
    chosen = []
    for (file, kind), members in sorted(groups.items()):
        count = max(1, round(share * len(members)))
        chosen += random.Random(f"{seed} {file} {kind}").sample(members, count)
    return sorted(chosen, key=lambda fault: (fault.file, fault.start, fault.new))
