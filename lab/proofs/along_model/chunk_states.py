"""The counting of chunks: the unit, which may take two cycles for it, against the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Mux, Value
from amaranth.lib import data

from lab.proofs.along_model.record import Condition, Record, chosen

__all__ = ["ChunkStates"]


class ChunkStates:
    """Conditions on the unit's state of the chunks.

    A reset does not reach the memory, nor a state on its way into it. A register's states there count only from its
    first product after the reset on, which always starts a chunk.

    Parameters
    ----------
    unit : OpenedUnit or OpenedVector
    ghost : Ghost or BeatsAndChunks
    """

    def __init__(self, unit: Any, ghost: Any) -> None:
        self._unit, self._ghost = unit, ghost
        self._delay = ghost.parameters.chunk_delay

    def _holds(self, state: Any, count: Value, size: Value, is_open: Value, later: Value) -> Value:
        """Return whether the unit's state of a chunk says `count` products of `size`."""
        counted = (state.left == (size - count)[: len(size)]) & (state.is_last == (state.left == 1))
        return (state.open == is_open) & (state.is_later == later) & (~is_open | counted)

    def _before(self, state: Any, fields: Any) -> Value:
        """Tell whether a state is the one before a product; for a first product any state is."""
        return fields.first | self._holds(state, fields.count, fields.held_size, fields.open, fields.later)

    def _length(self, fields: Any) -> Value:
        return (Mux(fields.starts, 0, fields.count) + 1)[: len(fields.count)]

    def _here(self, record: Record, register: int) -> Value:
        return record.counts & record.is_followed & (record.fields.register[0] == register)

    def on_their_way(self) -> Iterator[Condition]:
        """The count over two cycles."""
        unit, ghost = self._unit, self._ghost
        first, second = ghost.records[1], ghost.records[2]
        now = unit.counting
        one, two = first.fields, second.fields
        is_new = ghost.since_reset < 1
        yield "chunk now counts", is_new | (now["counts"] == first.counts)
        port = one.port
        constants = (now["length"] == port) & (now["is_one"] == (port == 1)) & (now["is_unlimited"] == (port == 0))
        same = (now["register"] == one.register) & (now["first"] == one.first) & (now["last"] == one.last)
        state = unit.states
        yield "chunk now", ~first.counts | (constants & same & self._before(now["held"], one))
        writing = state.writing
        yield "chunk written counts", (ghost.since_reset < 2) | (writing.en == second.counts)
        after = self._holds(writing.data, self._length(two), two.size, ~two.ends, two.ends | ~two.is_first)
        yield "chunk written", ~second.counts | ((writing.addr == two.register) & after)
        for place, record in enumerate((first, second), 1):
            fields = record.fields
            ends = fields.last | ((fields.port != 0) & (self._length(fields) == fields.size))
            right = (
                (fields.starts == (fields.first | ~fields.open))
                & (fields.ends == ends)
                & (fields.is_first == (fields.first | ~fields.later))
                & (fields.size == Mux(fields.starts, fields.port, fields.held_size))
            )
            yield f"chunk of {place}", ~record.counts | right

    def in_memory(self) -> Iterator[Condition]:
        """The memory is as it was before the products that are just being counted."""
        ghost = self._ghost
        counted = ghost.records[1 : 1 + self._delay]
        rows = [row.data for row in self._unit.states.rows]
        for register, row in enumerate(rows):
            yield f"chunk row {register}", ~row.open | (row.is_last == (row.left == 1))
        for register, model in enumerate(ghost.registers):
            row = data.View(rows[0].shape(), chosen([each.as_value() for each in rows[register::2]], ghost.pair))
            in_memory = self._holds(row, model.count, model.size, model.open, model.later)
            newest = C(1, 1)
            for place, record in enumerate(counted, 1):
                fields = record.fields
                here = self._here(record, register)
                is_after = (
                    (model.count == self._length(fields))
                    & (model.size == fields.size)
                    & (model.open == ~fields.ends)
                    & (model.later == (fields.ends | ~fields.is_first))
                )
                yield f"chunk model {register} {place}", ~(newest & here) | is_after
                newest &= ~here
            for record in reversed(counted):
                here = self._here(record, register)
                in_memory = Mux(here, self._before(row, record.fields), in_memory)
            # The even register of a pair has the chunks; at level 0 there are none.
            is_used = (model.level == 2) | ((model.level == 1) if register % 2 == 0 else C(0, 1))
            yield f"chunk state {register}", ~is_used | in_memory
            is_numbered = (model.count != 0) & (model.count < model.size)
            yield f"chunk length {register}", ~(model.open & model.kept) | (model.size == 0) | is_numbered
            for age in range(self._delay + 1) if self._delay else ():
                new = Cat([C(0, 1), *(self._here(each, register) & each.fields.first for each in counted[:age])]).any()
                yield f"chunk since reset {register} {age}", (ghost.since_reset != age) | ~is_used | new
