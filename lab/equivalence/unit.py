"""Verilog of a unit as gates and registers, by way of Yosys."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.faults.gates import Gates, read
from lab.netlists.yosys import run_yosys

__all__ = ["Unit", "unit_of_verilog"]

#: Memories become registers, words become gates. No step optimises registers away.
_SCRIPT = (
    "read_verilog unit.v; hierarchy -auto-top; proc; flatten -noscopeinfo; opt_expr; opt_clean; "
    "memory -nomap; memory_map; opt_expr; opt_merge; opt_clean; dffunmap; opt_expr -full; opt_clean; "
    "techmap; opt_expr; opt_merge; opt_clean; dffunmap; opt_merge; opt_clean; write_json unit.json"
)


@dataclass(frozen=True)
class Unit:
    """A netlist, and the net of each bit of its inputs and outputs, by name."""

    gates: Gates
    inputs: dict[str, int]
    outputs: dict[str, int]


def unit_of_verilog(text: str) -> Unit:
    """Return a unit from its Verilog.

    Raises
    ------
    ToolError
        If Yosys reports an error.
    ValueError
        If a register has no value at power-up.
    """
    with TemporaryDirectory() as work:
        folder = Path(work)
        (folder / "unit.v").write_text(text, encoding="utf-8")
        run_yosys(_SCRIPT, folder)
        modules = json.loads((folder / "unit.json").read_text(encoding="utf-8"))["modules"]
    (module,) = (module for module in modules.values() if "top" in module["attributes"])
    gates = read(module)
    if gates.unset:
        raise ValueError(f"text: got register {gates.unset[0]} without a value at power-up, must have one")
    bits: dict[str, dict[str, int]] = {"input": {}, "output": {}}
    for name, port in module["ports"].items():
        nets = gates.ports[name]
        names = [name] if len(nets) == 1 else [f"{name}[{bit}]" for bit in range(len(nets))]
        bits[port["direction"]] |= dict(zip(names, nets, strict=True))
    return Unit(gates, bits["input"], bits["output"])
