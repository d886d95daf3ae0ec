"""What the regression tests: one entry per generated module."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from golden import BF16, CB16, CBFLOAT16, FORMATS, FP16, FP32, FloatFormat
from hdl.axi_stream import AxiStreamMac
from hdl.converter import FloatConverter
from hdl.mac.multiply_accumulate import MultiplyAccumulate
from hdl.vector.vector_mac import VectorMac
from sim.fields import Fields
from sim.port import Port

__all__ = ["UNITS", "Unit", "port_of", "select"]


@dataclass(frozen=True)
class Unit:
    """A design under test.

    Parameters
    ----------
    name : str
        Name of the module, the folder and the row in the table.
    kind : str
        ``converter``, ``mac``, ``vector`` or ``axi_stream``: the testbench is ``sim.tb_<kind>``.
    build : function
        Gives the Amaranth component.
    effort : float
        Share of the full stimulus that it gets: variants of a unit that is tested fully need less.
    """

    name: str
    kind: str
    build: Callable[[], Any]
    effort: float = 1.0

    @property
    def testbench(self) -> str:
        """Module of its cocotb tests."""
        return f"sim.tb_{self.kind}"


def _converter(name: str, source: FloatFormat, destination: FloatFormat, effort: float = 1.0, **given: Any) -> Unit:
    return Unit(
        name, "converter", lambda: FloatConverter(source=source, destination=destination, **given), effort=effort
    )


def _mac(name: str, effort: float, **given: Any) -> Unit:
    return Unit(name, "mac", lambda: MultiplyAccumulate(**given), effort=effort)


def _vector(name: str, effort: float, **given: Any) -> Unit:
    return Unit(name, "vector", lambda: VectorMac(**given), effort=effort)


def _units() -> dict[str, Unit]:
    three = (CBFLOAT16, FP16, BF16)
    units = [_converter(f"{s}_to_{d}", s, d) for s, d in itertools.permutations(FORMATS, 2)]
    units += [
        _converter("float32_to_cbfloat16_stages_1", FP32, CBFLOAT16, 0.2, stages=1),
        _converter("float32_to_cbfloat16_stages_3", FP32, CBFLOAT16, 0.2, stages=3),
        _converter("cbfloat16_to_float16_stages_1", CBFLOAT16, FP16, 0.2, stages=1),
        _converter("float16_to_float32_stages_3", FP16, FP32, 0.2, stages=3),
        _converter("float32_to_bfloat16_no_flags", FP32, BF16, 0.2, flags=False),
    ]
    units += [_mac("mac", 1.0, operands=three)]
    units += [_mac(f"mac_{fmt}", 1.0, operands=(fmt,)) for fmt in FORMATS[1:]]
    # Other depths (11 are those of one format, 12 of several), each with another number of registers or bits of the
    # chunk counter; deep ones also with few registers, whose products wait for each other all the time.
    units += [
        _mac("mac_stages_1", 0.12, operands=three, stages=1, registers=2),
        _mac("mac_stages_2", 0.12, operands=three, stages=2, registers=4),
        _mac("mac_stages_3", 0.15, operands=three, stages=3),
        _mac("mac_stages_4", 0.15, operands=three, stages=4, registers=32),
        _mac("mac_stages_5", 0.15, operands=three, stages=5, chunk_bits=1),
        _mac("mac_stages_6", 0.15, operands=three, stages=6, chunk_bits=2),
        _mac("mac_stages_7", 0.2, operands=three, stages=7),
        _mac("mac_stages_8", 0.2, operands=three, stages=8, chunk_bits=6),
        _mac("mac_stages_9", 0.2, operands=three, stages=9, registers=32),
        _mac("mac_stages_10", 0.2, operands=three, stages=10, registers=8, chunk_bits=32),
        _mac("mac_stages_11", 0.2, operands=three, stages=11, registers=2),
        _mac("mac_stages_12", 0.2, operands=(CB16,), stages=12, registers=64, chunk_bits=3),
        _mac("mac_level_0", 0.5, operands=three, levels=(0,)),
        _mac("mac_level_1", 0.5, operands=three, levels=(1,)),
        _mac("mac_level_2", 0.5, operands=three, levels=(2,), chunk_bits=3),
        _mac("mac_no_flags", 0.3, operands=three, flags=False),
        Unit("mac_axi_stream", "axi_stream", lambda: AxiStreamMac(operands=three), effort=0.4),
    ]
    units += [
        _vector("vector_mac", 0.1, operands=three),
        _vector("vector_mac_lanes_8", 0.05, lanes=8, chunk_bits=4),
        _vector("vector_mac_no_flags", 0.05, flags=False),
    ]
    return {unit.name: unit for unit in units}


#: Every unit, by its name.
UNITS = _units()


def select(names: str) -> list[Unit]:
    """Return the units whose names are listed, comma-separated, ``*`` standing for anything; all for an empty list.

    Raises
    ------
    ValueError
        If a name matches no unit.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        return list(UNITS.values())
    chosen: dict[str, Unit] = {}
    for name in wanted:
        matching = {key: unit for key, unit in UNITS.items() if fnmatchcase(key, name)}
        if not matching:
            raise ValueError(f"units: got {name!r}, must be some of {', '.join(UNITS)} (* stands for anything)")
        chosen |= matching
    return [unit for key, unit in UNITS.items() if key in chosen]


def port_of(unit: Unit, component: Any) -> Port:
    """Return the layouts of the unit's streams."""
    if unit.kind == "converter":
        answer = {"bits": component.destination.width} | ({"flags": 5} if component.flags else {})
        return Port(Fields({"code": component.source.width}), Fields(answer))
    if unit.kind == "axi_stream":
        request = {"a": 16, "b": 16, "register": 8, "format": 4, "level": 2, "first": 1, "spare": 1, "last": 1}
        answer = {"result": 32, "register": 8, "flags": 5, "error": 2, "spare": 1, "tlast": 1}
        return Port(Fields(request), Fields(answer), component.unit.chunk_bits)
    layouts = (component.i.payload.shape(), component.o.payload.shape())
    request_fields, answer_fields = ({name: field.width for name, field in layout} for layout in layouts)
    return Port(Fields(request_fields), Fields(answer_fields), component.chunk_bits)
