"""The formulas that a published run has proven, so that a later run solves only those that have changed.

A line of the file has the key of a formula with its engine and version, and the processor seconds of its proof. Another
formula, engine or version has another key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from golden.files import write_whole
from lab.proofs.proof import Answer, Verdict, answer_file

__all__ = ["FILE", "publish_proven", "take_proven"]

FILE = Path(__file__).with_name("proven.txt")
_WORTHWHILE = 1.0  # seconds: nine tenths of the time are in a tenth of the proofs


def publish_proven(answers: Iterable[Answer], file: Path = FILE, *, least: float = _WORTHWHILE) -> None:
    """Write the keys of all formulas whose proof took at least `least` seconds, and drop the earlier keys."""
    proven = {one.key: one.seconds for one in answers if one.verdict is Verdict.PROVEN and one.seconds >= least}
    lines = "".join(f"{key} {seconds:.1f}\n" for key, seconds in sorted(proven.items()))
    write_whole(file, lines.encode())


def take_proven(folder: Path, file: Path = FILE) -> int:
    """Put published answers where `lab.proofs.proof.prove` looks for earlier ones; return how many there are."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for line in lines:
        key, seconds = line.split()
        kept = answer_file(folder, key)
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps({"answer": "unsat", "seconds": float(seconds)}).encode())
    return len(lines)
