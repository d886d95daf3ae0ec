"""The contents of an archive of the sources and of a wheel: missing and surplus files."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools.paths import ROOT

__all__ = ["copy_sources", "names", "problems_of_sources", "problems_of_wheel"]

#: The sources of an installation.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "golden", "hdl", "tools/namespace")
#: Where the installed packages lie in the tree.
PACKAGES = {"golden": "golden", "hdl": "hdl", "cbfloat": "tools/namespace/cbfloat"}
INSTALLED = (".py", ".pyi", ".yaml", ".h", ".cu", ".jinja", ".css", ".js", "py.typed")
_BUILT = shutil.ignore_patterns("__pycache__", "native.*")


def copy_sources(folder: Path) -> None:
    """Copy the sources of an installation into a folder, without files that earlier builds have left."""
    for name in SOURCES:
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=_BUILT)
        else:
            shutil.copy(source, copy)


def names(archive: Path) -> set[str]:
    """Return the files in a wheel, or in an archive of sources without its top folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sources:
        return {member.name.partition("/")[2] for member in sources if member.isfile()}


def problems_of_sources(found: Iterable[str], tree: Path) -> list[str]:
    """Return a line for each source that an archive lacks, and for each file that an installation does not need."""
    found = set(found)
    endings = (*INSTALLED, ".cpp")
    wanted = {"pyproject.toml", "README.md", "LICENSE"}
    for folder in PACKAGES.values():
        wanted |= {path.relative_to(tree).as_posix() for path in _files(tree / folder) if path.name.endswith(endings)}
    allowed = (*PACKAGES.values(), "PKG-INFO", "setup.cfg", "cbfloat.egg-info")
    more = {name for name in found - wanted if not name.startswith(allowed)}
    return [*(f"lacks {name}" for name in sorted(wanted - found)), *(f"has {name}" for name in sorted(more))]


def problems_of_wheel(found: Iterable[str], tree: Path, *, compiled: bool = True) -> list[str]:
    """Return a line for each file of the three packages that a wheel lacks, and for each file that belongs to none.

    Parameters
    ----------
    found : iterable of str
        The names of its files.
    tree : Path
        The sources.
    compiled : bool
        Whether the kernels belong to it.
    """
    found = set(found)
    wanted = {
        f"{package}/{path.relative_to(tree / folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in _files(tree / folder)
        if path.name.endswith(INSTALLED)
    }
    own = tuple(f"{package}/" for package in PACKAGES)
    more = {name for name in found - wanted if not name.startswith(own) and ".dist-info/" not in name}
    problems = [*(f"lacks {name}" for name in sorted(wanted - found)), *(f"has {name}" for name in sorted(more))]
    if compiled and not any(name.startswith("golden/kernels/native.") for name in found):
        problems.append("lacks the compiled kernels")
    return problems


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
