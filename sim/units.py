"""The units under test: every unit of the catalogue that gets a share of the stimulus."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from amaranth import Shape
from amaranth.lib import data

from golden.nearest import did_you_mean
from hdl.catalogue import UNITS as CATALOGUE
from hdl.catalogue import Unit
from sim.fields import Fields
from sim.kinds import bench_of
from sim.port import ALWAYS_LAST, Port
from tools.evidence import Part

__all__ = ["UNITS", "core_of", "is_behind_a_bus", "part_of", "port_of", "select", "slowest_first"]

#: Every unit that is tested, by its name.
UNITS = {name: unit for name, unit in CATALOGUE.items() if unit.effort}


def part_of(name: str) -> Part:
    """Return the part of the project that evidence about a unit covers."""
    return bench_of(UNITS[name].kind).part


def select(names: str) -> list[Unit]:
    """Return the units in a comma-separated list of names, where ``*`` matches anything; all for an empty list.

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
    """Return the names of units in starting order: the quick ones last, so that no processor stays idle at the end."""

    def cost(name: str) -> tuple[int, int, float]:
        unit = UNITS[name]
        return bench_of(unit.kind).slowness, unit.arguments.get("lanes", 0), unit.effort

    return sorted(names, key=cost, reverse=True)


def core_of(unit: Unit, component: Any) -> Any:
    """Return the core of a component, which is the component itself unless it has other ports around the core."""
    return component if unit.kind.core is unit.kind else component.unit


def is_behind_a_bus(unit: Unit) -> bool:
    """Return whether a bus leads to the unit's counters: a simulator drives it, machine code does not."""
    return unit.kind.core is not unit.kind and bool(unit.arguments.get("counters"))


def port_of(unit: Unit, component: Any) -> Port:
    """Return the layouts of the unit's streams."""
    bench, core = bench_of(unit.kind), core_of(unit, component)
    has_counters, axi_stream = getattr(core, "counters", False), {}
    if core is component:
        request, answer = (_fields(side.payload.shape()) for side in (component.i, component.o))
    else:
        carrying = [f"{side}_axis_{name}" for side in "sm" for name in ("tdata", "tuser", "tlast")]
        shapes = {name: member.shape for name, member in component.signature.members.items() if name in carrying}
        axi_stream = {name: Shape.cast(shape).width for name, shape in shapes.items()}
        last_of_answer = "last" if "last" in _fields(core.o.payload.shape()) else ALWAYS_LAST
        request, answer = {}, {}
        for name, shape in shapes.items():
            fields, last = (request, "last") if name.startswith("s") else (answer, last_of_answer)
            fields |= {last: 1} if name.endswith("tlast") else _fields(shape)
    return Port(
        Fields({bench.request_names.get(name, name): width for name, width in request.items()}),
        Fields({bench.answer_names.get(name, name): width for name, width in answer.items()}),
        getattr(core, "chunk_bits", 0),
        ("ports" if core is component else "bus") if has_counters else "",
        axi_stream,
    )


def _fields(shape: Any) -> dict[str, int]:
    """Return the bits of each field; a number that is not a struct has the empty name."""
    if isinstance(shape, data.Layout):
        return {str(name): field.width for name, field in shape}
    return {"": Shape.cast(shape).width}
