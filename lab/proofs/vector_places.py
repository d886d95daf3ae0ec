"""The vector unit's queue of results never overflows: each result on its way has a place, and no other has.

Beside each row of the queue of promotions, as in `lab.proofs.along_model.delivery`, a number says how many places had
been taken before that row was written. These numbers give the places of all promotions in the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from hdl.cores.words import named
from lab.proofs.along_model.record import Condition
from lab.proofs.opened_vector import OpenedVector

__all__ = ["Places"]

#: More than the promotions of a full queue can have.
_BITS = 7


class Places:
    """Places in the queue of results.

    Parameters
    ----------
    m : Module
        Gets the registers.
    opened : OpenedVector
    parameters : VectorParameters
    offers : Value
        Whether the unit offers a result.

    Attributes
    ----------
    conditions, claims : list of (str, Value)
        Invariants; every result that is written finds a place, and the unit offers a result whenever it has one.
    """

    def __init__(self, m: Module, opened: OpenedVector, parameters: Any, offers: Value) -> None:
        self._m, self._opened, self._parameters = m, opened, parameters
        self._written, self._left = Signal(_BITS, name="places_written"), Signal(_BITS, name="places_left")
        depth = parameters.promotions
        self._before = [Signal(_BITS, name=f"places_before_{place}") for place in range(depth)]
        queue, promotions = opened.queue, opened.promotions
        self._entries = [data.View(promotions.entry, row.data) for row in queue.rows]
        arrives = data.View(promotions.entry, queue.writing.data)
        head = data.View(promotions.entry, queue.reading.data)
        with m.If(queue.writing.en):
            m.d.sync += self._written.eq(self._written + _cost(arrives))
            for place, before in enumerate(self._before):
                with m.If(queue.writing.addr == place):
                    m.d.sync += before.eq(self._written)
        with m.If(opened.queues[0].r_en & opened.queues[0].r_rdy):
            m.d.sync += self._left.eq(self._left + _cost(head))
        self.conditions: list[Condition] = [*self._queue(), *self._all()]
        results = opened.queues[2]
        self.claims: list[Condition] = [
            ("place for a result", ~results.w_en | (results.level < parameters.results)),
            ("offers what it has", offers == (results.level != 0)),
        ]

    def _queue(self) -> Iterator[Condition]:
        """The numbers follow one another from row to row."""
        opened = self._opened
        depth, head, tail = self._parameters.promotions, opened.queue.reading.addr, opened.queue.writing.addr
        width = len(head)
        is_empty = opened.level == 0
        yield "no places", ~is_empty | (self._left == self._written)
        for place, (entry, before) in enumerate(zip(self._entries, self._before, strict=True)):
            is_used = (C(place, width) - head)[:width] < opened.level
            behind = (place + 1) % depth
            following = Mux(tail == behind, self._written, self._before[behind])
            yield f"places of {place}", ~is_used | ((before + _cost(entry))[:_BITS] == following)
            yield f"places ahead of {place}", is_empty | (head != place) | (before == self._left)

    def _all(self) -> Iterator[Condition]:
        """Places are taken by operations in flight, by promotions that wait, and by results."""
        opened, parameters = self._opened, self._parameters
        delay = parameters.chunk_delay
        count = named(self._m, "places_waiting", (self._written - self._left)[:_BITS])
        yield "places waiting", count <= 2 * opened.level
        count = count + Mux(opened.held_valid, _cost(opened.held) - (opened.held.last & opened.is_second), 0)
        for place, operation in enumerate(opened.operations[1:], 1):
            is_chunk = operation.writes & operation.is_product & operation.partial
            two = is_chunk & operation.wide_total
            gives = Cat(operation.error).any() | (operation.writes & operation.last)
            count = named(self._m, f"places_{place}", (count + Mux(gives, 1 + two, 0))[:_BITS])
            if place == 1:
                is_beat = ~operation.writes | operation.is_product
                yield "reserving", opened.reserving == Mux(gives & is_beat, 1 + two, 0)
            yield f"refusal {place}", ~Cat(operation.error).any() | ~operation.writes
            if place >= delay:
                yield f"last {place}", ~(is_chunk & operation.last) | operation.promote
        if opened.packed is not None:
            packed = opened.packed
            gives = Cat(packed.error).any() | (packed.writes & packed.last & ~packed.promote)
            count = count + gives
            yield "written behind pack", opened.results.w_en == gives
        for number, queue in enumerate(opened.queues):
            yield f"has word {number}", queue.has_word == (queue.level != 0)
        results = opened.queues[2].level
        yield "reserved", opened.reserved == (count + results + opened.taken)[: _BITS + 1]
        if parameters.has_input_rank:
            is_free = opened.beat_valid & opened.issue.held.gives_result & ~opened.issue.is_blocked
            most = 2 if parameters.has_pairs_of_rows else 1
            yield "places left", ~is_free | (opened.reserved <= parameters.results - most)
        yield "reserved places", (opened.reserved <= parameters.results) & (results <= parameters.results)
        yield "taken", ~opened.taken | (opened.reserved != 0)


def _cost(entry: Any) -> Value:
    """Return how many results a promotion will give."""
    return Mux(entry.last, 1 + entry.wide, 0)
