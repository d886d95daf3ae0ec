"""Results that are older than the tree: the commands that renew them, their times, and a run of the short ones."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from lab.evidence.publish import publish
from tools.paths import ROOT
from tools.results import Result
from tools.sources import hash_of, unit_of

__all__ = ["Run", "listed", "renew", "stale"]


@dataclass(frozen=True)
class Run:
    """A command that renews results.

    Parameters
    ----------
    command : str
    results : tuple of str
        Names of the older results; evidence is called ``evidence: TOOL``.
    seconds : float
        How long the last run took; 0 if that was not recorded.
    """

    command: str
    results: tuple[str, ...]
    seconds: float

    @property
    def by_hand(self) -> bool:
        """Whether the command needs something that is not in it, such as a file."""
        return not self.command.startswith(("make ", "python -m ")) or "FILE" in self.command


def stale(results: Mapping[str, Result]) -> list[Run]:
    """Return the commands that renew every result older than the tree, each command once."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        if result.changed:
            found.setdefault(_command(result), []).append(name)
    return [
        Run(command, tuple(names), max(results[name].seconds for name in names)) for command, names in found.items()
    ]


def _command(result: Result) -> str:
    """Return the command that renews a result; `lab.fpga` measures again only the units that have changed."""
    units = [unit for source in result.changed if hash_of(source) and (unit := unit_of(source))]
    if result.tool == "fpga" and units:
        return shlex.join(["python", "-m", "lab.fpga", *units, "--update-docs"])
    return result.command


def listed(runs: Sequence[Run]) -> Table:
    """Return a table of the commands, their results and their times."""
    table = Table("run", "to renew", "minutes")
    for run in runs:
        minutes = f"{run.seconds / 60:.1f}" if run.seconds else "not recorded"
        table.add_row(run.command, ", ".join(run.results), "by hand" if run.by_hand else minutes)
    return table


def renew(runs: Sequence[Run], limit: float) -> int:
    """Run the commands that took at most `limit` seconds, and publish their findings; return 1 if a run fails.

    Longer commands are listed as left out, which is no failure.
    """
    status = 0
    for run in runs:
        if run.by_hand or not 0 < run.seconds <= limit:
            print(f"left out: {run.command}", flush=True)
            continue
        print(f"==> {run.command}", flush=True)
        program, *arguments = shlex.split(run.command)
        command = [sys.executable if program == "python" else program, *arguments]
        if subprocess.run(command, cwd=ROOT).returncode:
            status = 1
        else:
            publish([name.removeprefix("evidence: ") for name in run.results if name.startswith("evidence: ")])
    return status
