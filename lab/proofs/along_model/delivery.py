"""Results leave in order: each kind of them is numbered, and the queue keeps the numbers.

Each register of the pair that the model follows has two *kinds* of results: sums and refusals. Beside every row of the
queue, a number says how many results of each kind had been written before it. So the rows alone give the results
between two rows, and between the first row and the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data

from hdl.cores.words import named
from lab.proofs.along_model.ghost import Ghost
from lab.proofs.along_model.opened import OpenedUnit
from lab.proofs.along_model.record import NUMBER_BITS, Condition, Record, chosen

__all__ = ["Delivery"]


class Delivery:
    """The numbers of results, and one result in the queue that the proof watches.

    Parameters
    ----------
    m : Module
    unit : OpenedUnit
    ghost : Ghost
    watch : Value
        Watch the result that is written now; it may be any result.
    o, leaves : Value
        The result at the output, and whether it leaves.

    Attributes
    ----------
    conditions : list of (str, Value)
        Invariants.
    claims : list of (str, Value)
        The watched result is right when it leaves.
    used : Value
        Places of the queue that are taken.
    offers : Value
        Whether the unit offers a result exactly when it has one.
    """

    def __init__(self, m: Module, unit: OpenedUnit, ghost: Ghost, watch: Value, o: Any, leaves: Value) -> None:
        self._m, self._unit, self._ghost, self._pair = m, unit, ghost, ghost.pair
        self._parameters = parameters = ghost.parameters
        queue, storage = unit.queue, unit.storage
        self._places = parameters.results
        self._entry = data.StructLayout(
            {
                "result": parameters.formats.accumulator_width,
                "flags": 5,
                "error": 2,
                "register": parameters.register_width,
            }
        )
        m.d.comb += [row.addr.eq(place) for place, row in enumerate(storage.rows)]
        self._produce, self._consume, self._level = storage.writing.addr, storage.reading.addr, queue.level
        counts = data.ArrayLayout(unsigned(NUMBER_BITS), len(ghost.numbers))
        self._written, self._left = Signal(counts, name="written"), Signal(counts, name="left")
        self._before = [Signal(counts, name=f"before_{place}") for place in range(self._places)]
        self._watched, self._number = Signal(self._entry, name="watched"), Signal(NUMBER_BITS)
        self._is_watched, self._at = Signal(), Signal(range(self._places))
        self._advance(watch, o, leaves)
        self.conditions: list[Condition] = [*self._pipeline(), *self._places_left(), *self._rows()]
        kind = _kind(o)
        right = (Cat(o.result, o.flags, o.error, o.register) == self._watched.as_value()) & (
            chosen(list(self._left), kind) == self._number
        )
        is_it = self._is_watched & (self._consume == self._at)
        self.claims: list[Condition] = [("watched result", ~(leaves & is_it) | right)]
        self.offers: Value = unit.results.o.valid == (self._level != 0)

    def _advance(self, watch: Value, o: Any, leaves: Value) -> None:
        m, record = self._m, self._ghost.delivered
        fields = record.fields
        with m.If(leaves):
            for kind in range(len(self._ghost.numbers)):
                with m.If(self._is_of(o, kind)):
                    m.d.sync += self._left[kind].eq(self._left[kind] + 1)
            with m.If(self._consume == self._at):
                m.d.sync += self._is_watched.eq(0)
        with m.If(record.is_result):
            for kind in range(len(self._ghost.numbers)):
                with m.If(record.is_followed & (record.kind == kind)):
                    m.d.sync += self._written[kind].eq(self._written[kind] + 1)
            for place, before in enumerate(self._before):
                with m.If(self._produce == place):
                    m.d.sync += before.eq(self._written)
            with m.If(watch & record.is_followed):
                m.d.sync += [
                    self._is_watched.eq(1),
                    self._at.eq(self._produce),
                    self._number.eq(fields.number),
                    self._watched.eq(self._answer(record)),
                ]

    def _answer(self, record: Record) -> Value:
        fields = record.fields
        its = Cat(fields.given.code, record.flags)
        return Cat(Mux(fields.refused, 0, its)[: len(its)], Mux(fields.refused, fields.error, 0)[:2], fields.register)

    def _pipeline(self) -> Iterator[Condition]:
        """The numbers of results on their way follow the numbers of the written results."""
        m, ghost = self._m, self._ghost
        behind = ghost.records[1:]
        on_their_way = [(record, record.is_promotion & record.fields.last) for record in reversed(behind)]
        on_their_way += [
            (record, record.fields.refused | record.is_sound_product & record.fields.last)
            for record in reversed(behind)
        ]
        if "pack" in self._parameters.ranks:
            on_their_way.insert(0, (ghost.delivered, ghost.delivered.is_result))
        running = list(self._written)
        count: Value = C(0, NUMBER_BITS)
        for at, (record, gives) in enumerate(on_their_way):
            its = gives & record.is_followed
            yield f"number of {at}", ~its | (chosen(running, record.kind) == record.fields.number)
            running = [
                named(m, f"running_{at}_{kind}", (one + (its & (record.kind == kind)))[:NUMBER_BITS])
                for kind, one in enumerate(running)
            ]
            count = named(m, f"count_{at}", (count + gives)[:NUMBER_BITS])
        self._on_their_way = count
        for kind, (one, issued) in enumerate(zip(running, ghost.numbers, strict=True)):
            yield f"issued {kind}", one == issued
        record, queue = ghost.delivered, self._unit.queue
        fields = record.fields
        yield "delivered", ~fields.refused | ((fields.error != 0) & ~fields.writes)
        yield "written at all", queue.w_en == record.is_result
        entry = data.View(self._entry, queue.w_data)
        kind = (_kind(entry) == record.kind) & (entry.register == fields.register)
        yield "kind written", ~record.is_result | kind
        yield "written", ~(record.is_result & record.is_followed) | self._is_answer(entry, self._answer(record))

    def _is_answer(self, entry: Any, answer: Value) -> Value:
        """Return whether an entry equals the expected result; the rest of a refusal has no meaning."""
        wanted = data.View(self._entry, answer)
        same = (entry.error == wanted.error) & (entry.register == wanted.register)
        return same & ((wanted.error != 0) | (Cat(entry.result, entry.flags) == Cat(wanted.result, wanted.flags)))

    def _places_left(self) -> Iterator[Condition]:
        unit, places = self._unit, self._places
        used = self.used = named(self._m, "used", self._on_their_way + self._level)
        counted = used - unit.reserving
        margin = 3 if self._parameters.has_input_rank else 2
        yield "spare places", unit.spare == places - margin - counted
        yield "places", (used <= places) & (counted >= 0) & (counted <= places)

    def _rows(self) -> Iterator[Condition]:
        places, level, consume, produce = self._places, self._level, self._consume, self._produce
        width = len(consume)
        yield "level", (level <= places) & (produce == (consume + level)[:width])
        yield "has word", self._unit.queue.has_word == (level != 0)
        is_empty = level == 0
        watched = self._watched
        yield "watched refusal", (watched.error == 0) | (Cat(watched.result, watched.flags) == 0)
        yield "left", ~is_empty | (self._left.as_value() == self._written.as_value())
        for place, (before, row) in enumerate(zip(self._before, self._unit.storage.rows, strict=True)):
            entry = data.View(self._entry, row.data)
            used = named(self._m, f"used_{place}", (C(place, width) - consume)[:width] < level)
            after = Cat((one + self._is_of(entry, kind))[:NUMBER_BITS] for kind, one in enumerate(before))
            behind = (place + 1) % places
            is_last = produce == behind
            yield (
                f"row {place} next",
                ~used | Mux(is_last, after == self._written.as_value(), after == self._before[behind].as_value()),
            )
            is_first = consume == place
            yield f"row {place} left", is_empty | ~is_first | (before.as_value() == self._left.as_value())
            its = self._is_answer(entry, self._watched.as_value())
            numbered = chosen(list(before), _kind(self._watched)) == self._number
            yield f"row {place} watched", ~(self._is_watched & (self._at == place)) | (used & its & numbered)

    def _is_of(self, result: Any, kind: int) -> Value:
        return (result.register[1:] == self._pair) & (_kind(result) == kind)


def _kind(result: Any) -> Value:
    return Cat(Cat(result.error).any(), result.register[0])
