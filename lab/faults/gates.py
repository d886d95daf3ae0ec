"""A netlist of two-input gates and registers, with its faults."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.netlists.design import Design, json_of, through_yosys
from lab.netlists.edit import with_faults
from lab.netlists.fault import Fault
from tools.sliced.gates import Cells, cells_of, in_order

__all__ = ["Gates", "gates_of", "lower", "read"]

#: The gate that replaces a multiplexer when its fault is dropped.
_USUAL = "$_BUF_"
_SCRIPT = (
    "read_json in.txt; hierarchy -top top; flatten -noscopeinfo; memory_map; opt_expr; opt_merge; opt_clean; "
    "dffunmap; techmap; opt_expr; opt_merge; opt_clean; write_json out.json"
)
_SELECT = re.compile(r"fault_(\d+)_select$")


@dataclass(frozen=True)
class Gates:
    """Nets 0 and 1 are the constants, then come inputs, selects and registers, then one net for each gate.

    Parameters
    ----------
    nets : int
    ports : dict of str to list
        The nets of each port, lowest bit first.
    selects : dict of int to int
        The net that selects each fault. Faults that formed a loop of gates have none, and neither do those without
        effect.
    looped : frozenset of int
        Faults that were left out because they would make such a loop.
    registers : array of (Q, D, power-up value)
    unset : list of str
        Names of registers without a value at power-up; they start with 0.
    names : list of str
        For each register, the name of the shortest word that contains it, if that word has one bit; otherwise empty.
    gates : array of (kind, A, B, S), of the nets from ``nets - len(gates)`` on
    """

    nets: int
    ports: dict[str, list[int]]
    selects: dict[int, int]
    looped: frozenset[int]
    registers: NDArray[np.uint32]
    unset: list[str]
    names: list[str]
    gates: NDArray[np.uint32]


def gates_of(design: Design, faults: Sequence[Fault]) -> Gates:
    """Return a unit with all these faults in it, each behind its select."""
    suspects = {number for number, fault in enumerate(faults) if fault.may_loop}
    return lower(with_faults(design, faults), suspects)


def lower(modules: dict[str, Any], suspects: Collection[int] = ()) -> Gates:
    """Turn modules of words into gates; of the faults in a loop of them, one of the suspects goes first."""
    return read(through_yosys(_SCRIPT, json_of(modules))["modules"]["top"], suspects)


def read(module: dict[str, Any], suspects: Collection[int] = ()) -> Gates:
    """Return a module of gates, as Yosys writes it in JSON; of the faults in a loop, one of the suspects goes first."""
    selects, registers, cell_of = {}, [], {}
    cells, others = cells_of(module)
    for name, kind, pins in others:
        if kind == "$anyconst":
            found = _SELECT.search(name)
            assert found is not None
            selects[int(found[1])] = pins["Y"]
        elif kind == "$_DFF_P_":
            registers.append((pins["Q"], pins["D"]))
            cell_of[pins["Q"]] = name
        else:
            raise ValueError(f"netlist: got cell {name} of type {kind}, must be a gate or a register")
    looped = _cut_loops(cells, {net: number for number, net in selects.items()}, suspects)
    ports = {name: port["bits"] for name, port in module["ports"].items()}
    sources = [net for name, port in module["ports"].items() if port["direction"] == "input" for net in port["bits"]]
    sources += [*selects.values(), *(q for q, _ in registers)]
    used = {pin for _, pins in cells.values() for pin in pins} | {d for _, d in registers}
    used |= {net for bits in ports.values() for net in bits}
    # A net without a driver reads 0, and so does "x".
    floating = sorted(used - set(sources) - set(cells) - {"0", "1"}, key=str)
    ordered = in_order(cells, [*sources, *floating])
    number = ordered.number
    initial = {
        net: value
        for word in module["netnames"].values()
        if "init" in word["attributes"]
        for net, value in zip(word["bits"], reversed(word["attributes"]["init"]), strict=False)
        if value in "01"
    }
    bits = {
        word["bits"][0]: name
        for name, word in module["netnames"].items()
        if len(word["bits"]) == 1 and not word["hide_name"] and "fault_" not in name
    }
    return Gates(
        nets=len(number),
        ports={name: [number[net] for net in bits] for name, bits in ports.items()},
        selects={at: number[net] for at, net in selects.items() if at not in looped},
        looped=frozenset(looped),
        registers=np.array([(number[q], number[d], initial.get(q) == "1") for q, d in registers], np.uint32).reshape(
            -1, 3
        ),
        unset=[name for q, name in cell_of.items() if q not in initial],
        names=[bits.get(q, "") for q, _ in registers],
        gates=ordered.rows,
    )


def _cut_loops(cells: Cells, fault_of: dict[int, int], suspects: Collection[int]) -> set[int]:
    """Leave out faults that make gates wait for themselves; return the faults left out."""
    looped: set[int] = set()
    while True:
        try:
            TopologicalSorter({net: pins for net, (_, pins) in cells.items()}).prepare()
        except CycleError as error:
            loop = error.args[1]
        else:
            return looped
        guilty = [net for net in loop if cells[net][0] == "$_MUX_" and cells[net][1][2] in fault_of]
        if not guilty:
            raise ValueError(f"netlist: got a loop of {len(loop) - 1} gates without a fault in it, must have none")
        selects = [cells[net][1][2] for net in guilty]
        select = min(selects, key=lambda net: (fault_of[net] not in suspects, fault_of[net]))
        looped.add(fault_of[select])
        for net, (kind, pins) in cells.items():
            if kind == "$_MUX_" and pins[2] == select:
                cells[net] = _USUAL, pins[:1]
