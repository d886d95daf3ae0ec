# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Words in the order of arrival, with named state for proofs: a memory with two positions, and a queue."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["Queue", "Ring"]


class Ring(wiring.Component):
    """Hold words in the order of arrival, but do not count them: the user knows how many there are.

    Parameters
    ----------
    shape : ShapeLike
        Shape of a word.
    depth : int
        A power of two.
    **ports
        Further ports of a subclass.

    Ports
    -----
    w_data, w_en : in
        A word, and whether to write it. There must be a place for it.
    r_data : out
        The first word, from the cycle after its write.
    r_en : in
        Remove the first word.

    Attributes
    ----------
    produce, consume : Signal
        State that proofs refer to: the position of the next write, the position of the first word.
    storage : Memory
        State that proofs refer to. A reset does not clear it.
    writing, reading
        Its ports.
    """

    def __init__(self, shape: Any, depth: int, **ports: Any) -> None:
        if depth < 2 or depth & (depth - 1):
            raise ValueError(f"depth: got {depth}, must be a power of two of at least 2")
        self.depth = depth
        super().__init__({"w_data": In(shape), "w_en": In(1), "r_data": Out(shape), "r_en": In(1)} | ports)
        self.produce, self.consume = Signal(range(depth)), Signal(range(depth))
        self.storage = Memory(shape=Shape.cast(shape).width, depth=depth, init=[])
        self.writing, self.reading = self.storage.write_port(), self.storage.read_port(domain="comb")

    def _hold(self, m: Module, word: Any, first: Value) -> None:
        """Write a word where `w_en` says so, and offer the one at `first`; to remove one is left to the subclass."""
        m.submodules.storage = self.storage
        m.d.comb += [
            self.writing.addr.eq(self.produce),
            self.writing.data.eq(word),
            self.writing.en.eq(self.w_en),
            self.reading.addr.eq(first),
            self.r_data.eq(self.reading.data),
        ]
        with m.If(self.w_en):
            m.d.sync += self.produce.eq(self.produce + 1)


class Queue(Ring):
    """Hold words in the order of arrival, and count them.

    Ports
    -----
    w_data, w_en, r_data, r_en
        As of `Ring`. Without a word, `r_en` does nothing.
    r_rdy : out
        There is a first word.

    Attributes
    ----------
    level, has_word : Signal
        State that proofs refer to: the number of words, whether there is one.
    """

    def __init__(self, shape: Any, depth: int) -> None:
        super().__init__(shape, depth, r_rdy=Out(1))
        self.level, self.has_word = Signal(range(depth + 1)), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        writes, reads = self.w_en, Signal()
        m.d.comb += [self.r_rdy.eq(self.has_word), reads.eq(self.r_en & self.r_rdy)]
        self._hold(m, self.w_data, self.consume)
        with m.If(reads):
            m.d.sync += self.consume.eq(self.consume + 1)
        change = Cat(C(1, 1), ~writes).as_signed()  # 1 or -1
        # Whether a word is removed is known late, and only enables the register.
        with m.If(reads ^ writes):
            m.d.sync += self.level.eq(self.level + change)
        # Computed one cycle ahead, because the receiver's logic follows.
        m.d.sync += self.has_word.eq(writes | self.level[1:].any() | (self.level[0] & ~reads))
        return m
