"""One round of the generator Philox4x32, and the key of the next round. Combinational."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named

__all__ = ["KEY_STEPS", "MULTIPLIERS", "WORD_BITS", "PhiloxRound", "state_layout"]

WORD_BITS = 32
#: Multipliers of words 0 and 2, and increments of the key's words between rounds.
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def state_layout() -> data.StructLayout:
    """Return the layout of a counter of four words and a key of two, the first word of each in the lowest bits."""
    return data.StructLayout({"counter": data.ArrayLayout(WORD_BITS, 4), "key": data.ArrayLayout(WORD_BITS, 2)})


class PhiloxRound(wiring.Component):
    """Multiply two words by constants, and mix the halves of the products with the other words and the key.

    ::

        words 0 and 2 times their multipliers    [ high | low ]
        result    high of 2 ^ word 1 ^ key 0,  low of 2,  high of 0 ^ word 3 ^ key 1,  low of 0

    Ports
    -----
    i : state_layout(), in
    o : state_layout(), out
    """

    def __init__(self) -> None:
        super().__init__({"i": In(state_layout()), "o": Out(state_layout())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words, key = self.i.counter, self.i.key
        products = [named(m, f"product_{at}", words[at] * by) for at, by in zip((0, 2), MULTIPLIERS, strict=True)]
        (low_0, high_0), (low_2, high_2) = ((each[:WORD_BITS], each[WORD_BITS:]) for each in products)
        mixed = (high_2 ^ words[1] ^ key[0], low_2, high_0 ^ words[3] ^ key[1], low_0)
        m.d.comb += [self.o.counter[at].eq(word) for at, word in enumerate(mixed)]
        m.d.comb += [self.o.key[at].eq(key[at] + step) for at, step in enumerate(KEY_STEPS)]
        return m
