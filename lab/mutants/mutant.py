"""A bug that is put into the RTL."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sim.run.compiled import Engine
from sim.units import part_of
from tools.evidence import Part
from tools.paths import ROOT

__all__ = ["Mutant", "edit"]


@dataclass(frozen=True)
class Mutant:
    """An edit of the RTL.

    Parameters
    ----------
    name : str
    file : str
        Below ``hdl``.
    old, new : str
        Source text; `old` must occur exactly once.
    unit : str
        The unit whose regression must fail.
    scenarios : str
        The scenarios that are run; all of them if empty.
    effort : float
        Share of the unit's stimulus.
    engine : Engine
        What runs it. Where few scenarios show it, a simulator takes less time than a compiler.
    proofs : tuple of str
        Ids of the proofs of which one must refute it; none where only the regression looks for it.
    fast : bool
        Whether the fast tier of the proofs has it.
    is_none : bool
        It changes nothing that is to hold: all of these proofs must go through.
    """

    name: str
    file: str
    old: str
    new: str
    unit: str = "mac_cbfloat16"
    scenarios: str = ""
    effort: float = 0.15
    engine: Engine = Engine.COMPILED
    proofs: tuple[str, ...] = ()
    fast: bool = False
    is_none: bool = False

    @property
    def part(self) -> Part:
        """The faulty part: the unit, or the step inside it."""
        unit = part_of(self.unit)
        return Part.STEP if self.file.startswith("cores/") and unit is not Part.CONVERTERS else unit


def edit(mutant: Mutant, folder: Path) -> None:
    """Put a copy of `hdl` with the bug into a folder, in place of one that is there.

    Raises
    ------
    ValueError
        If the text to be edited does not occur exactly once.
    """
    shutil.rmtree(folder / "hdl", ignore_errors=True)
    shutil.copytree(ROOT / "hdl", folder / "hdl", ignore=shutil.ignore_patterns("__pycache__"))
    source = folder / "hdl" / mutant.file
    text = source.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file}: got {text.count(mutant.old)} matches of {mutant.old!r}, must be exactly 1")
    source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
