"""The faults that a netlist can have, and a sample of them from every module and of every kind."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from typing import Any

from lab.netlists.design import NOWHERE, OUTPUTS, Design
from lab.netlists.fault import Fault

__all__ = ["candidates", "choose"]

_COMPARISONS = {"$lt": "$le", "$le": "$lt", "$gt": "$ge", "$ge": "$gt"}
_SWAPPED = {**_COMPARISONS, "$sub": "$sub"}
_OTHER = {
    "$and": "$or", "$or": "$and", "$xor": "$or", "$logic_and": "$logic_or", "$logic_or": "$logic_and", "$add": "$sub",
    "$sub": "$add", "$eq": "$ne", "$ne": "$eq", "$reduce_or": "$reduce_and", "$reduce_and": "$reduce_or",
    "$reduce_bool": "$reduce_and", "$shl": "$shr", "$shr": "$shl",
}  # fmt: skip
_SIGN = {
    "$and": "&", "$or": "|", "$xor": "^", "$logic_and": "&&", "$logic_or": "||", "$add": "+", "$sub": "-", "$eq": "==",
    "$ne": "!=", "$reduce_or": "any of", "$reduce_and": "all of", "$reduce_bool": "any of", "$shl": "<<", "$shr": ">>",
    "$lt": "<", "$le": "<=", "$gt": ">", "$ge": ">=",
}  # fmt: skip
Found = tuple[str, str, str, tuple[Any, ...]]


def candidates(design: Design) -> Iterator[Fault]:
    """Yield every fault that this module knows."""
    ordinals: Counter[tuple[str, str]] = Counter()
    for module, name, cell in design.cells():
        place = design.place(module, cell)
        if not (has_line := place != NOWHERE):
            place = design.place_behind(module, cell)
        # Lanes are alike: the n-th cell of a line and type corresponds to the n-th in each other lane.
        key = (f"{place} {module}", cell["type"])
        ordinals[key] += 1
        for kind, what, port, edit in _of_cell(design, module, cell):
            yield Fault(place, kind, what, module, name, port, edit, ordinals[key] - 1, has_line)


def _of_cell(design: Design, module: str, cell: dict[str, Any]) -> Iterator[Found]:
    ports, kind = cell["connections"], cell["type"]
    ground = design.modules[module]["ports"]
    clocked = "clk" in ground or "aclk" in ground
    reset = ground.get("rst", {"bits": [None]})["bits"]
    if kind == "$mux" and ports["S"] == reset:
        yield from _reset(design, module, ports)
        return
    if kind in ("$anyconst", "$scopeinfo", "$meminit"):
        return
    (output,) = (port for port in OUTPUTS if port in ports)
    out = ports[output]
    if not out:
        return
    word = design.name(module, out)
    if kind == "$mem_v2":
        yield from _memory(cell, word)
    else:
        yield from _stuck(word, output, len(out))
        yield from _constants(word, cell)
        yield from _cell_kinds(design, module, cell, word)
    if len(out) >= 3:
        for kept in sorted({len(out) - 1, len(out) // 2, 6 if len(out) > 6 else 1}):
            yield "width", f"{word}, {len(out)} -> {kept} bits", output, ("and", (1 << kept) - 1)
        yield "shift", f"{word} one bit to the left", output, ("shift", 1)
        yield "shift", f"{word} one bit to the right", output, ("shift", -1)
    if clocked and kind != "$dff":
        yield "delay", f"{word} one cycle late", output, ("delay",)
    if kind == "$dff":
        yield "delay", f"{word} one cycle late", "Q", ("delay",)
        if not _holds(design, module, ports):
            yield "delay", f"{word} one cycle early", "Q", ("early",)
    if kind in ("$add", "$sub"):
        yield "off by one", f"{word} + 1", output, ("add", 1)
        yield "off by one", f"{word} - 1", output, ("add", -1)


def _holds(design: Design, module: str, ports: dict[str, Any]) -> bool:
    """Tell whether a register may keep its value: taking that value one cycle early would make a latch."""
    drivers = [cell["connections"] for cell in design.modules[module]["cells"].values()]
    kept, seen = [ports["D"]], 0
    while seen < len(kept):
        word, seen = kept[seen], seen + 1
        if word == ports["Q"]:
            return True
        kept += [driver[side] for driver in drivers if driver.get("Y") == word and "S" in driver for side in "AB"]
    return False


def _reset(design: Design, module: str, ports: dict[str, Any]) -> Iterator[Found]:
    registers = (cell for cell in design.modules[module]["cells"].values() if cell["type"] == "$dff")
    word = next((design.name(module, cell["connections"]["Q"]) for cell in registers
                 if cell["connections"]["D"] == ports["Y"]), "a register")  # fmt: skip
    yield "reset", f"{word} ignores the reset", "S", ("and", 0)
    for bit in sorted({0, len(ports["B"]) - 1}):
        yield "reset", f"{word} is reset to another value, bit {bit}", "B", ("xor", 1 << bit)


def _stuck(word: str, output: str, width: int) -> Iterator[Found]:
    for bit in sorted({0, width // 2, width - 1}):
        where = word if width == 1 else f"{word}, bit {bit},"
        yield "constant", f"{where} is always 0", output, ("and", (1 << width) - 1 - (1 << bit))
        yield "constant", f"{where} is always 1", output, ("or", 1 << bit)


def _constants(word: str, cell: dict[str, Any]) -> Iterator[Found]:
    kind = cell["type"]
    for port in ("A", "B"):
        bits = cell["connections"].get(port, [0])
        if not bits or not all(isinstance(bit, str) and bit in "01" for bit in bits):
            continue
        value = int("".join(reversed(bits)), 2)
        if kind in ("$eq", "$ne", "$add", "$sub", "$shl", "$shr", *_COMPARISONS):
            for other in (value + 1, value - 1):
                grows = other >> len(bits) and int(cell["parameters"].get(f"{port}_SIGNED", "0"), 2)
                if other >= 0 and not grows:
                    yield "off by one", f"{word}: {value} -> {other}", port, ("xor", value ^ other)
        elif len(bits) > 1:
            for bit in sorted({0, len(bits) - 1}):
                yield "constant", f"{word}: {value:#x} -> {value ^ 1 << bit:#x}", port, ("xor", 1 << bit)


def _memory(cell: dict[str, Any], word: str) -> Iterator[Found]:
    ports = cell["connections"]
    name = cell["parameters"]["MEMID"].lstrip("\\").strip()
    for port, said in (("RD_ADDR", "is read"), ("WR_ADDR", "is written")):
        width = len(ports[port])
        for bit in range(width):
            yield "width", f"{name} {said} without address bit {bit}", port, ("and", (1 << width) - 1 - (1 << bit))
        yield "off by one", f"{name} {said} at the neighbour", port, ("xor", 1)
        yield "off by one", f"{name} {said} one further", port, ("add", 1)
        yield "delay", f"{name} {said} where it was a cycle ago", port, ("delay",)
    width = len(ports["WR_EN"])
    yield "condition", f"{name} is written in every cycle", "WR_EN", ("or", (1 << width) - 1)
    yield "condition", f"{name} is never written", "WR_EN", ("and", 0)
    yield "delay", f"{name} is written a cycle late", "WR_EN", ("delay",)
    width = len(ports["WR_DATA"])
    for bit in sorted({0, width // 3, 2 * width // 3, width - 1}):
        yield "constant", f"{name}, bit {bit}, keeps 0", "WR_DATA", ("and", (1 << width) - 1 - (1 << bit))
        yield "constant", f"{name}, bit {bit}, keeps 1", "WR_DATA", ("or", 1 << bit)


def _cell_kinds(design: Design, module: str, cell: dict[str, Any], word: str) -> Iterator[Found]:
    ports, kind = cell["connections"], cell["type"]
    if kind == "$mux":
        yield "condition", f"{word} is never the choice of a true condition", "S", ("and", 0)
        yield "condition", f"{word} is always the choice of a true condition", "S", ("or", 1)
        yield "operand", f"{word}: choices swapped", "S", ("xor", 1)
    if kind in ("$and", "$or", "$logic_and", "$logic_or"):
        identity = "or" if "and" in kind else "and"
        for port in ("A", "B"):
            width = len(ports[port])
            dropped = design.name(module, ports[port])
            mask = (1 << width) - 1 if identity == "or" else 0
            yield "condition", f"{word} without {dropped}", port, (identity, mask)
            if width == 1:
                yield "condition", f"{word} with {dropped} inverted", port, ("xor", 1)
    if kind in ("$not", "$logic_not") and len(ports["Y"]) == 1:
        yield "condition", f"{word}: not inverted", "Y", ("xor", 1)
    if kind in _COMPARISONS:
        other = _COMPARISONS[kind]
        yield "off by one", f"{word}: {_SIGN[kind]} -> {_SIGN[other]}", "Y", ("clone", (("type", other),), ())
    if kind in _SWAPPED and ports["A"] != ports["B"]:
        yield "operand", f"{word}: sides of {_SIGN[kind]} swapped", "Y", ("clone", (), (("A", "B"), ("B", "A")))
    if kind in _OTHER:
        other = _OTHER[kind]
        said = f"{word}: {_SIGN[kind]} -> {_SIGN[other]}"
        yield "operation", said, "Y", ("clone", (("type", other),), ())
    if kind in ("$and", "$or", "$mux", "$add", "$sub", "$eq", "$mul"):
        yield from _neighbours(design, module, cell, word)


def _neighbours(design: Design, module: str, cell: dict[str, Any], word: str) -> Iterator[Found]:
    """Yield an operand replaced by a register of the same width in the same module, which cannot form a loop."""
    words = {
        tuple(other["connections"]["Q"]): None
        for other in design.modules[module]["cells"].values()
        if other["type"] == "$dff"
    }
    for port in ("A", "B"):
        bits = cell["connections"][port]
        fitting = [nets for nets in words if len(nets) == len(bits) and list(nets) != bits]
        if not fitting or not any(isinstance(net, int) for net in bits):
            continue
        # Nearby registers are the likelier mistakes: numbers of nets grow along the source.
        first = next(net for net in bits if isinstance(net, int))
        nets = min(fitting, key=lambda nets: (abs(nets[0] - first), nets))
        said = f"{word}: {design.name(module, list(nets))} instead of {design.name(module, bits)}"
        yield "operand", said, port, ("net", *nets)


def choose(found: Collection[Fault], count: int, seed: int) -> list[Fault]:
    """Return a number of the faults: each group and kind in turn, at random within them."""
    chance = random.Random(seed)
    groups: defaultdict[tuple[str, str], list[Fault]] = defaultdict(list)
    for fault in found:
        groups[fault.group, fault.kind].append(fault)
    for group in groups.values():
        chance.shuffle(group)
    order = sorted(groups)
    chosen: list[Fault] = []
    while len(chosen) < min(count, len(found)):
        for key in order:
            if groups[key] and len(chosen) < count:
                chosen.append(groups[key].pop())
    return chosen
