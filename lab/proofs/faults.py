"""The deliberate faults of `lab.mutants` and `lab.proofs.trial_faults`, which the proofs must refute."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.mutants.faults import MUTANTS
from lab.mutants.mutant import Mutant as Fault
from lab.proofs.along_model.induction import INDUCTIONS
from lab.proofs.control import SIZES
from lab.proofs.errors import ToolError
from lab.proofs.proof import BITWUZLA, Outcome, Proof, Verdict, prove
from lab.proofs.trial_faults import TRIAL_FAULTS
from lab.proofs.vector_control import FOUR_LANES, FULL_QUEUE, TWO_LANES
from tools.paths import ROOT

__all__ = ["PinnedFault", "pinned_faults"]

_FIRST_HALF = "step: first half cbfloat16: cbfloat16 into cbfloat16 (exact product, bitwuzla)"
_OWN_FORM = "lane: own form cbfloat16: cbfloat16 into cbfloat16 (step, bitwuzla)"
_SECOND_HALF = "step: second half cbfloat16: cbfloat16 into cbfloat16 (interval, bitwuzla)"
_WIDE = "step: second half cbfloat16: cbfloat16 into float32 (interval, bitwuzla)"
#: Only where words are no longer than a product do bits fall out of the first shift.
_LEVEL_2 = "step: second half cbfloat16, level 2: cbfloat16 into cbfloat16 (that of cbfloat16, bitwuzla)"
_CONVERTERS = {
    "float32_to_cbfloat16": "converter float32 to cbfloat16 (interval, bitwuzla)",
    "cbfloat16_to_float32": "converter cbfloat16 to float32 (interval, bitwuzla)",
}
#: Which proofs are to refute a fault of a file: one of them is enough.
_OF_FILE = {
    "cores/operand.py": (_FIRST_HALF, _OWN_FORM),
    "cores/product.py": (_FIRST_HALF, _SECOND_HALF),
    "cores/near.py": (_SECOND_HALF, _WIDE),
    "cores/far.py": (_SECOND_HALF, _WIDE, _LEVEL_2),
    "cores/round_step.py": (_OWN_FORM, _SECOND_HALF, _WIDE),
    "cores/outcome.py": (_OWN_FORM, _SECOND_HALF),
    "cores/fused_step.py": (_SECOND_HALF,),
    "cores/words.py": (_SECOND_HALF,),
    "mac/lane.py": (_OWN_FORM,),
    "axi_stream.py": ("mac: AXI4-Stream cbfloat16 (wire by wire, bitwuzla)",),
    "converter.py": ("converter: stream float32 to cbfloat16, 2 stages (queue of the core's results, bitwuzla)",),
}
#: For faults that only numbers of another format meet.
_OF_UNIT = {
    ("cores/near.py", "mac_bfloat16"): (
        "step: second half bfloat16: bfloat16 into bfloat16 (interval, bitwuzla)",
        "step: second half bfloat16: bfloat16 into float32, distances -2..3 (interval, bitwuzla)",
    ),
}
#: Around the lane: by induction in a unit of full depth, which holds a beat before it is issued, and in smaller ones.
_CONTROL = (
    "mac/chunks.py",
    "mac/issue.py",
    "mac/hazards.py",
    "mac/decode.py",
    "mac/results.py",
    "mac/register_file.py",
    "mac/multiply_accumulate.py",
    "mac/parameters.py",
)
_CONTROLS = (*INDUCTIONS, *(f"mac: control {size} (sequential model, bitwuzla)" for size in SIZES))
#: Two lanes and free stalls are enough for the others.
_VECTOR_CONTROLS = {
    # A pair of lanes has the operands of its level 0 where those of the other levels are; the next pair has not.
    "vector_level_0_operands_in_wrong_lanes": FOUR_LANES,
    # No result may leave before the last beat of as many as fill the queue has come and given both parts.
    "vector_queue_overflows_by_a_part": FULL_QUEUE,
}


@dataclass(frozen=True)
class PinnedFault:
    """A fault of `lab.mutants`, or one that only the proofs look for.

    Parameters
    ----------
    fault : Fault
    proofs : tuple of str
        Names of the proofs of which one must refute it.
    is_none : bool
        It changes nothing that is to hold: all of these proofs must go through.
    """

    fault: Fault
    proofs: tuple[str, ...]
    timeout: int = 600
    fast: bool = False
    is_none: bool = False

    @property
    def name(self) -> str:
        """As of a proof."""
        return f"fault {self.fault.name}"

    def run(self, folder: Path) -> Outcome:
        """Put the fault into a copy of `hdl` and see whether a proof refutes it."""
        outcome = Outcome("faults", self.fault.name, "as its proof", BITWUZLA, Verdict.SURVIVED, 0.0)
        seconds = 0.0
        with TemporaryDirectory() as work:
            for name in self.proofs:
                proof = Proof(
                    "faults", self.fault.name, name, BITWUZLA, _Text(self.fault, name, Path(work)), self.timeout
                )
                outcome = prove(proof, folder)
                seconds += outcome.seconds
                if outcome.verdict is Verdict.REFUTED and not self.is_none:
                    return outcome.but(Verdict.CAUGHT, f"{name}: {outcome.remark}", seconds)
                if outcome.verdict is not Verdict.PROVEN:
                    return outcome
        verdict = Verdict.EQUIVALENT if self.is_none else Verdict.SURVIVED
        return outcome.but(verdict, f"proven all the same: {', '.join(self.proofs)}", seconds)


@dataclass(frozen=True)
class _Text:
    """Gives the formula of a proof of a faulty `hdl`."""

    fault: Fault
    name: str
    work: Path

    def __call__(self, netlists: Path) -> str:
        fault = self.fault
        shutil.rmtree(self.work / "hdl", ignore_errors=True)
        shutil.copytree(ROOT / "hdl", self.work / "hdl", ignore=shutil.ignore_patterns("__pycache__"))
        source = self.work / "hdl" / fault.file
        text = source.read_text(encoding="utf-8")
        if text.count(fault.old) != 1:
            raise ToolError(f"{fault.file}: got {text.count(fault.old)} matches of {fault.old!r}, must be exactly 1")
        source.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        # The folder comes first, both as the working folder and on the path: its `hdl` is found before the project's.
        paths = {"PYTHONPATH": os.pathsep.join([str(self.work), str(ROOT)]), "PYTHONDONTWRITEBYTECODE": "1"}
        file = self.work / "formula.smt2"
        done = subprocess.run(
            [sys.executable, "-m", "lab.proofs.text", str(netlists.resolve()), str(file), self.name],
            cwd=self.work,
            env=os.environ | paths,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 or Path(done.stdout.strip()) != self.work.resolve() / "hdl":
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise ToolError(f"{fault.name}: no formula of its own hdl: {said}")
        return file.read_text(encoding="utf-8")


def pinned_faults() -> Iterator[PinnedFault]:
    """Yield the faults of what is proven."""
    tried = {one.fault.name for one in TRIAL_FAULTS}
    for fault in MUTANTS:
        if fault.name in tried:
            continue  # Below, with the proofs that are said there.
        if fault.unit in _CONVERTERS and fault.file.startswith("cores/"):
            yield PinnedFault(fault, (_CONVERTERS[fault.unit],), fast=True)
        elif fault.file in _OF_FILE and not fault.unit.startswith("vector"):
            yield PinnedFault(fault, _OF_UNIT.get((fault.file, fault.unit), _OF_FILE[fault.file]))
        elif fault.file in _CONTROL and fault.unit not in ("vector_mac", "mac_axi_stream"):
            yield PinnedFault(fault, _CONTROLS)
        elif fault.file.startswith("vector/"):
            size = _VECTOR_CONTROLS.get(fault.name, TWO_LANES)
            yield PinnedFault(fault, (f"vector: control {size} (sequential model, bitwuzla)",))
    for one in TRIAL_FAULTS:
        yield PinnedFault(one.fault, one.proofs, fast=one.fast, is_none=one.is_none)
