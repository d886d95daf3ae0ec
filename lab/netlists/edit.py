"""Put faults into modules of cells: many at once, each with its select, or permanently."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from lab.netlists.design import OUTPUTS, Design
from lab.netlists.fault import Fault

__all__ = ["select_name", "with_faults"]

Bits = list[Any]


def select_name(number: int) -> str:
    """Return the name of the cell that selects the fault of that number."""
    return f"fault_{number}_select"


def with_faults(design: Design, faults: Sequence[Fault], *, selected: bool = True) -> dict[str, Any]:
    """Return the modules with faults in them.

    Parameters
    ----------
    design : Design
    faults : sequence of Fault
    selected : bool
        Each fault is active while an unknown constant, the cell `select_name`, is 1; otherwise it is permanent.
    """
    modules = copy.deepcopy(design.modules)
    editors: dict[str, _Editor] = {}
    for number, fault in enumerate(faults):
        if fault.module not in editors:
            editors[fault.module] = _Editor(modules[fault.module])
        editors[fault.module].put(number, fault, selected)
    return modules


class _Editor:
    """Edits one module. Each fault has its select, so edits of one cell can be stacked."""

    def __init__(self, module: dict[str, Any]) -> None:
        self._module = module
        nets = [net for word in module["netnames"].values() for net in word["bits"]]
        nets += [net for cell in module["cells"].values() for bits in cell["connections"].values() for net in bits]
        self._next = 1 + max((net for net in nets if isinstance(net, int)), default=1)
        self._prefix, self._count = "", 0
        self._select: Any = "1"

    def put(self, number: int, fault: Fault, selected: bool) -> None:
        self._prefix, self._count = f"fault_{number}", 0
        self._select = "1"
        if selected:
            (self._select,) = self._fresh(1)
            self._module["cells"][select_name(number)] = _cell("$anyconst", {"WIDTH": 1}, {"Y": [self._select]}, "Y")
        cell = self._module["cells"][fault.cell]
        edit: Any = fault.edit
        match edit:
            case ("clone", changes, connections):
                self._clone(cell, fault.port, dict(changes), dict(connections))
            case _:
                self._change(cell, fault.port, edit)

    # -- edits of a word

    def _change(self, cell: dict[str, Any], port: str, edit: tuple[Any, ...]) -> None:
        bits = cell["connections"][port]
        if port in OUTPUTS:
            inner = self._fresh(len(bits))
            cell["connections"][port] = inner
            if port == "Q":
                self._move_start(bits, inner)
            self._choose(inner, self._variant(cell, inner, edit), bits)
            return
        if edit[0] == "xor" and edit[1] >> len(bits):
            bits = [*bits, "0"]
            cell["parameters"][f"{port}_WIDTH"] = f"{len(bits):032b}"
        outer = self._fresh(len(bits))
        self._choose(bits, self._variant(cell, bits, edit), outer)
        cell["connections"][port] = outer

    def _move_start(self, outer: Bits, inner: Bits) -> None:
        """Move the power-up value to the register itself, from the multiplexer that now follows it."""
        start = ["x"] * len(outer)
        for word in self._module["netnames"].values():
            held = list(reversed(word["attributes"].get("init", "")))
            for at, (net, value) in enumerate(zip(word["bits"], held, strict=False)):
                if net in outer:
                    start[outer.index(net)] = value if value in "01" else start[outer.index(net)]
                    held[at] = "x"
            if held:
                word["attributes"]["init"] = "".join(reversed(held))
        if set(start) != {"x"}:
            name = {"hide_name": 0, "bits": inner, "attributes": {"init": "".join(reversed(start))}}
            self._module["netnames"][f"{self._prefix}_register"] = name

    def _variant(self, cell: dict[str, Any], bits: Bits, edit: tuple[Any, ...]) -> Bits:
        width = len(bits)
        match edit:
            case ("and" | "or" | "xor", mask):
                return self._binary(f"${edit[0]}", bits, _constant(mask, width))
            case ("add", amount):
                return self._binary("$add", bits, _constant(amount % (1 << width), width))
            case ("shift", 1):
                return ["0", *bits[:-1]]
            case ("shift", -1):
                return [*bits[1:], "0"]
            case ("delay",):
                late = self._fresh(width)
                clock = self._module["ports"]["clk"]["bits"] if "clk" in self._module["ports"] else None
                ports = {"CLK": clock or self._module["ports"]["aclk"]["bits"], "D": bits, "Q": late}
                self._add("$dff", {"WIDTH": width, "CLK_POLARITY": 1}, ports, "Q")
                self._module["netnames"][f"{self._prefix}_late"] = {
                    "hide_name": 0,
                    "bits": late,
                    "attributes": {"init": "0" * width},
                }
                return late
            case ("early",):
                return list(cell["connections"]["D"])
            case ("net", *nets):
                return nets
        raise ValueError(f"edit: got {edit!r}, must be one of those above")

    def _clone(self, cell: dict[str, Any], port: str, changes: dict[str, Any], connections: dict[str, str]) -> None:
        bits = cell["connections"][port]
        inner, other = self._fresh(len(bits)), self._fresh(len(bits))
        twin = copy.deepcopy(cell)
        for side, from_side in connections.items():
            twin["connections"][side] = list(cell["connections"][from_side])
            for parameter in ("WIDTH", "SIGNED"):
                if f"{side}_{parameter}" in cell["parameters"]:
                    twin["parameters"][f"{side}_{parameter}"] = cell["parameters"][f"{from_side}_{parameter}"]
        twin |= changes
        twin["connections"][port] = other
        self._module["cells"][self._name()] = twin
        cell["connections"][port] = inner
        self._choose(inner, other, bits)

    # -- cells

    def _choose(self, usual: Bits, faulty: Bits, out: Bits) -> None:
        ports = {"A": usual, "B": faulty, "S": [self._select], "Y": out}
        self._add("$mux", {"WIDTH": len(out)}, ports, "Y")

    def _binary(self, kind: str, a: Bits, b: Bits) -> Bits:
        out, width = self._fresh(len(a)), len(a)
        sizes = {"A_WIDTH": width, "B_WIDTH": width, "Y_WIDTH": width, "A_SIGNED": 0, "B_SIGNED": 0}
        self._add(kind, sizes, {"A": a, "B": b, "Y": out}, "Y")
        return out

    def _add(self, kind: str, parameters: dict[str, int], ports: dict[str, Bits], output: str) -> None:
        self._module["cells"][self._name()] = _cell(kind, parameters, ports, output)

    def _fresh(self, width: int) -> Bits:
        bits = list(range(self._next, self._next + width))
        self._next += width
        return bits

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}_{self._count}"


def _cell(kind: str, parameters: dict[str, int], ports: dict[str, Bits], output: str) -> dict[str, Any]:
    return {
        "hide_name": 0,
        "type": kind,
        "parameters": {name: f"{value:032b}" for name, value in parameters.items()},
        "attributes": {},
        "port_directions": {port: "output" if port == output else "input" for port in ports},
        "connections": dict(ports),
    }


def _constant(value: int, width: int) -> Bits:
    return [str(value >> bit & 1) for bit in range(width)]
