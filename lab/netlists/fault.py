"""A fault of a netlist: one change of one cell, or of its inputs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOLDS", "KINDS", "Fault"]

#: The remark on a proof that a unit with a fault passes.
HOLDS = "holds all the same"

#: The kinds of faults.
KINDS = {
    "constant": "a bit is stuck, or a constant is another one",
    "width": "the upper bits of a word are lost",
    "reset": "a register ignores its reset, or is reset to another value",
    "off by one": "a sum, a difference or an address is one more or less, a comparison takes its border along or not",
    "condition": "one side of a condition is dropped, a choice is always the same, a condition is inverted",
    "operand": "operands are swapped, or one is that of a neighbour",
    "operation": "and instead of or, a sum instead of a difference",
    "delay": "a word comes one cycle late, or early",
    "shift": "a word stands one bit too far left or right",
}


@dataclass(frozen=True)
class Fault:
    """A change.

    Parameters
    ----------
    place : str
        File below ``hdl`` and line.
    kind : str
        One of `KINDS`.
    what : str
        The change in words.
    module, cell, port : str
        The place in the netlist; the port may be an output.
    edit : tuple
        For `lab.netlists.edit`.
    ordinal : int
        The index of the cell among those of its type and line, within its module's class of modules.
    has_line : bool
        Whether the cell has a line of ``hdl``; otherwise `place` belongs to a word that the cell leads to.
    """

    place: str
    kind: str
    what: str
    module: str
    cell: str
    port: str
    edit: tuple[object, ...]
    ordinal: int
    has_line: bool = True

    @property
    def file(self) -> str:
        """Without the line."""
        return self.place.partition(":")[0]

    @property
    def group(self) -> str:
        """The key of the sample: the file, or nothing for all cells without a line."""
        return self.file if self.has_line else ""

    @property
    def name(self) -> str:
        """The whole fault in one line."""
        return f"hdl/{self.place} {self.kind}: {self.what}"

    @property
    def may_loop(self) -> bool:
        """Whether it adds a new path from one gate to another."""
        return self.edit[0] == "early"
