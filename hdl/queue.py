# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""A queue of words with named state for proofs."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Queue"]


class Queue(wiring.Component):
    """Hold words in the order of arrival. The first one is offered from the cycle after its write.

    Parameters
    ----------
    shape : ShapeLike
        Shape of a word.
    depth : int
        A power of two.

    Ports
    -----
    w_data, w_en : in
        A word, and whether to write it. There must be a place for it.
    r_data, r_rdy : out
        The first word, and whether there is one.
    r_en : in
        Remove the first word.

    Attributes
    ----------
    level, produce, consume, has_word : Signal
        State that proofs refer to: the number of words, the position of the next write, the position of the first word,
        whether there is one.
    storage : Memory
        State that proofs refer to. A reset does not clear it.
    writing, reading
        Its ports.
    """

    def __init__(self, shape: Any, depth: int) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"depth: got {depth}, must be a power of two of at least 2")
        self.depth = depth
        super().__init__({
            "w_data": In(shape), "w_en": In(1), "r_data": Out(shape), "r_rdy": Out(1), "r_en": In(1),
        })  # fmt: skip
        self.level, self.has_word = Signal(range(depth + 1)), Signal()
        self.produce, self.consume = Signal(range(depth)), Signal(range(depth))
        self.storage = Memory(shape=Shape.cast(shape).width, depth=depth, init=[])
        self.writing, self.reading = self.storage.write_port(), self.storage.read_port(domain="comb")

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.storage = self.storage
        writes, reads = self.w_en, Signal()
        m.d.comb += [
            self.r_rdy.eq(self.has_word),
            reads.eq(self.r_en & self.r_rdy),
            self.writing.addr.eq(self.produce),
            self.writing.data.eq(self.w_data),
            self.writing.en.eq(writes),
            self.reading.addr.eq(self.consume),
            self.r_data.eq(self.reading.data),
        ]
        with m.If(writes):
            m.d.sync += self.produce.eq(self.produce + 1)
        with m.If(reads):
            m.d.sync += self.consume.eq(self.consume + 1)
        change = Cat(C(1, 1), ~writes).as_signed()  # 1 or -1
        # Whether a word is removed is known late, and only enables the register.
        with m.If(reads ^ writes):
            m.d.sync += self.level.eq(self.level + change)
        # Computed one cycle ahead, because the receiver's logic follows.
        m.d.sync += self.has_word.eq(writes | self.level[1:].any() | (self.level[0] & ~reads))
        return m
