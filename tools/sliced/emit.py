"""From the Verilog of a unit to gates, and from gates to C++ in which every net is a plane of 512 bits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from tools.programs import YOSYS

__all__ = ["Gates", "gates_of", "planes"]

#: What a gate of each kind computes from its inputs A, B and S.
_OPERATIONS = {
    "$_NOT_": "~{A}",
    "$_AND_": "{A} & {B}",
    "$_OR_": "{A} | {B}",
    "$_XOR_": "{A} ^ {B}",
    "$_XNOR_": "~({A} ^ {B})",
    "$_ANDNOT_": "{A} & ~{B}",
    "$_ORNOT_": "{A} | ~{B}",
    "$_MUX_": "({S} & {B}) | (~{S} & {A})",
}

# A register whose enable is tied is one that hands on its input in every cycle: in a pipeline without feedback, fed the
# same input for ever, a wire. Any other cell with a memory stays and is refused.
_REGISTERS_TO_WIRES = """
module \\$dff (CLK, D, Q);
  parameter WIDTH = 0;
  parameter CLK_POLARITY = 1'b1;
  input CLK;
  input [WIDTH-1:0] D;
  output [WIDTH-1:0] Q;
  assign Q = D;
endmodule
"""


@dataclass(frozen=True)
class Gates:
    """A netlist of gates.

    Parameters
    ----------
    ports : dict of str to list
        The nets of each port, lowest bit first: a number, or the constant "0" or "1".
    cells : dict of int to (kind, inputs)
        The gate that drives a net, with the net of each of its inputs; drivers before what they drive.
    """

    ports: dict[str, list[int | str]]
    cells: dict[int, tuple[str, dict[str, int | str]]]


def gates_of(verilog: str, top: str, tied: Mapping[str, str], folder: Path) -> Gates:
    """Have Yosys turn a module into gates, its registers into wires.

    Parameters
    ----------
    verilog : str
    top : str
        Name of the module.
    tied : mapping of str to str
        Inputs that have one value throughout, as Verilog writes it: ``2'd1``.
    folder : Path
        Where Yosys reads, writes and logs; it is made unless it is there.

    Raises
    ------
    tools.errors.ToolMissing, tools.errors.ToolFailed
        If Yosys is missing or fails.
    ValueError
        If a cell is left that is no gate, or if gates form a loop, as they do where a register does not take its
        input in every cycle.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.v").write_text(verilog, encoding="utf-8")
    (folder / "registers.v").write_text(_REGISTERS_TO_WIRES, encoding="utf-8")
    ties = [f"delete -input w:{name}; connect -set {name} {value}" for name, value in tied.items()]
    script = [
        f"read_verilog unit.v; hierarchy -top {top}; proc; flatten -noscopeinfo; cd {top}; setattr -unset init w:*",
        *ties,
        # Enables and resets become constants and vanish. `opt` would pull conditions into registers of other kinds.
        "opt_expr; opt_clean; techmap -map registers.v; opt_expr; opt_clean; techmap; opt",
        "abc -g AND,OR,XOR,ANDNOT,ORNOT,XNOR,MUX; opt_clean; write_json gates.json",
    ]
    YOSYS.run(["-q", "-p", "; ".join(script)], folder, "yosys.log")
    return _read(json.loads((folder / "gates.json").read_text(encoding="utf-8"))["modules"][top])


def _read(module: dict[str, Any]) -> Gates:
    cells = {}
    for name, cell in module["cells"].items():
        if cell["type"] not in _OPERATIONS:
            raise ValueError(f"verilog: got cell {name} of type {cell['type']}, must be a pipeline without feedback")
        inputs = {pin: nets[0] for pin, nets in cell["connections"].items() if pin != "Y"}
        cells[cell["connections"]["Y"][0]] = cell["type"], inputs
    ports = {name: port["bits"] for name, port in module["ports"].items()}
    try:
        order = [*TopologicalSorter({net: inputs.values() for net, (_, inputs) in cells.items()}).static_order()]
    except CycleError as loop:
        raise ValueError(f"verilog: got a loop of {len(loop.args[1]) - 1} gates, must be without feedback") from None
    return Gates(ports, {net: cells[net] for net in order if net in cells})


def planes(gates: Gates, inputs: Mapping[str, int], outputs: Mapping[str, list[int | str]]) -> str:
    """Return the C++ of a function that evaluates the gates on planes: bit k of each belongs to vector k.

    Parameters
    ----------
    gates : Gates
    inputs : mapping of str to int
        Input ports, in the order in which their planes lie in the argument, and how many planes each has there.
    outputs : mapping of str to list
        Nets of every output, in the order in which their planes lie in the result: 32 planes for each.

    Raises
    ------
    ValueError
        If a gate or an output depends on a net that is neither among `inputs` nor driven by a gate.
    """
    names: dict[int | str, str] = {"0": "zero", "1": "~zero"}
    first = 0
    for port, count in inputs.items():
        names |= {net: f"in[{first + bit}]" for bit, net in enumerate(gates.ports[port])}
        first += count
    lines = ["static void evaluate(const plane *in, plane *out) {", "  const plane zero = {};"]
    used = [*(net for _, pins in gates.cells.values() for net in pins.values()), *itertools.chain(*outputs.values())]
    if strays := set(used) - names.keys() - gates.cells.keys():
        raise ValueError(
            f"inputs: got {', '.join(inputs)}, but {len(strays)} nets depend on others or on nothing: "
            "tie the inputs that are no port of the unit's signature, such as rst"
        )
    for net, (kind, pins) in gates.cells.items():
        operation = _OPERATIONS[kind].format(**{pin: names[source] for pin, source in pins.items()})
        names[net] = f"n{net}"
        lines.append(f"  const plane n{net} = {operation};")
    for index, nets in enumerate(outputs.values()):
        lines += [f"  out[{32 * index + bit}] = {names[net]};" for bit, net in enumerate(nets)]
        lines += [f"  out[{32 * index + bit}] = zero;" for bit in range(len(nets), 32)]
    return "\n".join([*lines, "}", ""])
