"""Places in the queue of results for reductions in flight."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Places"]


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
