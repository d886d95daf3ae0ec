"""Promotions: what finished chunks wait in until there is a cycle for them, and the order that they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFO

from hdl.cores.result import flags_layout
from hdl.cores.words import named
from hdl.mac.hazards import waits_behind_rank
from hdl.mac.lane import operand_layout
from hdl.vector.operation import vector_operation_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["Promotions"]


class Promotions(Elaboratable):
    """Bring the results of finished chunks back as products ``partial * 1.0``.

    ::

        behind the last rank -> queue -> held | one operation: all lanes, to a 16-bit total
                                              | two operations: even lanes to row r, then odd lanes to row r + 1, fp32

    They are issued in the order in which their chunks ended, each as soon as possible; two to the same row are
    `accumulate_latency` cycles apart. Their products were; but the later one does not wait in the queue as long as the
    earlier one did. The operations of one promotion follow one another. The queue cannot overflow: it has a place for
    every product of a chunk that is on its way.

    Parameters
    ----------
    parameters : VectorParameters
    in_flight : sequence of vector_operation_layout
        What stands behind each rank, the first one first.

    Attributes
    ----------
    finished, promoted, flags : vector_operation_layout, list of operand_layout, list of flags_layout, in
        What stands behind the last rank; of every lane, its result as an operand, and flags.
    counts : in
        A product of a chunk is issued.
    has_room : out
        A further one may be.
    are_settled : out
        Every total is written, or will be before an operation issued now reads it; no chunk is in flight.
    issues : out
        A promotion is issued in this cycle.
    operation, operands, operand_flags : vector_operation_layout, list of operand_layout, list of flags_layout, out
        That promotion, the operands of the lanes, and the flags that were raised on them.
    """

    def __init__(self, parameters: VectorParameters, in_flight: Sequence[Any]) -> None:
        self.parameters, self.in_flight = parameters, in_flight
        operand, operation = operand_layout(parameters.formats), vector_operation_layout(parameters)
        lanes = range(parameters.lanes)
        self.finished, self.operation = Signal(operation), Signal(operation)
        self.promoted = [Signal(operand, name=f"promoted_{lane}") for lane in lanes]
        self.operands = [Signal(operand, name=f"promoted_operand_{lane}") for lane in lanes]
        self.flags = [Signal(flags_layout(), name=f"promoted_flags_{lane}") for lane in lanes]
        self.operand_flags = [Signal(flags_layout(), name=f"operand_flags_{lane}") for lane in lanes]
        self.counts, self.has_room, self.are_settled, self.issues = Signal(), Signal(), Signal(), Signal()
        fields: dict[str, Any] = {name: operation[name].shape for name in ("register", "format", "last")}
        fields |= {"fresh": 1, "wide": 1, "operands": data.ArrayLayout(operand, parameters.lanes)}
        if parameters.flags:
            fields["flags"] = data.ArrayLayout(flags_layout(), parameters.lanes)
        self._entry = data.StructLayout(fields)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        if not parameters.has_chunks:
            m.d.comb += [self.has_room.eq(1), self.are_settled.eq(1)]
            return m
        following = Signal(self._entry)
        m.submodules.queue = queue = SyncFIFO(width=len(following.as_value()), depth=parameters.promotions)
        # Which row: in a queue of its own, out of which it comes one cycle earlier, to be compared in good time.
        row_layout = data.StructLayout({name: self._entry[name].shape for name in ("register", "wide")})
        arrived_row, row, row_valid = Signal(row_layout), Signal(row_layout), Signal()
        m.submodules.rows = rows = SyncFIFO(width=len(row.as_value()), depth=parameters.promotions)
        arrived = Signal(self._entry)
        self._take(m, arrived)
        m.d.comb += [
            arrived_row.register.eq(arrived.register),
            arrived_row.wide.eq(arrived.wide),
            rows.w_data.eq(arrived_row),
            rows.w_en.eq(self.finished.promote),
            queue.w_data.eq(arrived),
            queue.w_en.eq(self.finished.promote),
            following.eq(queue.r_data),
        ]

        held, held_valid, is_second = Signal(self._entry), Signal(), Signal()
        leaves = named(m, "leaves", self.issues & (~held.wide | is_second))
        load = named(m, "load", ~held_valid | leaves)
        load_row = named(m, "load_row", ~row_valid | load)
        m.d.comb += [queue.r_en.eq(load & row_valid), rows.r_en.eq(load_row)]
        with m.If(load_row):
            m.d.sync += [row.eq(rows.r_data), row_valid.eq(rows.r_rdy)]
        with m.If(load):
            m.d.sync += [held.eq(following), held_valid.eq(row_valid), is_second.eq(0)]
        with m.Elif(self.issues):
            # The odd lanes' numbers, on the lanes that can do fp32.
            m.d.sync += is_second.eq(1)
            m.d.sync += [held.operands[lane].eq(held.operands[lane + 1]) for lane in range(0, parameters.lanes, 2)]
            if parameters.flags:
                m.d.sync += [held.flags[lane].eq(held.flags[lane + 1]) for lane in range(0, parameters.lanes, 2)]
        leaving = leaves & self._is_same(row, held)
        in_flight = [
            operation.writes & ~operation.is_product & self._is_same(row, operation) for operation in self.in_flight
        ]
        waits = waits_behind_rank(m, parameters.accumulate_latency, load, leaving, in_flight)
        m.d.comb += self.issues.eq(held_valid & ~waits)
        self._give(m, held, is_second)
        self._count(m, leaves)
        return m

    def _take(self, m: Module, entry: Any) -> None:
        finished = self.finished
        # Only level 1 has totals wider than its chunks: a unit without it needs nothing of what they need.
        wide = finished.wide_total if self.parameters.has_pairs_of_rows else C(0, 1)
        m.d.comb += [
            entry.register.eq(finished.register),
            entry.format.eq(finished.format),
            entry.last.eq(finished.last),
            entry.fresh.eq(finished.fresh_total),
            entry.wide.eq(wide),
        ]
        m.d.comb += [place.eq(operand) for place, operand in zip(entry.operands, self.promoted, strict=True)]
        if self.parameters.flags:
            m.d.comb += [place.eq(flags) for place, flags in zip(entry.flags, self.flags, strict=True)]

    def _is_same(self, one: Any, other: Any) -> Value:
        """Tell whether two promotions share a row: one to fp32 takes an even-aligned pair of them."""
        same_pair = one.register[1:] == other.register[1:]
        return same_pair & (one.wide | other.wide | (one.register[0] == other.register[0]))

    def _give(self, m: Module, held: Any, is_second: Value) -> None:
        parameters, operation = self.parameters, self.operation
        fp32 = len(parameters.accumulators) - 1
        m.d.comb += [
            operation.register.eq(Cat(held.register[0] | is_second, held.register[1:])),
            operation.format.eq(held.format),
            operation.accumulator_format.eq(Mux(held.wide, fp32, held.format)),
            operation.wide.eq(held.wide),
            operation.fresh.eq(held.fresh),
            operation.last.eq(held.last),
            operation.is_second.eq(is_second),
            operation.writes.eq(1),
        ]
        m.d.comb += [operand.eq(place) for operand, place in zip(self.operands, held.operands, strict=True)]
        if parameters.flags:
            m.d.comb += [flags.eq(place) for flags, place in zip(self.operand_flags, held.flags, strict=True)]

    def _count(self, m: Module, leaves: Value) -> None:
        """Count the products of chunks and the promotions that are not issued yet."""
        parameters, finished = self.parameters, self.finished
        pending = Signal(range(parameters.promotions + 1))
        over = finished.is_product & finished.partial & finished.writes & ~finished.promote
        m.d.sync += pending.eq(pending + self.counts - leaves - over)
        left = Signal(range(parameters.accumulate_latency))
        m.d.sync += left.eq(Mux(self.issues, parameters.accumulate_latency - 1, left - (left != 0)))
        # Found one cycle ahead: there is little time for it when a beat waits.
        unsettled = Signal()
        m.d.sync += unsettled.eq(self.counts | self.issues | (pending != 0) | (left > 1))
        # A power of two: the top bit says that all places are taken.
        m.d.comb += [self.has_room.eq(~pending[-1]), self.are_settled.eq(~unsettled)]
