"""The units under test: every unit of the catalogue that gets a share of the stimulus."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from golden.nearest import did_you_mean
from hdl.catalogue import UNITS as CATALOGUE
from hdl.catalogue import Kind, Unit
from sim.fields import Fields
from sim.port import Port
from tools import evidence

__all__ = ["UNITS", "part_of", "port_of", "select", "slowest_first"]

#: Every unit that is tested, by its name.
UNITS = {name: unit for name, unit in CATALOGUE.items() if unit.effort}

#: How the kinds compare in seconds, the quick ones first.
_SLOWNESS = {Kind.CONVERTER: 0, Kind.MX_QUANTIZER: 0, Kind.MAC: 1, Kind.AXI_STREAM: 1, Kind.VECTOR: 2}

#: The row of the picture of evidence that a kind belongs to.
_PARTS = {
    Kind.CONVERTER: evidence.Part.CONVERTERS,
    Kind.MX_QUANTIZER: evidence.Part.CONVERTERS,
    Kind.MAC: evidence.Part.MAC,
    Kind.AXI_STREAM: evidence.Part.MAC,
    Kind.VECTOR: evidence.Part.VECTOR,
}


def part_of(name: str) -> evidence.Part:
    """Return the part of the project that evidence about a unit covers."""
    return _PARTS[UNITS[name].kind]


def select(names: str) -> list[Unit]:
    """Return the units whose names are listed, comma-separated, ``*`` standing for anything; all for an empty list.

    Raises
    ------
    ValueError
        If a name matches no unit; the message has the nearest one.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        return list(UNITS.values())
    chosen: dict[str, Unit] = {}
    for name in wanted:
        matching = {key: unit for key, unit in UNITS.items() if fnmatchcase(key, name)}
        if not matching:
            meant = did_you_mean(name, UNITS)
            raise ValueError(f"units: got {name!r}, must be some of those that --help lists, or have a *{meant}")
        chosen |= matching
    return [unit for key, unit in UNITS.items() if key in chosen]


def slowest_first(names: Iterable[str]) -> list[str]:
    """Return the names of units in the order to start them: the quick ones last, which leave no processor idle."""

    def cost(name: str) -> tuple[int, int, float]:
        unit = UNITS[name]
        return _SLOWNESS[unit.kind], unit.arguments.get("lanes", 0), unit.effort

    return sorted(names, key=cost, reverse=True)


def port_of(unit: Unit, component: Any) -> Port:
    """Return the layouts of the unit's streams."""
    if unit.kind is Kind.CONVERTER:
        controls = component.parameters.plan.controls
        request = {"code": component.source.width} | {name: field.width for name, field in controls}
        answer = {"bits": component.destination.width} | ({"flags": 5} if component.flags else {})
        # Not called an error: refused or not, results of a converter keep their order.
        answer |= {"refused": 1} if "rounding" in request else {}
        return Port(Fields(request), Fields(answer))
    if unit.kind is Kind.AXI_STREAM:
        request = {"a": 16, "b": 16, "register": 8, "format": 4, "level": 2, "first": 1, "spare": 1, "last": 1}
        answer = {"result": 32, "register": 8, "flags": 5, "error": 2, "spare": 1, "tlast": 1}
        return Port(
            Fields(request), Fields(answer), component.unit.chunk_bits, "bus" if component.unit.counters else ""
        )
    layouts = (component.i.payload.shape(), component.o.payload.shape())
    request_fields, answer_fields = ({name: field.width for name, field in layout} for layout in layouts)
    counters = "ports" if getattr(component, "counters", False) else ""
    return Port(Fields(request_fields), Fields(answer_fields), getattr(component, "chunk_bits", 0), counters)
