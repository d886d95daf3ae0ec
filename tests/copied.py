"""A copy of the project that a test changes by the steps of a page, and commands that run in it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = ("golden", "hdl", "sim", "lab", "tools")
_GENERATED = shutil.ignore_patterns("__pycache__", "build")


class Copy:
    """A copy of the packages in another folder.

    Parameters
    ----------
    folder : Path
        The folder, which the copy makes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, folder / name, ignore=_GENERATED)

    def edit(self, file: str, *changes: tuple[str, str]) -> None:
        """Replace texts that occur once in a file; the new text may contain the old one as ``{}``."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, f"{file} has {text.count(old)} places of: {old}"
            text = text.replace(old, new.replace("{}", old))
        path.write_text(text, encoding="utf-8")

    def run(self, *arguments: str, timeout: int = 600) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy, and capture its output and errors."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def passes(self, *arguments: str, timeout: int = 600) -> str:
        """Run Python, which must succeed; return its standard output."""
        done = self.run(*arguments, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *arguments: str) -> str:
        """Run Python, which must fail; return the last line of its error."""
        done = self.run(*arguments)
        assert done.returncode, done.stdout
        return done.stderr.strip().splitlines()[-1]


def files_of_section(heading: str) -> set[str]:
    """Return the files that a section of docs/extending.md tells to touch."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    cells = re.findall(r"^\| \d+ \| ([^|]+) \|", section, re.M)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
