"""From Verilog to cells of a device: a unit alone, to be counted, and the same cells in the wrapper, to be placed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.fpga.families import Family
from lab.fpga.wrapper import Port, wrapper_verilog
from tools.programs import YOSYS

__all__ = ["NETLIST", "PINS", "area", "count_cells", "ports_of", "route_as_clock", "scripts", "synthesise", "wrap"]

NETLIST = "wrapped.json"
PINS = "pins.txt"
_RESET = "input_register_rst"  # of the wrapper

_SYNTHESIS = """\
read_verilog unit.v
{synthesis} -top unit
write_json unit.json
select unit
write_rtlil -selected unit.il
"""

# The unit is a black box during the synthesis of its surroundings, so nothing is optimised across its border.
_WRAPPING = """\
read_rtlil unit.il
blackbox unit
read_verilog wrapper.v
{synthesis} -top wrapper
delete =unit
read_rtlil unit.il
hierarchy -check -top wrapper
flatten
clean
write_json wrapped.json
"""

_FEEDS_IN = "0xFFFF"
# Cells by type: how many 4-input LUTs each one takes. A WIDEFN9 is two with a multiplexer, an ALU of Gowin one.
_LUTS = {
    "LUT4": 1, "CCU2C": 2, "CCU2": 2, "WIDEFN9": 2, "INV": 1, "LUT1": 1, "LUT2": 1, "LUT3": 1, "ALU": 1, "SB_LUT4": 1,
}  # fmt: skip
_REGISTERS = ("TRELLIS_FF", "FD1P3", "DFF", "SB_DFF")
_BLOCKS = ("MULT", "SB_MAC16")
# Constants, which take no cell.
_FREE = ("VLO", "VHI", "GND", "VCC")


def scripts(family: Family) -> tuple[str, str]:
    """Return both scripts for Yosys: for a unit alone, and for the unit in its wrapper."""
    commands = (f"{family.synthesis} {options}".strip() for options in (family.bare, family.padded))
    alone, wrapped = (
        text.format(synthesis=command) for text, command in zip((_SYNTHESIS, _WRAPPING), commands, strict=True)
    )
    return alone, wrapped


def synthesise(verilog: str, folder: Path, family: Family) -> dict[str, int]:
    """Synthesise a module called ``unit`` alone, and return the number of cells of each type.

    Raises
    ------
    SynthesisFailed
        If Yosys reports an error.
    """
    (folder / "unit.v").write_text(verilog, encoding="utf-8")
    _run_yosys(scripts(family)[0], folder, "synthesis")
    return count_cells(_module(folder))


def wrap(folder: Path, family: Family, *, fills: bool = False) -> None:
    """Put the synthesised unit of a folder into the wrapper, as a netlist for nextpnr.

    Parameters
    ----------
    folder : Path
    family : Family
    fills : bool
        Whether the unit fills half the device, so that its reset needs the network of clocks.

    Raises
    ------
    SynthesisFailed
        If Yosys reports an error.
    """
    (folder / "wrapper.v").write_text(wrapper_verilog(ports_of(_module(folder))), encoding="utf-8")
    (folder / PINS).write_text(family.constraints, encoding="utf-8")
    _run_yosys(scripts(family)[1], folder, "wrapping")
    netlist = folder / NETLIST
    if netlist.is_file() and (family.opens_carries or fills):
        whole = json.loads(netlist.read_text(encoding="utf-8"))
        if family.opens_carries:
            open_carries(whole["modules"]["wrapper"])
        if fills:
            route_as_clock(whole["modules"]["wrapper"], _RESET)
        netlist.write_text(json.dumps(whole), encoding="utf-8")


def route_as_clock(module: dict[str, Any], name: str) -> None:
    """Put a buffer of the ECP5's clock network behind a net: it then reaches all of the device as fast as a clock.

    Raises
    ------
    ValueError
        If no net has that name, or it has more than one bit.
    """
    bits = module["netnames"].get(name, {}).get("bits", [])
    if len(bits) != 1:
        raise ValueError(f"name: got {name!r}, must name a net of one bit")
    taken = (bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int))
    source, spread = bits[0], max(taken) + 1
    for cell in module["cells"].values():
        for port, nets in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                cell["connections"][port] = [spread if bit == source else bit for bit in nets]
    module["netnames"][f"{name}_as_clock"] = {"hide_name": 0, "bits": [spread], "attributes": {}}
    module["cells"][f"{name}_as_clock"] = {
        "hide_name": 0,
        "type": "DCCA",
        "parameters": {},
        "attributes": {},
        "port_directions": {"CLKI": "input", "CLKO": "output"},
        "connections": {"CLKI": [source], "CLKO": [spread]},
    }


def open_carries(module: dict[str, Any]) -> int:
    """Disconnect the carry input of the first CCU2 of every chain, and return the number of chains.

    nextpnr expects it open; Yosys has it open until ABC9 connects it to a constant (issue 5639 of Yosys). The first
    CCU2 ignores it: its lower LUT is the constant one, its upper LUT gives the carry into the chain.

    Raises
    ------
    ValueError
        If such a CCU2 uses its carry input.
    """
    carries = [cell for cell in module["cells"].values() if cell["type"] == "CCU2"]
    given = {net for cell in carries for net in cell["connections"].get("COUT", ())}
    first = [cell for cell in carries if not given.intersection(cell["connections"].get("CIN", ()))]
    for cell in first:
        cell["connections"].pop("CIN", None)
        if (lower := cell["parameters"].get("INIT0")) != _FEEDS_IN:
            raise ValueError(f"CCU2: got INIT0 {lower} at the begin of a chain, must be {_FEEDS_IN}")
    return len(first)


def count_cells(module: Mapping[str, Any]) -> dict[str, int]:
    """Count the cells of a module in Yosys's JSON by type; ``$scopeinfo`` and the like are not hardware."""
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
    """Summarise the cells of a unit, whose types differ between families.

    Returns
    -------
    dict
        ``LUT4``; ``CCU2C``, two LUTs with a carry; ``COMB``, in 4-input LUTs, two for each carry cell of Lattice;
        ``FF``; ``DSP``; and every other type under its own name. Of these, PFUMX, L6MUX21 and MUX2_LUT5 to 8 are
        multiplexers between LUTs that take no cell, and a
        TRELLIS_DPR16X4, DPR16X4 or RAM16SDP4 is a memory of 16 words of 4 bits.
    """
    others = {kind: count for kind, count in cells.items() if not kind.startswith((*_REGISTERS, *_BLOCKS, *_FREE))}

    def those(kinds: tuple[str, ...]) -> int:
        return sum(count for kind, count in cells.items() if kind.startswith(kinds))

    comb = sum(count * cells.get(kind, 0) for kind, count in _LUTS.items())
    others = {kind: count for kind, count in others.items() if kind not in _LUTS}
    luts = {kind: cells.get(kind, 0) for kind in ("LUT4", "CCU2C")}
    return luts | {"COMB": comb, "FF": those(_REGISTERS), "DSP": those(_BLOCKS)} | others


def _module(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "unit.json").read_text(encoding="utf-8"))["modules"]["unit"]


def _run_yosys(script: str, folder: Path, step: str) -> None:
    (folder / f"{step}.ys").write_text(script, encoding="utf-8")
    YOSYS.run(["-q", "-s", f"{step}.ys"], folder, f"{step}.log")
