"""Waiting for an accumulator that an operation in flight has yet to write."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import C, Cat, Module, Mux, Signal, Value

__all__ = ["waits_behind_rank"]

#: Places whose hazards are ORed before they are registered: as many as take no further level of logic.
_TOGETHER = 3


def waits_behind_rank(m: Module, latency: int, load: Value, leaving: Value, in_flight: Sequence[Value]) -> Value:
    """Tell whether what a rank holds is too close to what was issued before it, one bit for each place where that is.

    On its way into the rank it is compared with every operation one place ahead; while it waits there, the bits move on
    as the operations do. Every three places share a row of bits, one for each cycle that is still to be waited; the
    first bits of the rows tell it all, so that little is left to do behind the rank.

    Parameters
    ----------
    m : Module
    latency : int
        Cycles after which an accumulator may be used again.
    load : Value
        The rank takes what comes next.
    leaving : Value
        What the rank holds is issued in this cycle, and to the accumulator of what comes next.
    in_flight : sequence of Value
        Whether what stands behind each rank of the pipeline, the first one first, is to that accumulator; at least
        `latency` - 2 of them.
    """
    places = latency - 1
    if not places:
        return C(0, 1)
    compared = Cat(leaving, *in_flight[: places - 1])
    first_bits = []
    for start in range(0, places, _TOGETHER):
        together = list(compared[start : start + _TOGETHER])
        row = Signal(places - start, name=f"cycles_to_wait_{start}")
        needed = [Cat(together[: max(len(row) - cycle, 1)]).any() for cycle in range(len(row))]
        m.d.sync += row.eq(Mux(load, Cat(needed), row >> 1))
        first_bits.append(row[0])
    return Cat(first_bits).any()
