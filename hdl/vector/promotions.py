# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Promotions: the queue in which finished chunks wait for a free cycle, in order."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from hdl.cores.result import flags_layout
from hdl.cores.words import named, record
from hdl.mac.arrangement import Arrangement
from hdl.mac.hazards import WaitsBehindRank
from hdl.mac.lane import operand_layout
from hdl.mac.promotions import promotion_rounding, promotions_signature
from hdl.queue import Queue
from hdl.vector.parameters import VectorParameters

__all__ = ["QueuedPromotions"]


class QueuedPromotions(wiring.Component):
    """Return the results of finished chunks as products ``partial * 1.0``.

    ::

        behind the last rank -> queue -> held | one operation: all lanes, to a 16-bit total
                                              | two operations: even lanes to row r, then odd lanes to row r + 1, fp32

    They are issued in the order in which their chunks ended, each as soon as possible. Promotions to the same row need
    a check that they are `accumulate_latency` cycles apart: their products were, but the later one may wait less in the
    queue. The operations of one promotion follow one another. The queue cannot overflow: it has a place for every
    product of a chunk in flight.

    `hdl.mac.promotions.promotions_signature` describes the ports. Promotions are settled if no chunk is in flight, and
    every total is written before an operation issued now reads it.

    Parameters
    ----------
    parameters : VectorParameters
    arrangement : Arrangement

    Attributes
    ----------
    entry : data.StructLayout
        The layout of a waiting promotion.
    queue, rows : Queue
        State that proofs refer to: the waiting promotions, and the row and width of each one's total.
    held, held_valid, is_second : Signal
        State that proofs refer to: the promotion that is issued next, whether there is one, whether its first
        operation has been issued.
    row, row_valid : Signal
        State that proofs refer to: the row of the promotion after that one.
    waiting : WaitsBehindRank
        Its ``rows`` are state that proofs refer to.
    issuing : Signal
        State that proofs refer to: an operation of the held promotion is issued in this cycle. It is found one cycle
        ahead, because all lanes and counters follow.
    change, spare, left, unsettled : Signal
        State that proofs refer to: by how much the number of products of chunks in flight and of waiting promotions has
        just changed; the places that were left for them before, less the one that the change may take and the one that
        is asked for; cycles until the total of the last promotion issued is written; whether any are in flight.
    """

    def __init__(self, parameters: VectorParameters, arrangement: Arrangement) -> None:
        self.parameters = parameters
        super().__init__(promotions_signature(parameters, arrangement))
        operand, operation = operand_layout(parameters.formats), arrangement.operation
        fields: dict[str, Any] = {name: operation[name].shape for name in ("register", "format", "last")}
        fields |= {"fresh": 1, "wide": 1, "operands": data.ArrayLayout(operand, parameters.lanes)}
        if parameters.has_chunks:
            fields |= {name: operation[name].shape for name, _ in parameters.formats.controls}
        if parameters.flags:
            fields["flags"] = data.ArrayLayout(flags_layout(), parameters.lanes)
        self.entry = data.StructLayout(fields)
        self._row = data.StructLayout({name: self.entry[name].shape for name in ("register", "wide")})
        self.queue, self.rows = Queue(self.entry, parameters.promotions), Queue(self._row, parameters.promotions)
        self.held, self.held_valid, self.is_second = Signal(self.entry), Signal(), Signal()
        self.row, self.row_valid, self.issuing = Signal(self._row), Signal(), Signal()
        self.waiting = WaitsBehindRank(parameters.accumulate_latency)
        self.change = Signal(range(-2, 2))
        self.spare = Signal(range(-4, parameters.promotions), init=parameters.promotions - 2)
        self.left = Signal(range(parameters.accumulate_latency))
        self.unsettled = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        if not parameters.has_chunks:
            m.d.comb += [self.has_room.eq(1), self.are_settled.eq(1)]
            return m
        m.submodules.queue, m.submodules.waiting = queue, waiting = self.queue, self.waiting
        # Rows have a separate queue, which delivers them one cycle earlier for the comparison.
        m.submodules.rows = rows = self.rows
        row, row_valid = self.row, self.row_valid
        arrived = Signal(self.entry, name="arrived")
        m.d.comb += [
            arrived.eq(record(self.entry, self._take())),
            rows.w_data.register.eq(arrived.register),
            rows.w_data.wide.eq(arrived.wide),
            rows.w_en.eq(self.finished.promote),
            queue.w_data.eq(arrived),
            queue.w_en.eq(self.finished.promote),
        ]

        held, held_valid, is_second = self.held, self.held_valid, self.is_second
        leaves = named(m, "leaves", self.issues & (~held.wide | is_second))
        load = named(m, "load", ~held_valid | leaves)
        load_row = named(m, "load_row", ~row_valid | load)
        m.d.comb += [queue.r_en.eq(load & row_valid), rows.r_en.eq(load_row)]
        with m.If(load_row):
            m.d.sync += [row.eq(rows.r_data), row_valid.eq(rows.r_rdy)]
        with m.If(load):
            m.d.sync += [held.eq(queue.r_data), held_valid.eq(row_valid), is_second.eq(0)]
        with m.Elif(self.issues):
            # The numbers of the odd lanes move to the lanes with fp32.
            m.d.sync += is_second.eq(1)
            m.d.sync += [held.operands[lane].eq(held.operands[lane + 1]) for lane in range(0, parameters.lanes, 2)]
            if parameters.flags:
                m.d.sync += [held.flags[lane].eq(held.flags[lane + 1]) for lane in range(0, parameters.lanes, 2)]
            if parameters.formats.is_stochastic:
                m.d.sync += [held.random[lane].eq(held.random[lane + 1]) for lane in range(0, parameters.lanes, 2)]
        recent = self.in_flight[: max(parameters.accumulate_latency - 2, 0)]
        m.d.comb += [
            waiting.load.eq(load),
            # A promotion is loaded only when the held one, if any, leaves.
            waiting.leaving.eq(held_valid & self.is_same(row, held)),
            waiting.in_flight.eq(Cat(self._is_promotion_to(row, operation) for operation in recent)),
            self.issues.eq(self.issuing),
        ]
        # A promotion that is not replaced stays, and its second operation never waits.
        m.d.sync += self.issuing.eq((~load | row_valid) & ~waiting.waits_next())
        self.give(m, held, is_second)
        self.count(m, leaves)
        return m

    def _take(self) -> dict[str, Value]:
        finished = self.finished
        # Only level 1 has totals wider than its chunks: a unit without it needs no logic for them.
        wide = finished.wide_total if self.parameters.has_pairs_of_rows else C(0, 1)
        taken = {
            "register": finished.register,
            "format": finished.format,
            "last": finished.last,
            "fresh": finished.fresh_total,
            "wide": wide,
            "operands": Cat(operand.as_value() for operand in self.promoted),
            **promotion_rounding(self.parameters, finished),
        }
        if self.parameters.flags:
            taken["flags"] = Cat(flags.as_value() for flags in self.flags)
        return taken

    def is_same(self, one: Any, other: Any) -> Value:
        """Return whether two promotions share a row: one to fp32 takes an even-aligned pair of rows."""
        same_pair = one.register[1:] == other.register[1:]
        return same_pair & (one.wide | other.wide | (one.register[0] == other.register[0]))

    def _is_promotion_to(self, row: Any, operation: Any) -> Value:
        return operation.writes & ~operation.is_product & self.is_same(row, operation)

    def give(self, m: Module, held: Any, is_second: Value) -> None:
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
            *(operation[name].eq(held[name]) for name, _ in parameters.formats.controls),
        ]
        m.d.comb += [operand.eq(place) for operand, place in zip(self.operands, held.operands, strict=True)]
        if parameters.flags:
            for flags, place in zip(self.operand_flags, held.flags, strict=True):
                m.d.comb += flags.eq(place.as_value() & self.issues.replicate(len(place.as_value())))

    def count(self, m: Module, leaves: Value) -> None:
        """Count the products of chunks in flight and the waiting promotions."""
        parameters, finished, left = self.parameters, self.finished, self.left
        change, spare, most = self.change, self.spare, parameters.promotions - 2
        over = finished.partial & ~finished.promote
        m.d.sync += [change.eq(self.counts - leaves - over), spare.eq(spare - change)]
        m.d.sync += left.eq(Mux(self.issues, parameters.accumulate_latency - 1, left - (left != 0)))
        # Computed one cycle ahead, because timing is tight when a beat waits.
        is_pending = (spare != most) | (change != 0)
        m.d.sync += self.unsettled.eq(self.counts | self.issues | is_pending | (left > 1))
        m.d.comb += [self.has_room.eq(~spare[-1]), self.are_settled.eq(~self.unsettled)]
