"""The counting of chunks in the unit, which may take two cycles, against that in the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Mux, Value

from sim.formal.along_model.ghost import Ghost
from sim.formal.along_model.opened import OpenedUnit
from sim.formal.along_model.record import Condition

__all__ = ["ChunkStates"]


class ChunkStates:
    """Conditions on what the unit holds of the chunks.

    Parameters
    ----------
    unit : OpenedUnit
    ghost : Ghost
    chunk : Value
        Products in a chunk.
    """

    def __init__(self, unit: OpenedUnit, ghost: Ghost, chunk: Value) -> None:
        self._unit, self._ghost, self._chunk = unit, ghost, chunk

    def _holds(self, state: Any, count: Value, is_open: Value, later: Value) -> Value:
        """Tell whether the state of a chunk in the unit is that of so many products."""
        chunk = self._chunk
        left = (count != 0) & (count < chunk) & (state.left == (chunk - count)[: len(chunk)])
        counted = left & (state.is_last == (state.left == 1))
        return (state.open == is_open) & (state.is_later == later) & (~is_open | (chunk == 0) | counted)

    def _before(self, state: Any, fields: Any) -> Value:
        return self._holds(state, fields.count, fields.open, fields.later)

    def _length(self, fields: Any) -> Value:
        return (Mux(fields.starts, 0, fields.count) + 1)[: len(self._chunk)]

    def on_their_way(self) -> Iterator[Condition]:
        """What is counted in two cycles."""
        unit, ghost, chunk = self._unit, self._ghost, self._chunk
        first, second = ghost.records[1], ghost.records[2]
        now = unit.counting
        one, two = first.fields, second.fields
        yield "chunk now counts", now["counts"] == first.counts
        constants = (now["length"] == chunk) & (now["is_one"] == (chunk == 1)) & (now["is_unlimited"] == (chunk == 0))
        same = (now["register"] == one.register) & (now["first"] == one.first) & (now["last"] == one.last)
        state = unit.states
        yield "chunk now", ~first.counts | (constants & same & self._before(now["held"], one))
        writing = state.writing
        yield "chunk written counts", writing.en == second.counts
        after = self._holds(writing.data, self._length(two), ~two.ends, two.ends | ~two.is_first)
        yield "chunk written", ~second.counts | ((writing.addr == two.register) & after)
        for place, record in enumerate((first, second), 1):
            fields = record.fields
            ends = fields.last | ((chunk != 0) & (self._length(fields) == chunk))
            right = (
                (fields.starts == (fields.first | ~fields.open))
                & (fields.ends == ends)
                & (fields.is_first == (fields.first | ~fields.later))
                & (~fields.open | (chunk == 0) | ((fields.count != 0) & (fields.count < chunk)))
            )
            yield f"chunk of {place}", ~record.counts | right

    def in_memory(self) -> Iterator[Condition]:
        """The memory holds what it held before the products that are just being counted."""
        counted = self._ghost.records[1 : 1 + self._ghost.parameters.chunk_delay]
        for register, model in enumerate(self._ghost.registers):
            row = self._unit.states.rows[register].data
            in_memory = self._holds(row, model.count, model.open, model.later)
            newest = C(1, 1)
            for place, record in enumerate(counted, 1):
                fields = record.fields
                here = record.counts & (fields.register == register)
                is_after = (
                    (model.count == self._length(fields))
                    & (model.open == ~fields.ends)
                    & (model.later == (fields.ends | ~fields.is_first))
                )
                yield f"chunk model {register} {place}", ~(newest & here) | is_after
                newest &= ~here
            for record in reversed(counted):
                here = record.counts & (record.fields.register == register)
                in_memory = Mux(here, self._before(row, record.fields), in_memory)
            yield f"chunk state {register}", in_memory
