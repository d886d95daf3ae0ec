"""Hazards: waiting for an accumulator that an operation in flight has yet to write, products and promotions alike."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["WaitsBehindRank"]

#: Places whose hazards are ORed before they are registered: as many as take no further level of logic.
_TOGETHER = 3


class WaitsBehindRank(wiring.Component):
    """Tell whether what a rank holds is too close to what was issued before it, one bit for each place where that is.

    On its way into the rank it is compared with every operation one place ahead; while it waits there, the bits move on
    as the operations do. Every three places share a row of bits, one for each cycle that is still to be waited; the
    first bits of the rows tell it all, so that little is left to do behind the rank.

    Parameters
    ----------
    latency : int
        Cycles after which an accumulator may be used again.

    Ports
    -----
    load : in
        The rank takes what comes next.
    leaving : in
        What the rank holds is issued in this cycle, and to the accumulator of what comes next.
    in_flight : unsigned(latency - 2), in
        Whether what stands behind each rank of the pipeline, the first one first, is to that accumulator.
    waits : out

    Attributes
    ----------
    rows : list of Signal
        State that proofs speak of: the cycles that are still to be waited, one bit for each, by groups of places.
    """

    def __init__(self, latency: int) -> None:
        super().__init__({"load": In(1), "leaving": In(1), "in_flight": In(max(latency - 2, 0)), "waits": Out(1)})
        places = latency - 1
        self.rows = [Signal(places - start, name=f"cycles_to_wait_{start}") for start in range(0, places, _TOGETHER)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compared = [self.leaving, *self.in_flight]
        for place, row in enumerate(self.rows):
            together = compared[place * _TOGETHER :][:_TOGETHER]
            needed = [Cat(together[: max(len(row) - cycle, 1)]).any() for cycle in range(len(row))]
            m.d.sync += row.eq(Mux(self.load, Cat(needed), row >> 1))
        m.d.comb += self.waits.eq(Cat(C(0, 1), *(row[0] for row in self.rows)).any())
        return m
