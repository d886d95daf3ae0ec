"""The measured units, which the catalogue marks, with the multiplier of the family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial

from amaranth.lib import wiring

from hdl.catalogue import UNITS, Unit
from hdl.definitions import shown

__all__ = ["LARGE", "Build", "catalogue", "parameters_of", "select"]

Build = Callable[[], wiring.Component]

#: Arrays that take half an hour and more to place, and are measured where they are named.
LARGE = "*_by_*"
_SHOWN = (
    "source",
    "destination",
    "element",
    "block",
    "operands",
    "levels",
    "rows",
    "columns",
    "lanes",
    "registers",
    "stages",
)


def catalogue(multiplier: str = "ecp5") -> dict[str, Build]:
    """Return a builder for every unit that is measured, by its name, in the order of the table.

    Parameters
    ----------
    multiplier : str
        Of `hdl.cores.multiplier.MULTIPLIERS`: synthesis does not find all registers inside the DSP blocks.
    """
    return {unit.name: _build(unit, multiplier) for unit in UNITS.values() if unit.is_measured}


def _build(unit: Unit, multiplier: str) -> Build:
    has_multiplier = "multiplier" in unit.kind.parameters.definitions()
    return partial(unit.build, multiplier=multiplier) if has_multiplier else unit.build


def select(patterns: Sequence[str], multiplier: str = "ecp5") -> dict[str, Build]:
    """Return the units that match any of some names or wildcard patterns; without patterns, all but `LARGE` ones.

    Raises
    ------
    ValueError
        If a pattern matches nothing.
    """
    units = catalogue(multiplier)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in units):
            raise ValueError(f"unit: got {pattern!r}, must match one of {', '.join(units)}")
    return {
        name: build
        for name, build in units.items()
        if (any(fnmatchcase(name, pattern) for pattern in patterns) if patterns else not fnmatchcase(name, LARGE))
    }


def parameters_of(unit: wiring.Component) -> str:
    """Return the parameters of a unit, defaults included, as a line of text."""
    told = [f"{key} {shown(getattr(unit, key))}" for key in _SHOWN if hasattr(unit, key)]
    if getattr(unit, "counters", False):
        told.append("counters")
    modes = getattr(unit, "roundings", ())
    if len(modes) > 1:
        told.append(f"{len(modes)} rounding modes")
    if getattr(unit, "subnormals", "keep") == "flush":
        told.append("subnormals flushed")
    if hasattr(unit, "flags"):
        told.append("flags" if unit.flags else "no flags")
    return "; ".join(told)
