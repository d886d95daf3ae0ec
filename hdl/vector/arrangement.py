"""The lanes in pairs, of which the even ones also compute in fp32: their operation, and the places of their results."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.words import named
from hdl.mac.arrangement import Arrangement
from hdl.mac.operation import operation_layout
from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import vector_beat_layout

__all__ = ["Places", "pairs_of_lanes", "vector_operation_layout"]


def vector_operation_layout(parameters: VectorParameters) -> data.StructLayout:
    """Return the layout of an operation: `hdl.mac.operation.operation_layout` with the field ``is_second``.

    ``register``
        The row to read and write. A promotion of the odd lanes to fp32 goes to the odd row.
    ``wide``
        The accumulators are fp32, one in each pair of lanes; 16-bit lanes are idle.
    ``is_second``
        The operation is the promotion of the odd lanes to fp32.
    """
    fields = {name: field.shape for name, field in operation_layout(parameters, parameters.lanes)}
    return data.StructLayout(fields | {"is_second": 1})


def pairs_of_lanes(parameters: VectorParameters) -> Arrangement:
    """Return the arrangement of `hdl.VectorMac`.

    Totals of level 1 occupy a pair of rows and produce two results. At level 0 only the even lanes have operands.
    """

    def code(beat: Any, name: str, lane: int) -> Value:
        its: Value = beat[name][lane]
        if lane % 2 == 0 and 0 in parameters.levels:
            return Mux(beat.level == 0, beat[name][lane // 2], its)
        return its

    return Arrangement(
        lanes=parameters.lanes,
        beat=vector_beat_layout(parameters),
        operation=vector_operation_layout(parameters),
        code=code,
        needs_even=lambda beat: beat.level == 1,
        is_twofold=lambda held: held.wide_total & ~held.is_chain & held.is_sound,
        counts_held=True,
    )


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
        # taken - reserving, -2 to 1, in two bits of logic, so that one addition is left
        is_less = named(m, "is_less", Mux(taken, reserving[1], reserving.any()))
        change = Cat(taken ^ reserving[0], is_less).as_signed()
        m.d.sync += [reserving.eq(self.reserves), taken.eq(self.leaves), self.spare.eq(self.spare + change)]
        m.d.comb += self.has_room.eq(~self.spare[-1])
        return m
