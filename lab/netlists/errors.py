"""Errors of the tools themselves, as opposed to refuted proofs."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata

__all__ = ["ToolError", "cadical", "version_of"]


class ToolError(Exception):
    """A tool is missing, too old, or failed: this says nothing about the unit."""


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution.

    Raises
    ------
    ToolError
        If it is not installed.
    """
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise ToolError(
            f"{distribution} is not installed: run `make formal`, which installs it, "
            "or pip install -e '.[formal]' -c constraints.txt"
        ) from None


def cadical() -> tuple[str, str]:
    """Return path and version of the SAT solver.

    Raises
    ------
    ToolError
        If it is missing or does not answer.
    """
    path = shutil.which("cadical")
    if path is None:
        raise ToolError("cadical is not installed: run `make formal`, or apt-get install cadical (Debian, Ubuntu)")
    done = subprocess.run([path, "--version"], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        raise ToolError(f"cadical: {path} --version ended with status {done.returncode}")
    return path, done.stdout.strip()
