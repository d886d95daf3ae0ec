"""One proof: a formula that must have no solution, an engine, a verdict."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path

from golden.files import write_whole
from lab.netlists.errors import ToolError, cadical, version_of
from lab.proofs.conditions import that_fail

__all__ = [
    "BITWUZLA",
    "CVC5",
    "ENGINES",
    "MEBIBYTES",
    "Z3_CADICAL",
    "Answer",
    "Proof",
    "Verdict",
    "answer_file",
    "engine_version",
    "prove",
]

Z3_CADICAL, BITWUZLA, CVC5 = "z3+cadical", "bitwuzla", "cvc5"
ENGINES = (Z3_CADICAL, BITWUZLA, CVC5)
#: Address space that a solver may use.
MEBIBYTES = 8192
#: A solver that shares its processor ends after this many times its processor time.
_PATIENCE = 10
#: Raised when engines treat formulas in another way: earlier answers then count no longer.
_REVISION = 2
_ROOT = Path(__file__).resolve().parents[2]
#: Running solvers. Each has its own session, so that it ends with all that it has started.
_RUNNING: set[subprocess.Popen[str]] = set()


class Verdict(Enum):
    """The outcome of a proof."""

    PROVEN = "proven"
    #: Of a deliberate change: the proof refutes it (caught), or it is proven to change nothing (equivalent).
    CAUGHT = "caught"
    EQUIVALENT = "equivalent"
    #: Of a deliberate change: the proof goes through although the change shows.
    SURVIVED = "SURVIVED"
    REFUTED = "REFUTED"
    #: The engine gave up, or its time was over.
    UNKNOWN = "unknown"
    #: Nothing is said about the unit.
    TOOL_ERROR = "tool error"

    @property
    def is_good(self) -> bool:
        """Whether this is as it should be."""
        return self in (Verdict.PROVEN, Verdict.CAUGHT, Verdict.EQUIVALENT)


@dataclass(frozen=True)
class Proof:
    """A property that must hold for every input.

    Parameters
    ----------
    claim : str
        What is proven, in words that stay when titles change: ``converter/float32_to_cbfloat16/interval``. With the
        engine it is the proof's `id`, by which faults, documents and command lines name it.
    unit, mode : str
        What it is about: a group of proofs, and which of them.
    specification : str
        How the proof determines the right result. These three are for people.
    engine : str
        One of `ENGINES`.
    build : function
        Takes the folder that keeps netlists and gives SMT-LIB text, which has a solution exactly if the property fails.
    timeout : int
        Seconds of processor time: other load on the machine changes no verdict.
    fast : bool
        Whether it belongs to the fast tier.
    explain : function, optional
        Takes the value of every port in a solution, and returns golden's result for them, in words.
    """

    claim: str
    unit: str
    mode: str
    specification: str
    engine: str
    build: Callable[[Path], str]
    timeout: int = 600
    fast: bool = False
    explain: Callable[[Mapping[str, int]], str] | None = None

    @property
    def id(self) -> str:
        """Claim and engine: ``converter/float32_to_cbfloat16/interval/bitwuzla``."""
        return f"{self.claim}/{self.engine}"

    @property
    def title(self) -> str:
        """Unit, mode, specification and engine, for people."""
        return f"{self.unit} {self.mode} ({self.specification}, {self.engine})"

    def run(self, folder: Path) -> Answer:
        """Decide it."""
        return prove(self, folder)


@dataclass(frozen=True)
class Answer:
    """An answer of an engine to a proof.

    Parameters
    ----------
    id, unit, mode, specification, engine : str
        As in the proof.
    verdict : Verdict
    seconds : float
        Processor time.
    remark : str
        Operands in hex and golden's result for them, or what went wrong.
    cached : bool
        Whether it was decided in an earlier run.
    ports : dict of str to int
        Values of all ports in a solution.
    key : str
        Hash of the formula, the engine and its version.
    """

    id: str
    unit: str
    mode: str
    specification: str
    engine: str
    verdict: Verdict
    seconds: float
    remark: str = ""
    cached: bool = False
    ports: Mapping[str, int] = field(default_factory=dict)
    key: str = ""

    def but(self, verdict: Verdict, remark: str, seconds: float | None = None) -> Answer:
        """Return the same with another verdict."""
        return replace(self, verdict=verdict, remark=remark, seconds=self.seconds if seconds is None else seconds)

    def to_json(self) -> dict[str, object]:
        """Return values that `json` can write."""
        return asdict(self) | {"verdict": self.verdict.value}


@cache
def engine_version(engine: str) -> str:
    """Return the versions of all that an engine consists of.

    Raises
    ------
    ToolError
        If a part is missing.
    """
    if engine == Z3_CADICAL:
        return f"z3 {version_of('z3-solver')}, CaDiCaL {cadical()[1]}"
    return f"{engine} {version_of(engine)}"


def prove(proof: Proof, folder: Path) -> Answer:
    """Decide a proof, or look its answer up: answers are kept by formula, engine and version."""
    result = Answer(proof.id, proof.unit, proof.mode, proof.specification, proof.engine, Verdict.UNKNOWN, 0.0)
    try:
        version = engine_version(proof.engine)
        text = proof.build(folder / "netlists")
    except ToolError as error:
        return replace(result, verdict=Verdict.TOOL_ERROR, remark=str(error))
    key = hashlib.sha256("\0".join([str(_REVISION), proof.engine, version, text]).encode()).hexdigest()[:32]
    kept = answer_file(folder, key)
    if kept.is_file():
        answer = json.loads(kept.read_text(encoding="utf-8"))
        cached = True
    else:
        # Different proofs may come to the same formula, and ask at the same time.
        file = folder / "formulas" / f"{key}.{threading.get_native_id()}.smt2"
        answer = _ask(proof.engine, text, file, proof.timeout)
        cached = False
        if answer.get("answer") in ("sat", "unsat"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps(answer).encode())
    if "error" in answer:
        return replace(result, verdict=Verdict.TOOL_ERROR, remark=answer["error"])
    result = replace(result, seconds=answer["seconds"], cached=cached, key=key)
    if answer["answer"] == "unsat":
        return replace(result, verdict=Verdict.PROVEN)
    if answer["answer"] == "sat":
        ports = _ports(answer["model"])
        # Hundreds of bits that say which conditions fail: the explanation has their names instead.
        inputs = _ports({name: value for name, value in answer["model"].items() if not name.startswith("fails.")})
        shown = ", ".join(f"{name} {value:#x}" for name, value in inputs.items())
        said = [shown, that_fail(text, ports), proof.explain(ports) if proof.explain else ""]
        return replace(result, verdict=Verdict.REFUTED, remark="; ".join(filter(None, said)), ports=ports)
    return replace(result, remark=answer.get("why", f"{proof.engine} gave up"))


def answer_file(folder: Path, key: str) -> Path:
    """Return the file of the answer to a formula."""
    return folder / "cache" / f"{key}.json"


def _ports(model: Mapping[str, str]) -> dict[str, int]:
    """Return the ports of a solution: constants such as ``top.acc``."""
    return {name.partition(".")[2]: int(value, 16) for name, value in sorted(model.items()) if "." in name}


def _ask(engine: str, text: str, file: Path, timeout: int) -> dict[str, object]:
    """Let an engine decide in another process, which ends with all that it has started."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "lab.proofs.engines", engine, str(file), str(MEBIBYTES), str(timeout)]
    process = subprocess.Popen(
        command,
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    _RUNNING.add(process)
    try:
        out, said = process.communicate(timeout=_PATIENCE * timeout)
    except subprocess.TimeoutExpired:
        return {"answer": "unknown", "seconds": float(timeout), "why": f"not decided within {_PATIENCE * timeout} s"}
    finally:
        _RUNNING.discard(process)
        _end(process)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        for path in (file, file.with_suffix(".cnf")):
            path.unlink(missing_ok=True)
    if process.returncode == -signal.SIGXCPU:
        why = f"not decided within {timeout} s of processor time"
        return {"answer": "unknown", "seconds": float(timeout), "why": why}
    try:
        answer: dict[str, object] = json.loads(out)
    except json.JSONDecodeError:
        answer = {}
    # An answer of an engine that then ends badly counts for nothing.
    if not answer or (process.returncode != 0 and "error" not in answer):
        lines = said.strip().splitlines() or ["no message"]
        memory = (
            " (its memory may have been too little)" if process.returncode in (-signal.SIGKILL, -signal.SIGABRT) else ""
        )
        return {"error": f"{engine}: {lines[-1]} (status {process.returncode}){memory}"}
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
