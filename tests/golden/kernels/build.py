"""The kernels' library built from a changed copy of its source: with a fault put in, or for a missing processor."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import golden.kernels
from lab.mutants.table import Edit

SOURCE = Path(golden.kernels.__file__).parent / "source"
PROJECT = SOURCE.parents[2] / "pyproject.toml"


def extension() -> dict[str, object]:
    """The extension module as pyproject.toml has it."""
    (module,) = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["setuptools"]["ext-modules"]
    return module


@dataclass(frozen=True)
class Replacement:
    """A whole source file that replaces another."""

    file_name: str
    by: Path

    def apply(self, folder: Path) -> None:
        shutil.copyfile(self.by, folder / self.file_name)


UNITS = sorted(path.name for path in SOURCE.glob("*.cpp"))
#: A header with all system headers of the source, and the one header that only some processors have.
HEADER, INTRINSICS = "system.h", "immintrin.h"
PATH_UNITS = {f"{path}.cpp" for path in golden.kernels.library.COMPILED_PATHS}


class Builder:
    """Builds changed libraries; units without a change are compiled once.

    Parameters
    ----------
    folder : Path
    optimisation : str
        The compiler's option. Other tests show that no optimisation changes a bit.
    plain : Path, optional
        A folder that `compile_plain` has filled, with the same option; by default a new one.
    """

    def __init__(self, folder: Path, optimisation: str = "-O1", plain: Path | None = None) -> None:
        self.folder, self.optimisation, self.units = folder, optimisation, UNITS
        if plain is None:
            plain = folder / "plain"
            plain.mkdir()
            compile_plain(plain, optimisation)
        self.plain, self.header = objects_in(plain, UNITS), plain / HEADER

    def compiled(self, source: Path, units: list[str], into: Path) -> dict[str, Path]:
        """Compile units of a copy of the source; return their objects."""
        into.mkdir()
        return compiled(source, units, into, [self.optimisation], self.header)

    def build(self, name: str, *changes: Edit | Replacement, path: str | None = None) -> Path:
        """Return the shared library built with the changes; in one path alone if it is named, which is quicker."""
        folder = self.folder / name
        shutil.copytree(SOURCE, folder / "source")
        for change in changes:
            change.apply(folder / "source")
        changed = {change.file_name for change in changes}
        units = [unit for unit in self.units if changed & files_of(unit)]
        if path:
            units = [unit for unit in units if unit == f"{path}.cpp" or unit not in PATH_UNITS]
        assert units, f"nothing includes {changed}"
        return self.link(folder, self.compiled(folder / "source", units, folder / "objects"))

    def unchanged(self) -> Path:
        """Return the shared library built without a change, from the objects that all changed libraries share."""
        folder = self.folder / "unchanged"
        folder.mkdir()
        return self.link(folder, {})

    def link(self, folder: Path, objects: dict[str, Path]) -> Path:
        """Return the shared library of these objects and the unchanged ones."""
        library = folder / "changed.so"
        run([compiler(), "-shared", "-pthread", "-o", str(library), *map(str, (self.plain | objects).values())])
        return library


def compiler() -> str:
    found = shutil.which("c++")
    assert found, "these tests need a C++ compiler: apt-get install g++"
    return found


def objects_in(folder: Path, units: list[str]) -> dict[str, Path]:
    return {unit: folder / f"{unit}.o" for unit in units}


def compile_plain(folder: Path, optimisation: str) -> None:
    """Fill a folder with the objects of all units as they are, and with the header that makes others quick."""
    compiled(SOURCE, UNITS, folder, [optimisation], precompiled(folder, [optimisation]))


def compiled(source: Path, units: list[str], into: Path, options: list[str], header: Path) -> dict[str, Path]:
    """Compile units into a folder, with the options of the project except the optimisation; return their objects."""
    for unit, result in objects_in(into, units).items():
        run([*command(options), "-include", str(header), "-c", str(source / unit), "-o", str(result)])
    return objects_in(into, units)


def precompiled(folder: Path, options: list[str]) -> Path:
    """Return a header with all system headers of the source, read once: half of the time of most units.

    A compiler that cannot use the precompiled form reads the header itself.
    """
    named = system_headers(SOURCE)
    lines = [f"#include <{name}>" for name in sorted(named - {INTRINSICS})]
    lines += ["#if defined(__x86_64__)", f"#include <{INTRINSICS}>", "#endif", ""]
    return read_once(folder, "\n".join(lines), command(options))


def system_headers(source: Path) -> set[str]:
    """Return the names of the system's headers that the files of a folder include."""
    texts = (path.read_text(encoding="utf-8") for path in source.iterdir())
    return {name for text in texts for name in re.findall(r"^#include <([\w.]+)>", text, re.M)}


def read_once(folder: Path, text: str, command: list[str]) -> Path:
    """Return a header with a text in a folder, which the compiler has read for this command."""
    header = folder / HEADER
    header.write_text(text, encoding="utf-8")
    run([*command, "-x", "c++-header", str(header), "-o", f"{header}.gch"])
    return header


def command(options: list[str]) -> list[str]:
    """Return the compiler with the options of the project, and other options instead of the optimisation."""
    usual = [option for option in extension()["extra-compile-args"] if not option.startswith("-O")]
    return [compiler(), *usual, "-fPIC", *options]


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
