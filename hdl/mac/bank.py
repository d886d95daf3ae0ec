# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A bank of registers for accumulators, in units with any number of lanes."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.mac.parameters import MacParameters

__all__ = ["Bank", "bank_row"]


class Bank(wiring.Component):
    """Store words, initially all zeros. A written word can be read from the next cycle on.

    Parameters
    ----------
    width : int
        Bits of a word.
    depth : int

    Ports
    -----
    read_row, write_row : in
    word : unsigned(width), in
    writes : in
        The word is written at the clock edge.
    o : unsigned(width), out
        The word in `read_row`.

    Attributes
    ----------
    memory : Memory
        State that proofs refer to. A reset does not clear it.
    reading, writing
        Its ports.
    """

    def __init__(self, width: int, depth: int) -> None:
        index = (depth - 1).bit_length()
        super().__init__({
            "read_row": In(index), "write_row": In(index), "word": In(width), "writes": In(1), "o": Out(width),
        })  # fmt: skip
        self.memory = Memory(shape=width, depth=depth, init=[])
        self.writing, self.reading = self.memory.write_port(), self.memory.read_port(domain="comb")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = self.memory
        m.d.comb += [
            self.reading.addr.eq(self.read_row),
            self.o.eq(self.reading.data),
            self.writing.addr.eq(self.write_row),
            self.writing.data.eq(self.word),
            self.writing.en.eq(self.writes),
        ]
        return m


def bank_row(parameters: MacParameters, operation: Any, register: Value) -> Value:
    """Return the row of an operation's accumulator: totals first, then partial sums if there are chunks."""
    return Cat(register, operation.partial) if parameters.has_chunks else register
