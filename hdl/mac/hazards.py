"""Hazards: products and promotions wait for an accumulator that an operation in flight has yet to write."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["WaitsBehindRank"]

#: Places whose hazards are ORed before the register: the most that need no further level of logic.
_TOGETHER = 2


class WaitsBehindRank(wiring.Component):
    """Determine whether the operation in a rank must wait for operations issued before it.

    On its way into the rank, the operation is compared with every operation one place ahead. While it waits, the bits
    advance with the operations. Every two places share a row of bits, one for each remaining cycle. The OR of the
    first bits of the rows is the result, so that little logic remains behind the rank.

    Parameters
    ----------
    latency : int
        Cycles until an accumulator may be used again.

    Ports
    -----
    load : in
        The rank takes the next operation.
    leaving : in
        The operation in the rank is issued in this cycle, and has the same accumulator as the next one.
    in_flight : unsigned(latency - 2), in
        Whether the operation behind each rank of the pipeline, in order, has the next operation's accumulator.
    waits : out

    Attributes
    ----------
    rows : list of Signal
        State that proofs refer to: the remaining cycles to wait, one bit for each, by groups of places.
    """

    def __init__(self, latency: int) -> None:
        super().__init__({"load": In(1), "leaving": In(1), "in_flight": In(max(latency - 2, 0)), "waits": Out(1)})
        self._places = places = latency - 1
        self.rows = [Signal(places - start, name=f"cycles_to_wait_{start}") for start in range(0, places, _TOGETHER)]

    def waits_next(self) -> Value:
        """Return whether the operation that will be in the rank in the next cycle must wait there."""
        compared = Cat(self.leaving, self.in_flight)[: self._places]
        return Mux(self.load, compared.any(), Cat(row[1:2] for row in self.rows).any())

    def elaborate(self, platform: object) -> Module:
        m = Module()
        compared = [self.leaving, *self.in_flight]
        for place, row in enumerate(self.rows):
            together = compared[place * _TOGETHER :][:_TOGETHER]
            needed = [Cat(together[: max(len(row) - cycle, 1)]).any() for cycle in range(len(row))]
            m.d.sync += row.eq(Mux(self.load, Cat(needed), row >> 1))
        m.d.comb += self.waits.eq(Cat(C(0, 1), *(row[0] for row in self.rows)).any())
        return m
