"""The registers of a netlist, found in the C++ that CXXRTL makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Register", "never_seen", "registers_of"]

_WORD_BITS = 32
_DECLARED = re.compile(
    r"(?:\t// (?P<tag>\\\w+): (?P<text>.*)\n)|"
    r"\t(?:wire|memory)<(?P<width>\d+)> (?P<member>\w+)(?: ?\{ ?(?P<depth>\d+)u)?"
)


@dataclass(frozen=True)
class Register:
    """A register, or a memory.

    Parameters
    ----------
    name : str
        With the names of the modules that it is in, joined by dots.
    member : str
        In the C++.
    width : int
    depth : int
        Words of a memory; 0 for a register.
    """

    name: str
    member: str
    width: int
    depth: int

    @property
    def words(self) -> int:
        """32-bit words of its value."""
        return -(-self.width // _WORD_BITS)


def registers_of(source: str, top: str) -> list[Register]:
    """Return the registers and memories of the module `top`, by name."""
    start = source.index(f"struct p_{top} : public module {{")
    body = source[start : source.index("\n};", start)]
    found, name = [], ""
    for match in _DECLARED.finditer(body):
        if match["tag"]:
            if match["tag"] == "\\hdlname":
                name = match["text"].strip().replace(" ", ".")
            continue
        # A signal without a comment belongs to the top module, such as the shell's.
        if name:
            found.append(Register(name, match["member"], int(match["width"]), int(match["depth"] or 0)))
        name = ""
    return sorted(found, key=lambda register: register.name)


def never_seen(
    registers: list[Register], zeros: NDArray[np.uint32], ones: NDArray[np.uint32]
) -> Mapping[str, tuple[list[int], list[int]]]:
    """Return, for every register that has such bits, which were never 0 and which were never 1.

    Parameters
    ----------
    registers : list of Register
    zeros, ones : uint32 arrays
        Bits that were 0, and bits that were 1, at some time: the words of all registers, in their order.
    """
    found, at = {}, 0
    for register in registers:
        was = [
            np.unpackbits(seen[at : at + register.words].view(np.uint8), bitorder="little") for seen in (zeros, ones)
        ]
        never_0, never_1 = (np.flatnonzero(bits[: register.width] == 0).tolist() for bits in was)
        if never_0 or never_1:
            found[register.name] = (never_0, never_1)
        at += register.words
    return found
