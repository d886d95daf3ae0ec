"""From Verilog to cells of the device: a unit alone, to be counted, and the same cells in the wrapper, to be placed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.fpga.wrapper import Port, wrapper_verilog
from tools.programs import YOSYS

__all__ = ["NETLIST", "SCRIPTS", "area", "count_cells", "ports_of", "synthesise", "wrap"]

NETLIST = "wrapped.json"

_SYNTHESIS = """\
read_verilog unit.v
synth_ecp5 -noiopad -top unit
write_json unit.json
select unit
write_rtlil -selected unit.il
"""

# The unit is a black box while its surroundings are synthesised, so that nothing is optimised across its border.
_WRAPPING = """\
read_rtlil unit.il
blackbox unit
read_verilog wrapper.v
synth_ecp5 -noiopad -top wrapper
delete =unit
read_rtlil unit.il
hierarchy -check -top wrapper
flatten
clean
write_json wrapped.json
"""

#: Both scripts for Yosys.
SCRIPTS = (_SYNTHESIS, _WRAPPING)


def synthesise(verilog: str, folder: Path) -> dict[str, int]:
    """Synthesise a module called ``unit`` alone, and return how many cells of each type it takes.

    Raises
    ------
    SynthesisFailed
        If Yosys reports an error.
    """
    (folder / "unit.v").write_text(verilog, encoding="utf-8")
    _run_yosys(_SYNTHESIS, folder, "synthesis")
    return count_cells(_module(folder))


def wrap(folder: Path) -> None:
    """Put the synthesised unit of a folder into the wrapper, as a netlist for nextpnr.

    Raises
    ------
    SynthesisFailed
        If Yosys reports an error.
    """
    (folder / "wrapper.v").write_text(wrapper_verilog(ports_of(_module(folder))), encoding="utf-8")
    _run_yosys(_WRAPPING, folder, "wrapping")


def count_cells(module: Mapping[str, Any]) -> dict[str, int]:
    """Count the cells of a module in Yosys's JSON by type; ``$scopeinfo`` and its like are no hardware."""
    types = Counter(cell["type"] for cell in module["cells"].values())
    return {kind: types[kind] for kind in sorted(types) if not kind.startswith("$")}


def ports_of(module: Mapping[str, Any]) -> list[Port]:
    """Return the ports of a module in Yosys's JSON."""
    return [
        Port(name, len(port["bits"]), port["direction"] == "input")
        for name, port in module["ports"].items()
        if port["bits"]
    ]


def area(cells: Mapping[str, int]) -> dict[str, int]:
    """Summarise the cells of a unit.

    Returns
    -------
    dict
        ``LUT4``; ``CCU2C``, two LUTs with a carry; ``COMB`` = LUT4 + 2 CCU2C, in units of the device's combinational
        cells; ``FF``; ``DSP``; and every other type under its own name. Of these, PFUMX and L6MUX21 are
        multiplexers between LUTs that take no cell, and a TRELLIS_DPR16X4 is a memory of 16 words of 4 bits.
    """
    named = {"LUT4": "LUT4", "CCU2C": "CCU2C", "TRELLIS_FF": "FF", "MULT18X18D": "DSP"}
    counts = {short: cells.get(kind, 0) for kind, short in named.items()}
    others = {kind: count for kind, count in cells.items() if kind not in named}
    return counts | {"COMB": counts["LUT4"] + 2 * counts["CCU2C"]} | others


def _module(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "unit.json").read_text(encoding="utf-8"))["modules"]["unit"]


def _run_yosys(script: str, folder: Path, step: str) -> None:
    (folder / f"{step}.ys").write_text(script, encoding="utf-8")
    YOSYS.run(["-q", "-s", f"{step}.ys"], folder, f"{step}.log")
