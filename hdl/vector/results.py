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
    """Count the free places of the queue, if reductions have one result or two.

    Results are counted one cycle after the issue of their beat, because the same cycle would miss timing. The counter
    holds the places left, less those that beats may take before it tells; its sign replaces a comparison.

    Parameters
    ----------
    places : int
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
    reserving, spare, taken : Signal
        State that proofs refer to.
    margin : int
        What the counter `spare` is below the places left.
    """

    def __init__(self, places: int, most: int, *, looks_ahead: bool) -> None:
        super().__init__({"reserves": In(2), "leaves": In(1), "has_room": Out(1)})
        self.margin = margin = most * (3 if looks_ahead else 2)
        self.spare = Signal(range(-margin, places - margin + 1), init=places - margin)
        self.reserving, self.taken = Signal(2), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        reserving, taken = self.reserving, self.taken
        m.d.sync += [
            reserving.eq(self.reserves),
            taken.eq(self.leaves),
            self.spare.eq(self.spare + taken - reserving),
        ]
        m.d.comb += self.has_room.eq(~self.spare[-1])
        return m
