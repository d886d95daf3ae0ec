"""PTX text, read into kernels of basic blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

__all__ = ["BITS", "Instruction", "Kernel", "Predicate", "kernels_of"]

#: Widths of the types of registers and instructions, in bits; a predicate has one.
BITS = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    **{"f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32},
}


class Predicate(NamedTuple):
    """Which threads an instruction is for: those whose register is true, or false."""

    register: str
    wanted: bool


class Instruction(NamedTuple):
    """One instruction.

    Parameters
    ----------
    name : tuple of str
        Its parts, such as ``("setp", "lt", "s32")``.
    operands : tuple of str
        As they are written; several registers in braces are one operand.
    predicate : Predicate, optional
    line : str
        What the text says, for messages.
    """

    name: tuple[str, ...]
    operands: tuple[str, ...]
    predicate: Predicate | None
    line: str


@dataclass(frozen=True)
class Kernel:
    """The parts of one entry of a module.

    Parameters
    ----------
    name : str
    registers : dict of str to str
        The type of each register.
    symbols : dict of str to tuple of str and int
        For each name that has an address its state space, ``"param"``, ``"shared"`` or ``"local"``, and the place.
    sizes : dict of str to int
        Bytes of each state space.
    blocks : list of list of Instruction
        Control enters a block at its start alone and leaves it at its end alone. A barrier ends a block.
    labels : dict of str to int
        The block that begins at each label.
    """

    name: str
    registers: dict[str, str]
    symbols: dict[str, tuple[str, int]]
    sizes: dict[str, int]
    blocks: list[list[Instruction]]
    labels: dict[str, int]


_ENTRY = re.compile(r"\.entry (\w+)\(\s*\.param \.align \d+ \.b8 (\w+)\[(\d+)\]\s*\)([^{]*)\n\{\n(.*?)\n\}\n", re.S)
_RANGE = re.compile(r"\.reg \.(\w+)\s+(%\w+)<(\d+)>;")
_REGISTER = re.compile(r"\.reg \.(\w+)\s+(%?\w+);")
_ARRAY = re.compile(r"\.(shared|local) \.align (\d+) \.b8\s+(\w+)\[(\d+)\];")
_LABEL = re.compile(r"(\$?\w+):")
_INSTRUCTION = re.compile(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)(?:\s+(.+?))?;")
_OPERAND = re.compile(r"\s*(\{[^}]*\}|\[[^\]]*\]|[^,]+?)\s*(?:,|$)")
_ENDS_BLOCK = {"bra", "ret", "bar"}


def kernels_of(text: str) -> dict[str, Kernel]:
    """Return the kernels of a module by name.

    Raises
    ------
    ValueError
        If a line is none that this reader knows.
    """
    found = {entry[1]: _kernel(*entry.groups()) for entry in _ENTRY.finditer(text)}
    if len(found) != text.count(".entry "):
        raise ValueError(f"an entry of {', '.join(found) or 'the module'} or beside it cannot be read")
    return found


@cache  # a fault changes one kernel of a module that has many
def _kernel(name: str, parameter: str, size: str, _: str, body: str) -> Kernel:
    kernel = Kernel(name, {}, {parameter: ("param", 0)}, {"param": int(size), "shared": 0, "local": 0}, [[]], {})
    # Several statements may share a line, and a scope is a line or more of an inlined assembly.
    for line in re.sub(r"//[^\n]*", "", body).split("\n"):
        rest = line.strip()
        while rest:
            rest = _read(kernel, rest).strip("{} \t")
    return kernel


def _read(kernel: Kernel, text: str) -> str:
    """Take the first statement of a line into a kernel, and return what follows it."""
    if found := _RANGE.match(text):
        kernel.registers.update({f"{found[2]}{i}": found[1] for i in range(int(found[3]))})
    elif found := _REGISTER.match(text):
        if kernel.registers.setdefault(found[2], found[1]) != found[1]:
            raise ValueError(f"{kernel.name}: a register of two types: {text}")
    elif found := _ARRAY.match(text):
        at = -(-kernel.sizes[found[1]] // int(found[2])) * int(found[2])
        kernel.symbols[found[3]] = found[1], at
        kernel.sizes[found[1]] = at + int(found[4])
    elif found := _LABEL.match(text):
        if kernel.blocks[-1]:
            kernel.blocks.append([])
        kernel.labels[found[1]] = len(kernel.blocks) - 1
    elif (found := _INSTRUCTION.match(text)) and found[3]:
        name = tuple(found[3].split("."))
        predicate = Predicate(found[2], not found[1]) if found[2] else None
        operands = tuple(_OPERAND.findall(found[4] or ""))
        kernel.blocks[-1].append(Instruction(name, operands, predicate, found[0]))
        if name[0] in _ENDS_BLOCK:
            kernel.blocks.append([])
    elif text.startswith(("{", "}")):
        return text[1:]
    elif found := re.match(r"\.(loc|pragma)[^;\n]*;?", text):
        pass
    else:
        raise ValueError(f"{kernel.name}: got {text!r}, which is no statement that this reader knows")
    return text[found.end() :]
