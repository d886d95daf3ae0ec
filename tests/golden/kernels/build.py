"""The kernels' library built from a changed copy of its source: with a fault put in, or for a missing processor."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import golden.kernels

SOURCE = Path(golden.kernels.__file__).parent / "source"
PROJECT = SOURCE.parents[2] / "pyproject.toml"


def extension() -> dict[str, object]:
    """The extension module as pyproject.toml has it."""
    (module,) = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]["ext-modules"]
    return module


@dataclass(frozen=True)
class Change:
    """One place of one source file, rewritten; the old text must stand there once."""

    file: str
    old: str
    new: str

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} places of: {self.old}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Replacement:
    """A whole source file in place of another."""

    file: str
    by: Path

    def apply(self, folder: Path) -> None:
        shutil.copyfile(self.by, folder / self.file)


class Builder:
    """Builds changed libraries; what no change touches is compiled once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        compiler = shutil.which("c++")
        assert compiler, "these tests need a C++ compiler: apt-get install g++"
        # Fast to compile; that no optimisation changes a bit is what the other tests are for.
        options = [option for option in extension()["extra-compile-args"] if not option.startswith("-O")]
        self.compile = [compiler, *options, "-O1", "-fPIC"]
        self.units = sorted(path.name for path in SOURCE.glob("*.cpp"))
        self.plain = self._objects(SOURCE, self.units, folder / "plain")

    def _objects(self, source: Path, units: list[str], into: Path) -> dict[str, Path]:
        into.mkdir()
        objects = {unit: into / f"{unit}.o" for unit in units}
        for unit, result in objects.items():
            run([*self.compile, "-c", str(source / unit), "-o", str(result)])
        return objects

    def build(self, name: str, *changes: Change | Replacement) -> Path:
        """Return the shared library built with the changes."""
        folder = self.folder / name
        shutil.copytree(SOURCE, folder / "source")
        for change in changes:
            change.apply(folder / "source")
        changed = {change.file for change in changes}
        units = [unit for unit in self.units if changed & files_of(unit)]
        assert units, f"nothing includes {changed}"
        return self.link(folder, self._objects(folder / "source", units, folder / "objects"))

    def link(self, folder: Path, objects: dict[str, Path]) -> Path:
        """Return the shared library of these objects and the unchanged ones."""
        library = folder / "changed.so"
        run([self.compile[0], "-shared", "-pthread", "-o", str(library), *map(str, (self.plain | objects).values())])
        return library


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def files_of(name: str) -> set[str]:
    """A source file and all that it includes, directly or not."""
    found, waiting = set(), {name}
    while waiting:
        file = waiting.pop()
        found.add(file)
        included = set(re.findall(r'#include "([^"]+)"', (SOURCE / file).read_text(encoding="utf-8")))
        waiting |= included - found
    return found
