"""Relations between an element's records, the operations in flight, and the promotions that wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data

from hdl.mac.operands import GROUP
from lab.proofs.along_model.agreement import plain
from lab.proofs.along_model.record import Condition
from lab.proofs.along_vector.element import Element, is_same_total
from lab.proofs.along_vector.record import Record

__all__ = ["agreement", "held_operands", "issue", "totals", "waiting_promotions"]


def _is_promotion(operation: Any) -> Value:
    return operation.writes & ~operation.is_product


def _matches(element: Element, operation: Any, record: Record, *, is_settled: bool) -> Iterator[tuple[str, Value]]:
    """Tell whether an operation matches its record."""
    fields = record.fields
    is_promotion = _is_promotion(operation)
    here = operation.register == element.row
    # An even lane has the first part of a promotion to fp32, an odd one the second.
    part = (operation.register[1:] == element.row[1:]) & ~element.half & (operation.is_second == int(element.is_odd))
    yield "product", fields.product == (operation.writes & operation.is_product & here)
    yield "promotion", fields.promotion == (is_promotion & Mux(operation.wide, part, here))
    error = Cat(operation.error)
    yield "refusal", fields.refused == (error.any() & here)
    yield "error", ~fields.refused | (fields.error == error)
    wide_format = len(element.parameters.operands)
    wide = record.wide
    same = (
        (operation.format == fields.format)
        & (operation.accumulator_format == Mux(wide, wide_format, fields.format))
        & (operation.wide == wide)
        & (operation.partial == record.is_chunk)
        & (operation.last == fields.last)
        & (~record.is_chunk | (operation.wide_total == fields.wide_total))
    )
    there = fields.product | fields.promotion
    yield "control", ~there | same
    counted = C(is_settled, 1) | ~record.is_chunk
    yield "fresh", ~(there & counted) | (operation.fresh == record.fresh)
    if is_settled:
        ends = (operation.promote == fields.ends) & (operation.fresh_total == fields.is_first)
        yield "ends", ~record.is_chunk | ends
        yield "no end", record.is_chunk | ~there | ~operation.promote


def agreement(element: Element) -> Iterator[Condition]:
    """Yield the conditions that operations match their records, and that the records are possible."""
    parameters, opened = element.parameters, element.opened
    align = parameters.position("align")
    for place, record in list(enumerate(element.records))[1:]:
        fields = record.fields
        operation = opened.operations[place]
        for name, condition in _matches(element, operation, record, is_settled=place >= parameters.chunk_delay):
            yield f"{name} {place}", condition
        sane = (
            ~(fields.product & fields.promotion)
            & (~(fields.product | fields.promotion) | ~fields.refused)
            & (~fields.refused | (fields.error != 0))
            & (~record.is_chunk | ~fields.last | fields.ends)
            & (~record.fresh | ~record.is_step | (fields.before.as_value() == 0))
            & (~record.is_pending | ~fields.is_first | (fields.total_before.as_value() == 0))
            & (~(fields.product & fields.is_chain) | fields.wide_total)
            & (~fields.promotion | ~fields.is_chain)
            & (~(record.is_chunk | fields.promotion) | ~fields.wide_total | ~element.half)
        )
        yield f"record {place}", sane
        if place <= parameters.chunk_delay:
            chunk = element.beats.records[place].fields
            counted = (
                (fields.starts == chunk.starts) & (fields.ends == chunk.ends) & (fields.is_first == chunk.is_first)
            )
            yield f"counted {place}", ~record.is_chunk | (counted & (chunk.register == element.row))
            yield f"counts {place}", record.is_chunk == (chunk.counts & (chunk.register == element.row))
        lane = Mux(record.wide, opened.flags[element.lane & ~1, place], opened.flags[element.lane, place])
        yield f"flags {place}", ~record.is_step | (lane == (fields.base if place <= align else record.prior))
        wide = operation.writes & operation.partial & operation.wide_total
        yield f"even row {place}", ~wide | ~operation.register[0]
        is_chain = operation.writes & operation.is_product & ~operation.partial
        younger = Cat([C(0, 1), *map(_is_promotion, opened.operations[1:place])]).any()
        yield f"no promotion behind chain {place}", ~(is_chain & younger)


def _entries(element: Element) -> list[Any]:
    opened = element.opened
    return [data.View(opened.promotions.entry, row.data) for row in opened.queue.rows]


def waiting_promotions(element: Element) -> Iterator[Condition]:
    """Yield the conditions that waiting promotions match their records."""
    opened, held = element.opened, element.held
    even, lane = (each % GROUP for each in (element.lane & ~1, element.lane))

    def same(pending: Any, entry: Any, operand: Value, flags: Value) -> Value:
        its = (
            (pending.wide_total == entry.wide)
            & (pending.is_first == entry.fresh)
            & (pending.last == entry.last)
            & (pending.format == entry.format)
            & (pending.promoted == operand)
            & (pending.flags == flags)
            & (~pending.wide_total | ~element.half)
            & (~pending.is_first | (pending.total_before.as_value() == 0))
        )
        return (pending.is_followed == (entry.register == element.row)) & (~pending.is_followed | its)

    entry, group = opened.held, opened.waiting_operands[element.group]
    coming = _coming_promotion(group)
    there, flags = Cat(coming.operands[lane]), Cat(coming.flags[lane])
    if element.is_odd:
        moved = opened.is_second
        there = Mux(moved, Cat(coming.operands[even]), there)
        flags = Mux(moved, Cat(coming.flags[even]), flags)
    else:
        # Its part has been issued.
        there = Mux(opened.is_second, held.promoted, there)
        flags = Mux(opened.is_second, held.flags, flags)
    yield "held promotion", ~opened.held_valid | same(held, entry, there, flags)
    yield "held even row", ~opened.held_valid | ~entry.wide | ~entry.register[0]
    head = opened.queue.reading.addr
    kept = [data.View(group.entry, row.data) for row in opened.kept_operands[element.group].rows]
    for place, (row, entry, its) in enumerate(zip(element.rows, _entries(element), kept, strict=True)):
        is_used = (C(place, len(head)) - head)[: len(head)] < opened.level
        wanted = same(row, entry, Cat(its.operands[lane]), Cat(its.flags[lane]))
        yield f"waiting {place}", ~is_used | wanted
        yield f"even row of {place}", ~is_used | ~entry.wide | ~entry.register[0]


def _coming_promotion(group: Any) -> Any:
    """Return the operands and flags of the promotion that the control holds.

    The group has them one cycle later; without a delay, at once.
    """
    held, entry = group.held, group.entry
    if not group.parameters.operand_delay:
        return held
    moved = [
        Cat(Cat(part[lane + (lane % 2 == 0)]) for lane in range(len(group.operands)))
        for part in (held[name] for name in entry.members)
    ]
    shifted = Mux(group.issues_there, Cat(moved), held.as_value())
    return data.View(entry, Mux(group.load_there, group.reading.data, shifted))


def totals(m: Module, element: Element) -> Iterator[Condition]:
    """Yield the conditions that every promotion to come, in its turn, finds the model's total."""
    opened, held = element.opened, element.held
    entries = _entries(element)

    def finds(total: Any, pending: Any, wide: Value) -> Value:
        same = total.value.as_value() == pending.total_before.as_value()
        return pending.is_first | (total.live & (total.wide == wide) & same)

    total = element.total_issued
    # In an even lane the promotion is done once only its second part is left: that part writes elsewhere.
    is_done = C(0, 1) if element.is_odd else opened.is_second & held.is_followed
    its_turn = opened.held_valid & ~is_done
    yield "total of held", ~(its_turn & held.is_followed) | finds(total, held, held.wide_total)
    after_held = element.after_pending(m, total, held, opened.held)
    front = data.View(total.shape(), Mux(its_turn, after_held.as_value(), total.as_value()))
    head, tail = opened.queue.reading.addr, opened.queue.writing.addr
    yield "total behind held", (opened.level != 0) | is_same_total(front, element.total_waiting)
    for place, (row, before, entry) in enumerate(zip(element.rows, element.totals_before, entries, strict=True)):
        is_used = (C(place, len(head)) - head)[: len(head)] < opened.level
        yield f"total ahead of {place}", ~is_used | (head != place) | is_same_total(before, front)
        yield f"total of {place}", ~(is_used & row.is_followed) | finds(before, row, row.wide_total)
        after = element.after_pending(m, before, row, entry)
        following = (place + 1) % len(entries)
        behind = Mux(tail == following, element.total_waiting.as_value(), element.totals_before[following].as_value())
        same = is_same_total(after, data.View(total.shape(), behind))
        yield f"total behind {place}", ~is_used | same
    total = element.total_waiting
    for place in range(len(element.records) - 1, 0, -1):
        record = element.records[place]
        fields = record.fields
        yield f"total for {place}", ~record.is_pending | finds(total, fields, fields.wide_total)
        total = element.after_chunk(m, total, place)
    yield "total", is_same_total(total, element.total)
    yield from _levels(element)


def _levels(element: Element) -> Iterator[Condition]:
    """The model's knowledge of the level that the row is used at."""
    even, odd = element.beats.registers
    total = element.total
    level, later = Mux(element.half, odd.level, even.level), Mux(element.half, odd.later, even.later)
    yield "level 2", ~((level == 2) & later) | (total.live & ~total.wide)
    whole = odd.level == 1 if element.is_odd else C(1, 1)
    yield "level 1", ~((level == 1) & ~element.half & whole & later) | (total.live & total.wide)
    if not element.is_odd:
        yield "level 0", (level != 0) | (total.live & total.wide)


def held_operands(element: Element) -> Iterator[Condition]:
    """Yield the contents of the rank ahead of the issue, if there is one."""
    beats, group, lane = element.beats, element.opened.operands[element.group], element.lane % GROUP
    delay = element.parameters.operand_delay
    for name in ("a", "b") if element.parameters.has_input_rank else ():
        asked = beats.beat_valid & ((beats.beat.level != 0) if element.is_odd else C(1, 1))
        coming = Cat(group.held[name][lane])
        if delay:
            arrived = plain(element.parameters, group.arrived.format, group.arrived[name][lane])
            coming = Mux(group.load_there, arrived, coming)
        yield f"held {name}", ~asked | (coming == element.operand(name))
    if delay:
        yield from _operands(element, element.records[1], element.expected)


def issue(element: Element) -> Iterator[Condition]:
    """Yield the claims that an operation starts as its record says, with the operands that it must have."""
    parameters, opened = element.parameters, element.opened
    new, operation = element.records[0], opened.operations[0]
    for name, condition in _matches(element, operation, new, is_settled=parameters.chunk_delay == 0):
        yield f"{name} issued", condition
    if not parameters.operand_delay:
        wanted = {"a": element.operand("a"), "b": element.operand("b"), "promoted": element.held.promoted}
        yield from _operands(element, new, wanted)


def _operands(element: Element, record: Any, wanted: Mapping[str, Value]) -> Iterator[Condition]:
    """Yield the conditions that lanes have the operands of a record."""
    parameters, lanes, fields = element.parameters, element.opened.lanes, record.fields
    lane, even = element.lane, element.lane & ~1

    def given(name: str) -> Value:
        return Mux(record.wide, Cat(getattr(lanes[even], name)), Cat(getattr(lanes[lane], name)))

    for name in ("a", "b"):
        yield f"operand {name}", ~(record.is_step & fields.product) | (given(name) == wanted[name])
    ones = [C(fmt.one, parameters.formats.operand_width) for fmt in parameters.operands]
    one: Value = ones[-1]
    for index in reversed(range(len(ones) - 1)):
        one = Mux(fields.format == index, ones[index], one)
    yield "promoted", ~fields.promotion | (given("a") == wanted["promoted"])
    yield "one", ~fields.promotion | (given("b") == plain(parameters, fields.format, one))
