"""Records of what a tool's full run found out about a unit, kept in one file for the documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from tools.paths import ROOT

__all__ = ["BUILD", "KEPT", "Means", "Part", "Record", "collect", "note", "read", "write"]

#: Where tools leave what their last whole run found; and what the documentation says.
BUILD, KEPT = ROOT / "build" / "evidence", ROOT / "docs" / "evidence.json"


class Part(StrEnum):
    """The subjects: rows of the picture."""

    CONVERTERS = "converters"
    STEP = "fused step"
    MAC = "multiply-accumulate unit"
    VECTOR = "vector unit"
    KERNELS = "compiled kernels"


class Means(StrEnum):
    """The kinds of evidence: columns of the picture."""

    PROVEN = "proven"
    EVERY_INPUT = "every input run"
    SAMPLED = "simulated"
    REPLAYED = "training replayed"
    SUITES = "outside suites"
    FAULTS = "faults put in, caught"


@dataclass(frozen=True)
class Record:
    """The finding of one tool about one unit.

    Parameters
    ----------
    unit : Part
    kind : Means
    count : int
        How many there were.
    noun : str
        Of what.
    wrong : int
        How many of them were not as they should be.
    limit : str
        What keeps this from being all there is; empty if nothing does.
    """

    unit: Part
    kind: Means
    count: int
    noun: str
    wrong: int = 0
    limit: str = ""


def note(tool: str, records: Sequence[Record], folder: Path | None = None) -> None:
    """Leave what a whole run of a tool has found, in place of what an earlier one did; in `BUILD` unless told."""
    write({tool: records}, (folder or BUILD) / f"{tool}.json")


def write(found: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Write the records of some tools."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {tool: [asdict(record) for record in records] for tool, records in found.items()}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, list[Record]]:
    """Return the records of a file by their tools."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return {
        tool: [Record(**{**each, "unit": Part(each["unit"]), "kind": Means(each["kind"])}) for each in records]
        for tool, records in content.items()
    }


def collect(folder: Path | None = None, kept: Path = KEPT) -> dict[str, list[Record]]:
    """Return what is known: of every tool its last whole run here, or else what was kept of an earlier one."""
    found = read(kept) if kept.is_file() else {}
    for path in sorted((folder or BUILD).glob("*.json")):
        found |= read(path)
    return found
