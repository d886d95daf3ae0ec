"""The sequential model of one element of a vector unit as a module beside it, for a proof by induction.

As in `lab.proofs.along_model.ghost`, the model decides about a product, and about its promotion, in the cycle of its
issue. The result of a step is left open: a record holds operands and result of the operation. It moves along with the
operation, through the pipeline, the queue of promotions and the pipeline again.

The element is one row of one lane. An even lane has its results at level 0. At level 1 an even lane has the first part
of a result, an odd lane the second. At level 2 every lane has results.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.words import named
from hdl.mac.lane import operand_layout
from hdl.mac.operands import GROUP
from lab.proofs.along_model.agreement import plain
from lab.proofs.along_model.record import NUMBER_BITS, value_layout
from lab.proofs.along_vector.record import Record, pending_layout, record_layout, total_after, total_layout
from lab.proofs.opened_vector import OpenedVector
from lab.proofs.vector_beats import BeatsAndChunks

__all__ = ["PART_0", "PART_1", "REFUSED", "Element", "is_same_total"]

#: Kinds of results of a row: each keeps its order.
REFUSED, PART_0, PART_1 = range(3)


class Element:
    """The model, and the records of operations in flight or waiting.

    Parameters
    ----------
    m : Module
        Gets the registers.
    top : ValuesVector
    opened : OpenedVector
    beats : BeatsAndChunks
        The issued beats, and the chunks of the element's pair of rows.

    Attributes
    ----------
    row, wide_row : Value
        The element's row; the row of its total if that is fp32.
    records : list of Record
        Records of the operation that is issued, and of the operation behind each rank.
    delivered : Record
        Record of the operation at the queue of results.
    held, rows : View of pending_layout, list of them
        Records of waiting promotions.
    partial, total : View
        The model: `value_layout`, `total_layout`.
    total_issued, total_waiting : View of total_layout
        The total after all operations that have been issued, and after all waiting promotions.
    totals_before : list of View
        The total ahead of each promotion in the queue.
    issued : list of Signal
        How many results of each kind have been issued.
    expected : dict of str to Signal
        Operands for the element's lane, of the last beat or promotion, one cycle after its issue.
    takes_promotion : Value
        The element's part of the waiting promotion is issued.
    is_legal : Value
        The beat continues only values of its level, in all rows that it takes.
    """

    def __init__(self, m: Module, top: Any, opened: OpenedVector, beats: BeatsAndChunks) -> None:
        self.parameters = parameters = opened.parameters
        self.lane, self.group, self.is_odd = top.lane, top.lane // GROUP, bool(top.lane % 2)
        self.opened, self.beats = opened, beats
        self.half = top.half
        self.row: Value = Cat(top.half, top.pair)
        self.wide_row: Value = Cat(C(1, 1), top.pair) if self.is_odd else self.row
        depth = len(parameters.operation_ranks)
        layout = record_layout(parameters)
        fields = [Signal(layout, name=f"element_{place}") for place in range(depth + 1)]
        self.records = [Record(m, each, is_odd=self.is_odd) for each in fields]
        for one, following in pairwise(fields):
            m.d.sync += following.eq(one)
        self.delivered = self.records[-1]
        if opened.packed is not None:
            packed = Signal(layout, name="element_packed")
            m.d.sync += packed.eq(fields[-1])
            self.delivered = Record(m, packed, is_odd=self.is_odd)
        self.partial = Signal(value_layout(parameters), name="model_partial")
        total = total_layout(parameters)
        self.total = Signal(total, name="model_total")
        self.total_issued, self.total_waiting = Signal(total, name="total_issued"), Signal(total, name="total_waiting")
        pending, places = pending_layout(parameters), range(parameters.promotions)
        self.held = Signal(pending, name="pending_held")
        self.rows = [Signal(pending, name=f"pending_{place}") for place in places]
        self.totals_before = [Signal(total, name=f"total_before_{place}") for place in places]
        width = operand_layout(parameters.formats).size
        self.expected = {name: Signal(width, name=f"expected_{name}") for name in ("a", "b", "promoted")}
        self.issued = [Signal(NUMBER_BITS, name=f"issued_{kind}") for kind in range(3)]
        self._issue(m, top)
        self._wait(m)

    # -- writes, and their places

    def step(self, m: Module, before: Any, mine: Value, wide: Value, value: Value, lost: tuple[Value, Value]) -> Any:
        """Return a total after a write.

        The write may be the element's own (`mine`), with a new value. If not, it may still destroy the total: `lost`
        says so for a narrow total and for an fp32 one, which stand in different places.
        """
        after = Signal(before.shape(), name="total_after")
        clobbers = Mux(before.wide, lost[1], lost[0])
        m.d.comb += [
            after.live.eq(mine | (before.live & ~clobbers)),
            after.wide.eq(Mux(mine, wide, before.wide)),
            after.value.eq(Mux(mine, value, before.value.as_value())),
        ]
        return after

    def lost_by(self, register: Value, pair: Value) -> tuple[Value, Value]:
        """Tell whether a write to a row, or to a pair of rows, destroys a narrow total, and an fp32 one."""

        def hits(row: Value) -> Value:
            return (register[1:] == row[1:]) & (pair | (register[0] == row[0]))

        return hits(self.row), hits(self.wide_row)

    def after_pending(self, m: Module, before: Any, pending: Any, entry: Any) -> Any:
        """Return the total after a waiting promotion."""
        lost = self.lost_by(entry.register, entry.wide)
        value = total_after(m, pending, pending.flags)
        return self.step(m, before, pending.is_followed, entry.wide, value, lost)

    def after_chunk(self, m: Module, before: Any, place: int) -> Any:
        """Return the total after the promotion that a product in flight will cause, if it ends its chunk."""
        operation, record = self.opened.operations[place], self.records[place]
        ends = self.ends(place)
        lost = self.lost_by(operation.register, operation.wide_total)
        mine = record.is_pending
        return self.step(
            m, before, mine, record.fields.wide_total, record.total_after, (lost[0] & ends, lost[1] & ends)
        )

    def ends(self, place: int) -> Value:
        """Tell whether the operation behind a rank will come back as a promotion."""
        early = self.beats.records[place] if place < self.parameters.chunk_delay else None
        return early.counts & early.fields.ends if early else self.opened.operations[place].promote

    # -- the events of a cycle

    def _issue(self, m: Module, top: Any) -> None:
        opened, beats = self.opened, self.beats
        beat, chunk = beats.beat, beats.records[0].fields
        is_here = beats.is_issued & (beat.register == self.row)
        sound = named(m, "is_sound_here", is_here & beats.is_sound)
        is_chain = named(m, "is_chain", beat.level == 0)
        even, odd = beats.registers
        taken = Mux(beat.level == 1, odd.level == 1, 1)
        is_same = Mux(self.half, odd.level, even.level) == beat.level
        self.is_legal = ~sound | beat.first | (taken & is_same)

        starts = Mux(is_chain, beat.first, chunk.starts)
        total = self.total.value.as_value()
        onto = Mux(is_chain, total, self.partial.as_value())
        wide_total = named(m, "wide_total", beat.level != 2)
        kind = self.kind(beats.is_issued & ~beats.is_sound, wide_total & ~is_chain)
        product = {
            "product": sound,
            "refused": is_here & ~beats.is_sound,
            "is_chain": is_chain,
            "wide_total": wide_total,
            "format": beat.format,
            "last": beat.last,
            "error": beats.error,
            "starts": starts,
            "ends": chunk.ends & ~is_chain,
            "is_first": chunk.is_first,
            "before": Mux(starts, 0, onto),
            "given": top.given,
            "total_before": Mux(chunk.is_first, 0, total),
            "total_given": top.total_given,
            "number": _chosen(self.issued, kind),
        }
        held = self.held
        is_part = opened.is_second | ~opened.held.wide if self.is_odd else ~opened.is_second
        self.takes_promotion = named(m, "takes_promotion", opened.promotions.issues & held.is_followed & is_part)
        promotion = {
            "promotion": self.takes_promotion,
            "wide_total": held.wide_total,
            "is_first": held.is_first,
            "last": held.last,
            "format": held.format,
            "number": held.number,
            "base": held.flags,
            "before": held.total_before,
            "given": held.total_given,
        }
        expected = {"a": self.operand("a"), "b": self.operand("b"), "promoted": held.promoted}
        m.d.sync += [self.expected[name].eq(value) for name, value in expected.items()]
        new = self.records[0]
        with m.If(opened.promotions.issues):
            m.d.comb += [new.fields[name].eq(value) for name, value in promotion.items()]
        with m.Else():
            m.d.comb += [new.fields[name].eq(value) for name, value in product.items()]
        self._advance(m, new)

    def operand(self, name: str) -> Value:
        """Return an operand of the beat that is waiting, for the element's lane."""
        beat, lane = self.beats.beat, self.lane
        code = beat[name][lane]
        if not self.is_odd:
            code = Mux(beat.level == 0, beat[name][lane // 2], code)
        return plain(self.parameters, beat.format, code)

    def kind(self, refused: Value, twofold: Value) -> Value:
        """Return the kind of the element's result."""
        return Mux(refused, REFUSED, Mux(twofold, PART_1 if self.is_odd else PART_0, PART_0))

    def _advance(self, m: Module, new: Record) -> None:
        """Let the model take the product that is issued, and the totals every issued operation."""
        beats, operation = self.beats, self.opened.operations[0]
        beat = beats.beat
        with m.If(new.is_chunk):
            m.d.sync += self.partial.eq(new.after)
        sound = beats.is_issued & beats.is_sound
        chain = sound & (beat.level == 0)
        mine = new.fields.product & new.fields.is_chain & C(not self.is_odd, 1)
        lost = self.lost_by(beat.register, C(0, 1))
        of_chain = mine, C(1, 1), new.after, (lost[0] & chain, lost[1] & chain)
        lost = self.lost_by(beat.register, beat.level == 1)
        ends = sound & (beat.level != 0) & beats.records[0].fields.ends
        of_chunk = new.is_pending, new.fields.wide_total, new.total_after, (lost[0] & ends, lost[1] & ends)
        with m.If(chain):
            m.d.sync += [
                self.total.eq(self.step(m, self.total, *of_chain)),
                self.total_waiting.eq(self.step(m, self.total_waiting, *of_chain)),
                self.total_issued.eq(self.step(m, self.total_issued, *of_chain)),
            ]
        with m.Else():
            m.d.sync += self.total.eq(self.step(m, self.total, *of_chunk))
        with m.If(operation.writes & ~operation.is_product):
            lost = self.lost_by(operation.register, C(0, 1))
            of_promotion = new.fields.promotion, new.fields.wide_total, new.after, lost
            m.d.sync += self.total_issued.eq(self.step(m, self.total_issued, *of_promotion))
        here = beats.is_issued & (beat.register == self.row)
        gives = here & beats.is_sound & beat.last
        for kind, one in ((REFUSED, here & ~beats.is_sound), (PART_0, gives), (PART_1, gives & (beat.level == 1))):
            with m.If(one):
                m.d.sync += self.issued[kind].eq(self.issued[kind] + 1)

    def _wait(self, m: Module) -> None:
        """Let the records of promotions wait where the unit's promotions do."""
        opened, finished, last = self.opened, self.opened.operations[-1], self.records[-1]
        arrives = Signal(self.held.shape(), name="pending_arrives")
        same = ("wide_total", "is_first", "last", "format", "total_before", "total_given", "number")
        m.d.comb += [
            *(arrives[name].eq(last.fields[name]) for name in same),
            arrives.is_followed.eq(last.is_pending),
            arrives.promoted.eq(last.fields.given.promoted),
            arrives.flags.eq(last.flags),
        ]
        with m.If(finished.promote):
            for place, (row, total) in enumerate(zip(self.rows, self.totals_before, strict=True)):
                with m.If(opened.queue.writing.addr == place):
                    m.d.sync += [row.eq(arrives), total.eq(self.total_waiting)]
            m.d.sync += self.total_waiting.eq(self.after_chunk(m, self.total_waiting, len(self.records) - 1))
        leaves = opened.queues[0].r_en & opened.queues[0].r_rdy
        with m.If(leaves):
            for place, row in enumerate(self.rows):
                with m.If(opened.queue.reading.addr == place):
                    m.d.sync += self.held.eq(row)


def _chosen(words: list[Any], index: Value) -> Value:
    word: Value = words[0]
    for place, other in enumerate(words[1:], 1):
        word = Mux(index == place, other, word)
    return word


def is_same_total(one: Any, other: Any) -> Value:
    """Tell whether two totals are the same, or neither is there."""
    same = (one.wide == other.wide) & (one.value.as_value() == other.value.as_value())
    return (one.live == other.live) & (~one.live | same)
