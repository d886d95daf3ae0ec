"""The findings of measuring tools, with their date and source: one file for each tool, from which all pages are made.

A tool that has measured calls `measured` and `keep`. The files are docs/results/TOOL.json, and pages show no other
figures. Each file names its sources; if these have changed since, every page that shows a figure says so.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.interrupts import whole_in_spite_of_interrupts
from tools.paths import ROOT
from tools.sources import hash_of, unit_of

__all__ = ["FOLDER", "Result", "Table", "earlier", "keep", "kept", "measured", "read"]

#: Where the published results are.
FOLDER = ROOT / "docs" / "results"
_STARTED = time.monotonic()
#: Units whose Verilog has changed that a page names.
_LISTED = 6


@dataclass(frozen=True)
class Table:
    """A table of figures.

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of sequence of str
        Markdown, a cell for each column.
    left : int
        The number of columns with text, from the first; the others are numbers, aligned to the right.
    title : str
        A heading; empty for none.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    title: str = ""

    def markdown(self) -> str:
        """Return it as Markdown."""
        heading = [f"## {self.title}", ""] if self.title else []
        ruler = "|" + "".join("---|" if at < self.left else "---:|" for at in range(len(self.columns)))
        lines = [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join([*heading, f"| {' | '.join(self.columns)} |", ruler, *lines]) + "\n"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A run of a measuring tool.

    Parameters
    ----------
    tool : str
        Names the file: ``fpga`` for docs/results/fpga.json.
    command : str
        The command that repeats the run.
    date : str
        The day, such as 2026-11-22, in UTC.
    commit : str
        The commit on which the working tree was based.
    machine : str
        Processor and operating system.
    sources : mapping of str to str
        The measured sources, as `tools.sources.hash_of` takes them, with their hashes at that time.
    seconds : float
        Duration of the run; 0 if unknown.
    subject, conclusion : str
        A row of the front page's table of conclusions; empty for none.
    note : str
        The conditions: seeds, devices, versions. Whole sentences of Markdown.
    tables : sequence of Table
    pictures : sequence of str
        Files of docs/figures that the same run has drawn.
    data : any of JSON's types
        Data for the tool itself.
    """

    tool: str
    command: str
    date: str
    commit: str
    machine: str
    sources: Mapping[str, str]
    seconds: float = 0
    subject: str = ""
    conclusion: str = ""
    note: str = ""
    tables: Sequence[Table] = ()
    pictures: Sequence[str] = ()
    data: Any = None

    def __post_init__(self) -> None:
        for name in ("tool", "command", "date", "commit", "machine", "sources"):
            if not getattr(self, name):
                raise ValueError(f"{name}: got {getattr(self, name)!r}, must be given: a figure has a provenance")

    @property
    def changed(self) -> list[str]:
        """The sources that have changed since; empty if the figures belong to the working tree."""
        return [source for source, known in self.sources.items() if hash_of(source) != known]

    @property
    def provenance(self) -> str:
        """One paragraph: date, commit, command and machine, and whether the source is older than the tree."""
        told = f"Measured on {self.date}, at commit {self.commit}, with `{self.command}`; {self.machine}."
        return f"{told} **{self.age}**" if self.changed else told

    @property
    def age(self) -> str:
        """The note on figures that are older than the working tree; empty if they are not."""
        units = [f"`{unit_of(source)}`" for source in self.changed if unit_of(source)]
        changed = [f"the code that `{source}` runs" for source in self.changed if not unit_of(source)]
        more = f" and {len(units) - _LISTED} more units (`make evidence ARGS=--stale` lists them)"
        named = ", ".join(units) if len(units) <= _LISTED else ", ".join(units[:_LISTED]) + more
        changed += [f"the Verilog of {named}"] if units else []
        return f"Measured on an older source: {' and '.join(changed)} has changed since." if changed else ""

    def markdown(self) -> str:
        """Return the text of a page: provenance, conditions, tables."""
        parts = [self.provenance + "\n", *([self.note + "\n"] if self.note else [])]
        return "\n".join([*parts, *(table.markdown() for table in self.tables)])


def measured(tool: str, sources: Iterable[str], command: str | None = None, **found: Any) -> Result:
    """Return a result of this moment, this machine and this working tree.

    Parameters
    ----------
    tool : str
    sources : iterable of str
        The measured sources, as `tools.sources.hash_of` takes them: usually the program.
    command : str, optional
        By default, the command line of this process.
    **found
        The rest of `Result`.

    Raises
    ------
    ValueError
        If a source is not there.
    """
    hashes = {source: hash_of(source) for source in sources}
    if absent := [source for source, found in hashes.items() if not found]:
        raise ValueError(f"sources: got {', '.join(absent)}, must be modules that run code of golden or hdl")
    return Result(
        tool=tool,
        command=command or command_line(),
        date=datetime.now(UTC).date().isoformat(),
        commit=commit(),
        machine=f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}",
        sources=hashes,
        **{"seconds": round(time.monotonic() - _STARTED)} | found,
    )


def command_line() -> str:
    """Return the command line of this process, as one types it in the repository: without a path of this machine."""
    specification = getattr(sys.modules["__main__"], "__spec__", None)
    name = specification.name.removesuffix(".__main__") if specification else ""
    return " ".join([f"python -m {name}" if name else f"python {Path(sys.argv[0]).name}", *map(_typed, sys.argv[1:])])


def _typed(argument: str) -> str:
    path = Path(argument)
    if not path.is_absolute():
        return argument
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def commit() -> str:
    """Return the commit of the working tree; ``unknown`` outside of git."""
    try:
        done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def keep(result: Result, folder: Path | None = None) -> Path:
    """Write a result into its file, and return the file's path."""
    path = (folder or FOLDER) / f"{result.tool}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_in_spite_of_interrupts():
        path.write_text(json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(tool: str, folder: Path | None = None) -> Result:
    """Return the kept result of a tool.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it lacks its provenance.
    """
    content = json.loads(((folder or FOLDER) / f"{tool}.json").read_text(encoding="utf-8"))
    return Result(**(content | {"tables": tuple(Table(**each) for each in content["tables"])}))


def earlier(tool: str, folder: Path | None = None) -> dict[str, Any]:
    """Return the data of a kept result with the current sources; empty if there is none."""
    try:
        result = read(tool, folder)
        return {} if result.changed else dict(result.data)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def kept(folder: Path | None = None) -> dict[str, Result]:
    """Return the kept results of all tools, by the tool's name."""
    return {path.stem: read(path.stem, folder) for path in sorted((folder or FOLDER).glob("*.json"))}
