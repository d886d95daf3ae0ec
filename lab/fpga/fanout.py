"""Trees of buffers behind inputs and flip-flops: ABC sees neither, and buffers only its own gates."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from lab.fpga.liberty import Cell, Library

__all__ = ["MOST", "spread"]

#: The most pins that an input or a flip-flop drives; ABC has the same limit for gates.
MOST = 12


def spread(module: dict[str, Any], library: Library, most: int = MOST) -> int:
    """Put trees of buffers behind the inputs and flip-flops that drive too many pins, and return their number.

    Clocks are left alone: a layout adds their tree.

    Parameters
    ----------
    module : dict
        A mapped module in Yosys's JSON, which is changed.
    library : Library
    most : int
        The most pins of a net.

    Raises
    ------
    ValueError
        If a tree is needed and the library has no buffer.
    """
    sinks = defaultdict[int, list[tuple[dict[str, Any], str]]](list)
    starts = {bit for port in module["ports"].values() if port["direction"] == "input" for bit in port["bits"]}
    clocks = set()
    for cell in module["cells"].values():
        if cell["type"] not in library.cells:
            continue
        kind = library.cells[cell["type"]]
        for name, (net, *_) in cell["connections"].items():
            if kind.pins[name].is_output:
                starts |= {net} if kind.is_flip_flop else set()
            elif isinstance(net, int):
                sinks[net].append((cell, name))
                clocks |= {net} if name in kind.clocks else set()
    wide = sorted(net for net in starts - clocks if isinstance(net, int) and len(sinks[net]) > most)
    if not wide:
        return 0
    buffer = _buffer(library, most)
    (given,) = (name for name, pin in buffer.pins.items() if not pin.is_output)
    (made,) = (name for name, pin in buffer.pins.items() if pin.is_output)
    free, count = 1 + max(bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int)), 0
    for net in wide:
        driven = sinks[net]
        while len(driven) > most:
            groups = [driven[at : at + most] for at in range(0, len(driven), most)]
            driven = []
            for group in groups:
                cell = {"type": buffer.name, "connections": {given: [net], made: [free]}}
                module["cells"][f"$buffer${count}"] = cell
                for sink, name in group:
                    sink["connections"][name] = [free]
                driven.append((cell, given))
                free, count = free + 1, count + 1
    return count


def _buffer(library: Library, most: int) -> Cell:
    """Return the buffer that spends the least area and time on driving `most` pins."""
    load = most * max(pin.capacitance for pin in library.nand2.pins.values())
    costs = {cell.name: cell.area * cell.delay(load) for cell in library.cells.values() if cell.is_buffer}
    if not costs:
        raise ValueError(f"liberty: got {library.name} without a buffer, must have one")
    return library.cells[min(costs, key=lambda name: costs[name])]
