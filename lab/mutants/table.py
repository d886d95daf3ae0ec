"""The pinned faults: deliberate bugs, each with the checks that must catch it, from the TOML files in `pinned`.

A file of the table covers one room, or one test. Each of its sections covers one source file::

    unit = "mac_cbfloat16"

    [hazards]
    file = "hdl/mac/hazards.py"
    proofs = ["control"]
    hazard_one_cycle_short = ["places = latency - 1", "places = latency - 2"]

    [hazards.hazards_ignored]
    find = "row.eq(Mux(self.load, Cat(needed), row >> 1))"
    replace = "row.eq(0)"

Each fault is a line of the section, with the text to find and its replacement, or a table. Keys of the file
hold for all its faults, keys of a section for the faults in it; `Fault` lists the keys. The text must occur exactly
once in the source file. A short text may need its surroundings to be unique: then « and » enclose the part that is
replaced, "sum = «0»;". Sets of proofs have names, in ``proofs.toml``.

After a change of a source file, ``pytest tests/lab/test_mutants.py`` names the faults that no longer fit. Search the
table for the file, and rewrite both texts so that they make the same bug.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from tools.evidence import Part
from tools.paths import ROOT

__all__ = ["Edit", "Fault", "hdl_with", "pinned", "rtl_faults", "seen_by"]

_FOLDER = Path(__file__).with_name("pinned")
_SETS = _FOLDER / "proofs.toml"


@dataclass(frozen=True)
class Edit:
    """One place of a file, rewritten.

    Parameters
    ----------
    file : str
        From the project's root, or only a name if the caller knows the folder.
    find : str
        Text that occurs exactly once. If it has « and », only the part between them is replaced.
    replace : str
    """

    file: str
    find: str
    replace: str

    def span(self, text: str) -> tuple[int, int]:
        """Return the start and end of the text to be replaced.

        Raises
        ------
        ValueError
            If the text to be found does not occur exactly once.
        """
        before, mark, rest = self.find.partition("«")
        old, _, after = rest.partition("»") if mark else (before, "", "")
        before = before if mark else ""
        whole = before + old + after
        if text.count(whole) != 1:
            raise ValueError(f"{self.file}: got {text.count(whole)} matches of {whole!r}, must be exactly 1")
        start = text.index(whole) + len(before)
        return start, start + len(old)

    def applied(self, text: str) -> str:
        """Return the text with the edit."""
        start, end = self.span(text)
        return text[:start] + self.replace + text[end:]

    def apply(self, folder: Path) -> None:
        """Rewrite a copy of the file, which may lie directly in the folder."""
        path = folder / (self.file if (folder / self.file).is_file() else self.file_name)
        path.write_text(self.applied(path.read_text(encoding="utf-8")), encoding="utf-8")

    @property
    def file_name(self) -> str:
        """The file without its folders."""
        return self.file.rpartition("/")[2]


@dataclass(frozen=True)
class Fault(Edit):
    """A deliberate bug, and the checks that must catch it.

    Parameters
    ----------
    name : str
    unit : str
        The unit whose regression must fail; empty for a fault outside the RTL.
    scenarios : str
        The scenarios to run, comma-separated; all of them if empty.
    effort : float
        Share of the unit's stimulus.
    simulator : bool
        The simulator runs it, not the compiled unit: faster if few scenarios show the fault, and necessary if there is
        traffic on the bus.
    proofs : tuple of str
        Ids of proofs, or names of sets of proofs. One proof must refute the fault.
    fast : bool
        Whether it belongs to the fast tier of the proofs.
    only_proofs : bool
        The regression need not catch it.
    is_none : bool
        It breaks no requirement: all its proofs go through.
    test : str
        The test file that must catch it.
    by : str
        The path, the mode or the check by which that test notices it.
    alone : bool
        The test builds it alone: behind a switch, its text would not compile or have no effect.
    """

    name: str
    unit: str = ""
    scenarios: str = ""
    effort: float = 0.15
    simulator: bool = False
    proofs: tuple[str, ...] = ()
    fast: bool = False
    only_proofs: bool = False
    is_none: bool = False
    test: str = ""
    by: str = ""
    alone: bool = False

    @property
    def part(self) -> Part:
        """The faulty part: the unit, or the step inside it."""
        from sim.units import UNITS, part_of  # Tests of golden read the table, too, and do not need the RTL.

        if self.unit not in UNITS:  # Engines have their own regression.
            return Part.ENGINE
        unit = part_of(self.unit)
        return Part.STEP if self.file.startswith("hdl/cores/") and unit is not Part.CONVERTERS else unit


_KEYS = tuple(field.name for field in fields(Fault))


@cache
def pinned() -> tuple[Fault, ...]:
    """Return all faults of the table."""
    return tuple(fault for path in sorted(_FOLDER.glob("*.toml")) if path != _SETS for fault in _faults_in(path))


def rtl_faults(*, simulated: bool = False) -> tuple[Fault, ...]:
    """Return the faults of the RTL, or those that the regression must catch."""
    return tuple(fault for fault in pinned() if fault.unit and not (simulated and fault.only_proofs))


def seen_by(test: Path | str) -> dict[str, Fault]:
    """Return the faults that a test file must catch, by name."""
    name = Path(test).resolve().relative_to(ROOT).as_posix()
    found = {fault.name: fault for fault in pinned() if fault.test == name}
    if not found:
        raise ValueError(f"test: got {name}, must be one that {_FOLDER.relative_to(ROOT)} names")
    return found


def hdl_with(fault: Edit, folder: Path) -> None:
    """Put a copy of `hdl` with a fault into a folder, and replace any copy that is there.

    Raises
    ------
    ValueError
        If the text to be edited does not occur exactly once.
    """
    shutil.rmtree(folder / "hdl", ignore_errors=True)
    shutil.copytree(ROOT / "hdl", folder / "hdl", ignore=shutil.ignore_patterns("__pycache__"))
    fault.apply(folder)


def _faults_in(path: Path) -> Iterator[Fault]:
    shared, sections = _split(tomllib.loads(path.read_text(encoding="utf-8")))
    for section in sections.values():
        of_section, faults = _split(section)
        for name, own in faults.items():
            yield _fault(f"{path.name}: {name}", shared | of_section, name, own)


def _split(table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keys of a table, and its sections or faults."""
    keys = {key: value for key, value in table.items() if key in _KEYS}
    return keys, {key: value for key, value in table.items() if key not in _KEYS}


def _fault(where: str, shared: dict[str, Any], name: str, own: Any) -> Fault:
    match own:
        case [str(find), str(replace)]:
            own = {"find": find, "replace": replace}
        case dict():
            if wrong := [key for key in own if key not in _KEYS]:
                raise ValueError(f"{where}: got {', '.join(wrong)}, must be of {', '.join(_KEYS)}")
        case _:
            raise ValueError(f"{where}: got {own!r}, must be a fault, [find, replace] or a table, or one of its keys")
    given = {**shared, **own, "name": name}
    return Fault(**given | {"proofs": tuple(_proofs(given.get("proofs", ())))})


def _proofs(names: list[str]) -> Iterator[str]:
    """Yield ids of proofs, with the members of every set instead of its name."""
    for name in names:
        yield from _proofs(_sets()[name]) if name in _sets() else (name,)


@cache
def _sets() -> dict[str, list[str]]:
    return tomllib.loads(_SETS.read_text(encoding="utf-8"))
