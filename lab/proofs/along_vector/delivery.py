"""Results of an element leave in their order, and both parts of a result at level 1 leave together.

As in `lab.proofs.along_model.delivery`, the results of each kind are numbered, and a number beside every row of a queue
says how many of each kind had gone through the queue before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from hdl.cores.words import named
from hdl.vector.ports import RESULT_WIDTH, vector_result_layout
from lab.proofs.along_model.record import NUMBER_BITS, Condition
from lab.proofs.along_vector.element import PART_0, PART_1, REFUSED, Element
from lab.proofs.unknown_step import FLAGS_WIDTH

__all__ = ["Delivery"]

_KINDS = (REFUSED, PART_0, PART_1)
_CODE = RESULT_WIDTH // 2


class Delivery:
    """The numbers of results, and one result in the queue that the proof watches.

    Parameters
    ----------
    m : Module
    element : Element
    watch : Value
        Watch the result that is written now; it may be any result.
    o, leaves : Value
        The result at the output, and whether it leaves.

    Attributes
    ----------
    conditions, claims : list of (str, Value)
    """

    def __init__(self, m: Module, element: Element, watch: Value, o: Any, leaves: Value) -> None:
        self._m, self._element, self._opened = m, element, element.opened
        self._parameters = parameters = element.parameters
        opened = self._opened
        self._counts = data.ArrayLayout(unsigned(NUMBER_BITS), len(_KINDS))
        self._entry = vector_result_layout(parameters)
        #: Results that have left, or have been written to the queue; chunks that have left their queue, or come to it.
        self._left, self._written = self._counter("results_left"), self._counter("results_written")
        self._issued, self._waiting = self._counter("promotions_left"), self._counter("promotions_written")
        places = range(parameters.results)
        self._before = [self._counter(f"results_before_{place}") for place in places]
        self._twofold = Signal(parameters.results)
        self._promotions_before = [self._counter(f"promotions_before_{n}") for n in range(parameters.promotions)]
        self._answer = data.StructLayout({"word": RESULT_WIDTH, "flags": 2 * FLAGS_WIDTH, "error": 2, "part": 1})
        self._watched, self._number = Signal(self._answer, name="watched"), Signal(NUMBER_BITS, name="watched_number")
        self._kind, self._is_wide = Signal(2, name="watched_kind"), Signal(name="watched_wide")
        self._is_watched, self._at = Signal(name="is_watched"), Signal(range(parameters.results), name="watched_at")
        self._is_due, self._due_row = Signal(name="is_due"), Signal(parameters.register_width, name="due_row")
        answers = opened.answers
        m.d.comb += [row.addr.eq(place) for place, row in enumerate(answers.rows)]
        self._rows = [data.View(self._entry, row.data) for row in answers.rows]
        self._head, self._tail, self._level = answers.reading.addr, answers.writing.addr, opened.results.level
        delivered = element.delivered
        self._operation = opened.answered
        self._is_delivered = delivered.is_result | delivered.fields.refused
        self._advance(watch, o, leaves)
        self.conditions: list[Condition] = [
            *self._numbers(), *self._promotions(), *self._results(), *self._cleared(), *self._twofold_results(),
        ]  # fmt: skip
        right = self._shown(o, self._is_wide) == self._watched.as_value()
        right &= (o.register == element.row) & (_chosen(self._left, self._kind) == self._number)
        its_part = o.part == self._is_due
        self.claims: list[Condition] = [
            ("watched result", ~(leaves & self._is_watched & (self._head == self._at)) | right),
            ("second part at once", ~leaves | (its_part & (~self._is_due | (o.register == self._due_row)))),
        ]

    def _counter(self, name: str) -> Any:
        return Signal(self._counts, name=name)

    # -- kinds of results

    def _of_result(self, o: Any) -> list[Value]:
        here = o.register == self._element.row
        refused = Cat(o.error).any()
        return [here & refused, here & ~refused & ~o.part, here & ~refused & o.part]

    def _of_entry(self, entry: Any) -> list[Value]:
        """Return the kinds of results that a waiting promotion will give."""
        gives = entry.last & (entry.register == self._element.row)
        return [C(0, 1), gives, gives & entry.wide]

    def _of_operation(self, operation: Any) -> list[Value]:
        """Return the kinds of results that an operation gives."""
        element = self._element
        here = operation.register == element.row
        gives = operation.writes & operation.last & ~(operation.is_product & operation.partial)
        is_second = ~operation.is_product & operation.is_second
        pair = (operation.register[1:] == element.row[1:]) & ~element.half
        return [Cat(operation.error).any() & here, gives & here & ~is_second, gives & is_second & pair]

    def _of_chunk(self, operation: Any) -> list[Value]:
        is_chunk = operation.writes & operation.is_product & operation.partial
        gives = is_chunk & operation.last & (operation.register == self._element.row)
        return [C(0, 1), gives, gives & operation.wide_total]

    def _record_kind(self, fields: Any) -> Value:
        twofold = fields.wide_total & ~fields.is_chain
        return self._element.kind(fields.refused, twofold)

    def _pending_kind(self, pending: Any) -> Value:
        return self._element.kind(C(0, 1), pending.wide_total)

    def _plus(self, counts: Any, given: list[Value], name: str = "counted") -> list[Value]:
        return [named(self._m, name, (counts[kind] + given[kind])[:NUMBER_BITS]) for kind in _KINDS]

    def _add(self, counter: Any, given: list[Value]) -> None:
        self._m.d.sync += [counter[kind].eq(counter[kind] + given[kind]) for kind in _KINDS]

    # -- the claims about an element

    def _shown(self, o: Any, wide: Value) -> Value:
        """Return the element's part of a result.

        A narrow result has the code and flags of the element's lane. An fp32 result has the whole word, with the flags
        of both lanes. So has a refusal, whose word contains nothing about other elements.
        """
        lane = self._element.lane
        word, flags = o.result[lane // 2], Cat(o.flags[lane & ~1], o.flags[lane | 1])
        codes = word[_CODE:] if lane % 2 else word[:_CODE]
        narrow = Cat(codes, C(0, _CODE), o.flags[lane], C(0, FLAGS_WIDTH))
        return Cat(Mux(wide | Cat(o.error).any(), Cat(word, flags), narrow), o.error, o.part)

    def _wanted(self) -> tuple[Value, Value]:
        """Return the expected value of a delivered result, and whether the result is fp32."""
        record = self._element.delivered
        fields = record.fields
        width = self._parameters.of_lane(self._element.lane).formats.accumulator_width
        narrow = fields.given.code[: min(width, _CODE)]
        narrow = Cat(narrow, C(0, RESULT_WIDTH - len(narrow)))
        word = Mux(record.wide, fields.given.code, narrow)[:RESULT_WIDTH]
        part = record.wide & fields.promotion & int(self._element.is_odd)
        sound = Cat(word, record.flags, C(0, FLAGS_WIDTH), C(0, 2), part)
        refused = Cat(C(0, RESULT_WIDTH + 2 * FLAGS_WIDTH), fields.error, C(0, 1))
        return Mux(fields.refused, refused, sound)[: self._answer.size], record.wide & ~fields.refused

    def _advance(self, watch: Value, o: Any, leaves: Value) -> None:
        m, opened, element = self._m, self._opened, self._element
        fields = element.delivered.fields
        wanted, wide = self._wanted()
        with m.If(leaves):
            self._add(self._left, self._of_result(o))
            m.d.sync += [self._is_due.eq(self._twofold.bit_select(self._head, 1)), self._due_row.eq(o.register)]
            with m.If(self._head == self._at):
                m.d.sync += self._is_watched.eq(0)
        results = opened.results
        with m.If(results.w_en):
            self._add(self._written, self._of_operation(self._operation))
            m.d.sync += self._twofold.bit_select(self._tail, 1).eq(self._is_first_part(self._operation))
            for place, before in enumerate(self._before):
                with m.If(self._tail == place):
                    m.d.sync += before.eq(self._written)
            with m.If(watch & self._is_delivered):
                m.d.sync += [
                    self._is_watched.eq(1),
                    self._at.eq(self._tail),
                    self._number.eq(fields.number),
                    self._kind.eq(self._record_kind(fields)),
                    self._watched.eq(wanted),
                    self._is_wide.eq(wide),
                ]
        finished = opened.operations[-1]
        chain = element.records[0].fields.product & element.records[0].fields.is_chain & element.records[0].fields.last
        of_chain = [C(0, 1), chain, C(0, 1)]
        leaves_queue = opened.queues[0].r_en & opened.queues[0].r_rdy
        head = data.View(opened.promotions.entry, opened.queue.reading.data)
        with m.If(leaves_queue):
            self._add(self._issued, self._of_entry(head))
        with m.Elif(chain):
            self._add(self._issued, of_chain)
        with m.If(finished.promote):
            self._add(self._waiting, self._of_chunk(finished))
            for place, before in enumerate(self._promotions_before):
                with m.If(opened.queue.writing.addr == place):
                    m.d.sync += before.eq(self._waiting)
        with m.Elif(chain):
            self._add(self._waiting, of_chain)

    def _is_first_part(self, operation: Any) -> Value:
        is_promotion = operation.writes & ~operation.is_product & ~Cat(operation.error).any()
        return is_promotion & operation.wide & ~operation.is_second

    # -- what holds

    def _numbers(self) -> Iterator[Condition]:
        """The numbers of results on their way follow the numbers of the written results."""
        opened, element = self._opened, self._element
        stages = list(zip(opened.operations[1:], element.records[1:], strict=True))[::-1]
        ahead = list(stages)
        if opened.packed is not None:
            ahead.insert(0, (opened.packed, element.delivered))
        running: Any = self._written
        for at, (operation, record) in enumerate(ahead):
            gives = record.is_result | record.fields.refused
            right = _chosen(running, self._record_kind(record.fields)) == record.fields.number
            yield f"number of {at}", ~gives | right
            running = self._plus(running, self._of_operation(operation))
        refused = running[REFUSED]
        yield "refusals issued", refused == element.issued[REFUSED]
        held = element.held
        part = C(1, 1) if element.is_odd else ~opened.is_second
        its = opened.held_valid & part & held.is_followed & held.last
        yield "number of held", ~its | (_chosen(running, self._pending_kind(held)) == held.number)
        of_held = [opened.held_valid & each for each in self._of_entry(opened.held)]
        of_held[PART_0] &= ~opened.is_second
        running = self._plus(running, of_held)
        for kind in (PART_0, PART_1):
            yield f"numbers of promotions {kind}", running[kind] == self._issued[kind]
        running = self._waiting
        for place, (operation, record) in enumerate(stages):
            gives = record.is_chunk & record.fields.last
            right = _chosen(running, self._record_kind(record.fields)) == record.fields.number
            yield f"number of chunk {place}", ~gives | right
            running = self._plus(running, self._of_chunk(operation))
        for kind in (PART_0, PART_1):
            yield f"issued {kind}", running[kind] == element.issued[kind]

    def _promotions(self) -> Iterator[Condition]:
        """The same for promotions in their queue."""
        opened, element = self._opened, self._element
        head, tail, level = opened.queue.reading.addr, opened.queue.writing.addr, opened.level
        yield "no numbers", (level != 0) | (self._issued.as_value() == self._waiting.as_value())
        entries = [data.View(opened.promotions.entry, row.data) for row in opened.queue.rows]
        for place, (entry, before) in enumerate(zip(entries, self._promotions_before, strict=True)):
            is_used = (C(place, len(head)) - head)[: len(head)] < level
            following = (place + 1) % len(entries)
            after = Cat(self._plus(before, self._of_entry(entry)))
            behind = Mux(tail == following, self._waiting, self._promotions_before[following])
            yield f"numbers behind {place}", ~is_used | (after == behind)
            is_head = is_used & (head == place)
            yield f"numbers ahead of {place}", ~is_head | (before.as_value() == self._issued.as_value())
            row = element.rows[place]
            right = _chosen(before, self._pending_kind(row)) == row.number
            yield f"number of waiting {place}", ~(is_used & row.is_followed & row.last) | right

    def _results(self) -> Iterator[Condition]:
        """The same for results in their queue."""
        element, opened = self._element, self._opened
        head, tail, level = self._head, self._tail, self._level
        width, places = len(head), len(self._rows)
        yield "results", (level <= places) & (tail == (head + level)[:width])
        yield "none left", (level != 0) | (self._left.as_value() == self._written.as_value())
        written = data.View(self._entry, opened.results.w_data)
        gives = self._of_operation(self._operation)
        yield "written at all", ~Cat(gives).any() | opened.results.w_en
        same = Cat(self._of_result(written)) == Cat(gives)
        yield "kind written", ~opened.results.w_en | same
        wanted, wide = self._wanted()
        yield "is delivered", ~self._is_delivered | opened.results.w_en
        kind = _chosen(gives, self._record_kind(element.delivered.fields))
        yield "delivered kind", ~self._is_delivered | kind
        yield "written", ~self._is_delivered | (self._shown(written, wide) == wanted)
        for place, (entry, before) in enumerate(zip(self._rows, self._before, strict=True)):
            is_used = (C(place, width) - head)[:width] < level
            following = (place + 1) % places
            after = Cat(self._plus(before, self._of_result(entry)))
            behind = Mux(tail == following, self._written, self._before[following])
            yield f"results behind {place}", ~is_used | (after == behind)
            is_head = is_used & (head == place)
            yield f"results ahead of {place}", ~is_head | (before.as_value() == self._left.as_value())
            here = self._is_watched & (self._at == place)
            right = (self._shown(entry, self._is_wide) == self._watched.as_value()) & (entry.register == element.row)
            right &= _chosen(before, self._kind) == self._number
            yield f"watched {place}", ~here | (is_used & right)

    def _cleared(self) -> Iterator[Condition]:
        """The lanes that give no code: those of a refusal, and the odd ones of an fp32 result."""
        opened = self._opened
        for number, group in enumerate(opened.groups):
            yield f"clears {number}", group.clears == Cat(_no_code(opened.operations[-1], lane) for lane in range(2))
        for number, lane in enumerate(opened.lanes):
            yield f"cleared {number}", lane.cleared == _no_code(self._operation, number)

    def _twofold_results(self) -> Iterator[Condition]:
        """The second part directly follows the first one."""
        yield from self._both_parts()
        head, tail, level, width = self._head, self._tail, self._level, len(self._head)
        operation = self._operation
        is_promotion = ~operation.is_product & ~Cat(operation.error).any()
        is_second = self._opened.results.w_en & is_promotion & operation.is_second
        row = Cat(C(0, 1), operation.register[1:])
        yield "due now", (level != 0) | (self._is_due == is_second)
        yield "due row", ~(self._is_due & (level == 0)) | (self._due_row == row)
        for place, entry in enumerate(self._rows):
            is_used = (C(place, width) - head)[:width] < level
            is_head = is_used & (head == place)
            its = ~self._is_due | (entry.register == self._due_row)
            yield f"due {place}", ~is_head | ((entry.part == self._is_due) & its)
            following = (place + 1) % len(self._rows)
            behind, twofold = self._rows[following], self._twofold[place]
            is_next = (twofold == behind.part) & (~twofold | (behind.register == entry.register))
            is_next_written = (twofold == is_second) & (~twofold | (row == entry.register))
            yield f"twofold {place}", ~is_used | Mux(tail == following, is_next_written, is_next)

    def _both_parts(self) -> Iterator[Condition]:
        """The second part of a promotion follows the first one."""
        opened = self._opened
        held = opened.held
        behind: Value = opened.held_valid & opened.is_second
        behind_row, behind_last = held.register, held.last
        stages = [*opened.operations[1:], *([] if opened.packed is None else [opened.packed])]
        for place, operation in enumerate(stages, 1):
            both = behind & (behind_row[1:] == operation.register[1:]) & (behind_last == operation.last)
            is_wide = operation.writes & ~operation.is_product & operation.wide
            refused = Cat(operation.error).any()
            yield f"second part {place}", ~operation.is_second | (is_wide & operation.register[0] & ~refused)
            yield f"second part behind {place}", ~self._is_first_part(operation) | (both & ~operation.register[0])
            behind = operation.writes & ~operation.is_product & operation.is_second
            behind_row, behind_last = operation.register, operation.last
        if opened.packed is not None:
            # Before that rank, the order of beats implies it.
            ahead, second = opened.packed, opened.operations[-1]
            both = (ahead.register[1:] == second.register[1:]) & (ahead.last == second.last)
            yield "first part ahead", ~second.is_second | (self._is_first_part(ahead) & both)
            yield "promoted once", ~(ahead.writes & ~ahead.is_product & ahead.promote)


def _no_code(operation: Any, lane: int) -> Value:
    return Cat(operation.error).any() | (operation.wide & lane % 2)


def _chosen(words: Any, index: Value) -> Value:
    return Mux(index == REFUSED, words[REFUSED], Mux(index == PART_0, words[PART_0], words[PART_1]))
