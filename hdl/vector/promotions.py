# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Promotions: the queue in which finished chunks wait for a free cycle, in order."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring

from hdl.cores.copies import copied
from hdl.cores.words import named, record
from hdl.mac.arrangement import Arrangement
from hdl.mac.hazards import WaitsBehindRank
from hdl.mac.operands import GROUP, groups_of
from hdl.mac.promotions import promotion_rounding, promotions_signature
from hdl.queue import Queue
from hdl.vector.parameters import VectorParameters
from hdl.vector.waiting import WaitingOperands

__all__ = ["QueuedPromotions"]


class QueuedPromotions(wiring.Component):
    """Return the results of finished chunks as products ``partial * 1.0``.

    ::

        behind the last rank -> queue -> held | one operation: all lanes, to a 16-bit total
                                              | two operations: even lanes to row r, then odd lanes to row r + 1, fp32

    They are issued in the order in which their chunks ended, each as soon as possible. Promotions to the same row need
    a check that they are `accumulate_latency` cycles apart: their products were, but the later one may wait less in the
    queue. The operations of one promotion follow one another. The queue cannot overflow: it has a place for every
    product of a chunk in flight. Operands and flags wait in `hdl.vector.waiting.WaitingOperands`.

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
    waiting_operands : list of WaitingOperands
        One for each group of lanes.
    held, held_valid, is_second : Signal
        State that proofs refer to: the promotion that is issued next, whether there is one, whether its first
        operation has been issued.
    ends : Signal
        State that proofs refer to: the held promotion has no operation after the next one.
    row, row_valid : Signal
        State that proofs refer to: the row of the promotion after that one.
    waiting : WaitsBehindRank
        Its ``rows`` are state that proofs refer to.
    issued_before : list of Signal
        State that proofs refer to: the row and width of the promotion that was issued one cycle ago, two cycles ago,
        and so on. They are apart from the operations in flight, because the comparison is tight in time.
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
        operation = arrangement.operation
        fields: dict[str, Any] = {name: operation[name].shape for name in ("register", "format", "last")}
        fields |= {"fresh": 1, "wide": 1}
        if parameters.has_chunks:
            fields |= {name: operation[name].shape for name, _ in parameters.formats.controls}
        self.entry = data.StructLayout(fields)
        self._row = data.StructLayout({name: self.entry[name].shape for name in ("register", "wide")})
        self.queue, self.rows = Queue(self.entry, parameters.promotions), Queue(self._row, parameters.promotions)
        self.held, self.held_valid, self.is_second = Signal(self.entry), Signal(), Signal()
        self.row, self.row_valid, self.issuing = Signal(self._row), Signal(), Signal()
        self.ends = Signal()
        self.waiting = WaitsBehindRank(parameters.accumulate_latency)
        self.issued_before = [
            Signal(data.StructLayout({"is_there": 1, **self._row.members}), name=f"issued_{cycle}_before")
            for cycle in range(1, max(parameters.accumulate_latency - 1, 1))
        ]
        self.change = Signal(range(-2, 2))
        self.spare = Signal(range(-4, parameters.promotions), init=parameters.promotions - 2)
        self.left = Signal(range(parameters.accumulate_latency))
        self.unsettled = Signal()
        self.waiting_operands = [WaitingOperands(parameters, len(lanes)) for lanes in groups_of(parameters.lanes)]

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
        leaves = named(m, "leaves", self.issuing & self.ends)
        load = named(m, "load", ~held_valid | leaves)
        load_row = named(m, "load_row", ~row_valid | load)
        m.d.comb += [queue.r_en.eq(load & row_valid), rows.r_en.eq(load_row)]
        with m.If(load_row):
            m.d.sync += [row.eq(rows.r_data), row_valid.eq(rows.r_rdy)]
        with m.If(load):
            m.d.sync += [held.eq(queue.r_data), held_valid.eq(row_valid), is_second.eq(0), self.ends.eq(~row.wide)]
        with m.Elif(self.issuing):
            m.d.sync += [is_second.eq(1), self.ends.eq(1)]
            if parameters.formats.is_stochastic:
                # The numbers of the odd lanes move to the lanes with fp32.
                m.d.sync += [held.random[lane].eq(held.random[lane + 1]) for lane in range(0, parameters.lanes, 2)]
        self._remember(m)
        m.d.comb += [
            waiting.load.eq(load),
            # A promotion is loaded only when the held one, if any, leaves.
            waiting.leaving.eq(held_valid & self.is_same(row, held)),
            waiting.in_flight.eq(Cat(before.is_there & self.is_same(row, before) for before in self.issued_before)),
        ]
        # A promotion that is not replaced stays, and its second operation never waits.
        issues_next = named(m, "issues_in_the_next_cycle", (~load | row_valid) & ~waiting.waits_next())
        m.d.sync += self.issuing.eq(issues_next)
        # What issues operations has a register apart from what moves the queue.
        m.d.comb += self.issues.eq(copied(m, "issues_copy", issues_next, parameters.multiplier, resets=True))
        self._connect(m, load)
        self.give(m, held, is_second)
        self.count(m, leaves)
        return m

    def _take(self) -> dict[str, Value]:
        finished = self.finished
        # Only level 1 has totals wider than its chunks: a unit without it needs no logic for them.
        wide = finished.wide_total if self.parameters.has_pairs_of_rows else C(0, 1)
        return {
            "register": finished.register,
            "format": finished.format,
            "last": finished.last,
            "fresh": finished.fresh_total,
            "wide": wide,
            **promotion_rounding(self.parameters, finished),
        }

    def _remember(self, m: Module) -> None:
        """Keep the rows of the promotions that were issued in the last cycles."""
        its: dict[str, Value] = {
            "is_there": self.issues, "register": self.operation.register, "wide": self.operation.wide,
        }  # fmt: skip
        for before in self.issued_before:
            m.d.sync += [before[name].eq(value) for name, value in its.items()]
            its = {name: before[name] for name in its}

    def _connect(self, m: Module, load: Value) -> None:
        """Connect the operands of the groups of lanes, which follow the control."""
        for number, group in enumerate(self.waiting_operands):
            m.submodules[f"operands_{number}"] = group
            lanes = slice(number * GROUP, (number + 1) * GROUP)
            m.d.comb += [
                group.writes.eq(self.finished.promote),
                group.writes_next.eq(self.in_flight[-2].promote if self.parameters.operand_delay else 0),
                group.produce.eq(self.queue.produce),
                group.consume.eq(self.queue.consume),
                group.load.eq(load),
                group.issues.eq(self.issues),
            ]
            for ours, theirs in (
                (group.promoted, self.promoted[lanes]),
                (group.flags, self.flags[lanes]),
                (self.operands[lanes], group.operands),
                (self.operand_flags[lanes], group.operand_flags),
            ):
                m.d.comb += [there.eq(here) for there, here in zip(ours, theirs, strict=True)]

    def is_same(self, one: Any, other: Any) -> Value:
        """Return whether two promotions share a row: one to fp32 takes an even-aligned pair of rows."""
        same_pair = one.register[1:] == other.register[1:]
        return same_pair & (one.wide | other.wide | (one.register[0] == other.register[0]))

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

    def count(self, m: Module, leaves: Value) -> None:
        """Count the products of chunks in flight and the waiting promotions."""
        parameters, finished, left = self.parameters, self.finished, self.left
        change, spare, most = self.change, self.spare, parameters.promotions - 2
        over = finished.partial & ~finished.promote
        m.d.sync += change.eq(self.counts - leaves - over)
        m.d.sync += left.eq(Mux(self.issues, parameters.accumulate_latency - 1, left - (left != 0)))
        # Computed one cycle ahead, because timing is tight when a beat waits.
        is_pending = (spare != most) | (change != 0)
        m.d.sync += self.unsettled.eq(self.counts | self.issues | is_pending | (left > 1))
        spare_next = Signal.like(spare)
        m.d.comb += spare_next.eq(spare - change)
        m.d.sync += spare.eq(spare_next)
        # A held beat asks one cycle ahead.
        asked = spare_next if parameters.has_input_rank else spare
        m.d.comb += [self.has_room.eq(~asked[-1]), self.are_settled.eq(~self.unsettled)]
