"""Small C++ programs, built for the run."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["build"]


def build(name: str, sources: Sequence[Path], folders: Sequence[Path]) -> ctypes.CDLL:
    """Compile sources into a library and load it.

    Parameters
    ----------
    name : str
    sources : sequence of Path
        C and C++ files.
    folders : sequence of Path
        Where headers are found.

    Raises
    ------
    RuntimeError
        If there is no compiler, or it refuses.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        raise RuntimeError("no C++ compiler: install g++, or name one in CXX")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.h").touch()  # which SoftFloat wants; nothing is configured
        objects = []
        for number, source in enumerate(sources):
            language = "c" if source.suffix == ".c" else "c++"
            includes = [f"-I{each}" for each in (*folders, folder)]
            made = Path(folder) / f"{number}.o"
            _run([compiler, "-x", language, "-O2", "-w", "-fPIC", *includes, "-c", str(source), "-o", str(made)])
            objects.append(str(made))
        library = Path(folder) / f"{name}.so"
        _run([compiler, "-shared", *objects, "-o", str(library)])
        return ctypes.CDLL(str(library))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
