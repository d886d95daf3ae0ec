"""The pinned faults of `lab.mutants.table`, which the proofs must refute."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.mutants.table import Fault, hdl_with, rtl_faults
from lab.netlists.errors import ToolError
from lab.proofs.proof import BITWUZLA, Answer, Proof, Verdict, prove
from tools.paths import ROOT

__all__ = ["PinnedFault", "pinned_faults"]


@dataclass(frozen=True)
class PinnedFault:
    """A pinned fault, as an entry of the catalogue of proofs.

    Parameters
    ----------
    fault : Fault
        One of its proofs must refute it.
    """

    fault: Fault
    timeout: int = 600

    @property
    def id(self) -> str:
        """As of a proof."""
        return f"fault/{self.fault.name}"

    @property
    def title(self) -> str:
        """As of a proof."""
        return f"fault {self.fault.name}"

    @property
    def fast(self) -> bool:
        """Whether it belongs to the fast tier."""
        return self.fault.fast

    def run(self, folder: Path) -> Answer:
        """Put the fault into a copy of `hdl` and see whether a proof refutes it."""
        fault, seconds = self.fault, 0.0
        outcome = Answer(self.id, "faults", fault.name, "as its proof", BITWUZLA, Verdict.SURVIVED, 0.0)
        with TemporaryDirectory() as work:
            for each in fault.proofs:
                text = _Text(fault, each, Path(work))
                proof = Proof(self.id, "faults", fault.name, each, BITWUZLA, text, self.timeout)
                outcome = replace(prove(proof, folder), id=self.id)
                seconds += outcome.seconds
                if outcome.verdict is Verdict.REFUTED and not fault.is_none:
                    return outcome.but(Verdict.CAUGHT, f"{each}: {outcome.remark}", seconds)
                if outcome.verdict is not Verdict.PROVEN:
                    return outcome
        verdict = Verdict.EQUIVALENT if fault.is_none else Verdict.SURVIVED
        return outcome.but(verdict, f"proven all the same: {', '.join(fault.proofs)}", seconds)


@dataclass(frozen=True)
class _Text:
    """Gives the formula of a proof about a faulty `hdl`."""

    fault: Fault
    proof: str
    work: Path

    def __call__(self, netlists: Path) -> str:
        try:
            hdl_with(self.fault, self.work)
        except ValueError as error:
            raise ToolError(str(error)) from None
        # The folder comes first, both as the working folder and on the path: its `hdl` is found before the project's.
        paths = {"PYTHONPATH": os.pathsep.join([str(self.work), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
        file = self.work / "formula.smt2"
        done = subprocess.run(
            [sys.executable, "-m", "lab.proofs.text", str(netlists.resolve()), str(file), self.proof],
            cwd=self.work,
            env=os.environ | paths,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 or Path(done.stdout.strip()) != self.work.resolve() / "hdl":
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise ToolError(f"{self.fault.name}: no formula of its own hdl: {said}")
        return file.read_text(encoding="utf-8")


def pinned_faults() -> Iterator[PinnedFault]:
    """Yield the faults that proofs must refute."""
    yield from (PinnedFault(fault) for fault in rtl_faults())
