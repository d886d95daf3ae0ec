"""Results of pairs of lanes, and places in the queue for reductions in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.parameters import WORD_WIDTH
from hdl.mac.ports import Error
from hdl.vector.parameters import VectorParameters

__all__ = ["Places", "pack_pairs"]


def pack_pairs(
    m: Module, parameters: VectorParameters, operation: Any, entry: Any, codes: Sequence[Value], flags: Sequence[Any]
) -> None:
    """Drive the words of a result: one for each pair of lanes.

    Parameters
    ----------
    m : Module
    parameters : VectorParameters
    operation : vector_operation_layout
        The operation of these results.
    entry : vector_result_layout
        The entry to drive.
    codes, flags : sequence of Value
        Codes and flags of every lane.
    """
    m.d.comb += [
        entry.error.eq(operation.error),
        # The row of the beat, even if the result comes from the row after it.
        entry.register.eq(Cat(operation.register[0] & ~operation.is_second, operation.register[1:])),
    ]
    with m.If(operation.error == Error.NONE):
        m.d.comb += entry.part.eq(operation.is_second)
        for even in range(0, parameters.lanes, 2):
            wide, narrow = codes[even], codes[even + 1]
            m.d.comb += entry.result[even // 2].eq(
                Cat(wide[:WORD_WIDTH], Mux(operation.wide, wide[WORD_WIDTH:], narrow))
                if len(wide) > WORD_WIDTH
                else wide | (narrow << WORD_WIDTH)
            )
            if parameters.flags:
                m.d.comb += entry.flags[even].eq(flags[even])
                with m.If(~operation.wide):
                    m.d.comb += entry.flags[even + 1].eq(flags[even + 1])


class Places(wiring.Component):
    """Count the taken and reserved places of the queue, if reductions have one result or two.

    Parameters
    ----------
    places : int
        A power of two.
    most : int
        Places that a beat may take: 1 or 2.
    looks_ahead : bool
        Whether the answer is for the beat after the one that is issued now.

    Ports
    -----
    reserves : unsigned(2), in
        Places for the results of a beat that is issued.
    leaves : in
        A result is accepted.
    has_room : out
        There are places for any further beat; for any two with `looks_ahead`.

    Attributes
    ----------
    reserved, taken : Signal
        State that proofs refer to.
    """

    def __init__(self, places: int, most: int, *, looks_ahead: bool) -> None:
        super().__init__({"reserves": In(2), "leaves": In(1), "has_room": Out(1)})
        self._margin = most * (2 if looks_ahead else 1)
        self.reserved, self.taken = Signal(range(places + 1)), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reserved, taken = self.reserved, self.taken
        m.d.sync += [taken.eq(self.leaves), reserved.eq(reserved + self.reserves - taken)]
        # A power of two: the top bit means that all places are taken, ones below it that too few are left.
        low = (self._margin - 2).bit_length()
        is_full = reserved[-1] | (reserved[low:-1].all() if self._margin > 1 else 0)
        m.d.comb += self.has_room.eq(~is_full)
        return m
