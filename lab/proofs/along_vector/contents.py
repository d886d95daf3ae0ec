"""The future contents of an element's registers, once the operations in flight have written to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import C, Cat, Module, Mux, Value

from hdl.cores.words import named
from hdl.mac.lane import number_layout
from lab.proofs.along_model.record import Condition, chosen
from lab.proofs.along_vector.element import Element
from lab.proofs.along_vector.record import Record
from lab.proofs.unknown_step import CLASS_WIDTH, FLAGS_WIDTH

__all__ = ["Contents"]

_CLASS_BITS = CLASS_WIDTH + FLAGS_WIDTH


class _Place:
    """A place where a value of the element may stand, and its future contents.

    Parameters
    ----------
    m : Module
    row : Value
        The row whose operations write there.
    is_partial : bool
        Whether they write partial sums there; otherwise totals.
    now : Value
        The contents now.
    """

    def __init__(self, m: Module, row: Value, *, is_partial: bool, now: Value) -> None:
        self._m, self._row, self._is_partial, self.now = m, row, is_partial, named(m, "now", now)
        self._is_written: Value = C(0, 1)
        self._is_mine: Value = C(0, 1)
        self._word: Value = C(0, len(now))

    def write(self, operation: Any, mine: Value, word: Value) -> None:
        """Let an operation write; it is younger than the operations of earlier calls."""
        writes = operation.writes & (operation.register == self._row)
        writes &= operation.partial if self._is_partial else ~operation.partial
        self._is_written = named(self._m, "is_written", self._is_written | writes)
        self._is_mine = named(self._m, "is_mine", Mux(writes, mine, self._is_mine))
        self._word = named(self._m, "word", Mux(writes, word, self._word))

    def will_hold(self, word: Value) -> Value:
        """Tell whether the future contents are a word of the element."""
        return Mux(self._is_written, self._is_mine & (self._word == word), self.now == word)


class Contents:
    """Conditions on numbers, or on classes and flags, in the register file.

    Parameters
    ----------
    m : Module
    element : Element
    is_class : bool

    Attributes
    ----------
    conditions, claims : list of (str, Value)
        ``claims`` depend on the beat on offer.
    """

    def __init__(self, m: Module, element: Element, *, is_class: bool) -> None:
        self._element, self._is_class = element, is_class
        self._parameters = parameters = element.parameters
        self._low_bits = parameters.formats.low_fraction_bits
        narrow = parameters.of_lane(element.lane).formats
        self._narrow_bits = number_layout(narrow).size - (0 if element.is_odd else self._low_bits)
        self._partial = _Place(m, element.row, is_partial=True, now=self._narrow_now(is_partial=True))
        self._narrow = _Place(m, element.row, is_partial=False, now=self._narrow_now(is_partial=False))
        self._wide = _Place(m, element.wide_row, is_partial=False, now=self._wide_now())
        self.conditions = list(self._found())
        at, read = self._reading()
        self.claims: list[Condition] = [] if at else [read]
        if at:
            self.conditions.append(read)

    # -- the contents now

    def _rows(self, lane: int) -> list[Value]:
        opened = self._element.opened
        return [Cat(row.data) for row in (opened.classes if self._is_class else opened.words)[lane].rows]

    def _narrow_now(self, *, is_partial: bool) -> Value:
        rows, registers = self._rows(self._element.lane), self._parameters.registers
        word = chosen(rows[registers:] if is_partial else rows[:registers], self._element.row)
        return word if self._is_class else word[: self._narrow_bits]

    def _wide_now(self) -> Value:
        element, registers = self._element, self._parameters.registers
        top = chosen(self._rows(element.lane & ~1)[:registers], element.wide_row)
        if self._is_class or not self._low_bits:
            return top
        ends = [Cat(row.data) for row in element.opened.low_ends[element.lane // 2].rows]
        return Cat(chosen(ends, element.wide_row), top)

    # -- parts of values

    def _narrow_part(self, value: Value) -> Value:
        return value[-_CLASS_BITS:] if self._is_class else value[self._low_bits :][: self._narrow_bits]

    def _wide_part(self, value: Value) -> Value:
        return value[-_CLASS_BITS:] if self._is_class else value[:-_CLASS_BITS]

    def _holds_total(self, wide: Value, value: Value) -> Value:
        narrow = self._narrow.will_hold(self._narrow_part(value))
        return Mux(wide, self._wide.will_hold(self._wide_part(value)), narrow)

    def _holds_accumulator(self, record: Record) -> Value:
        before = record.fields.before.as_value()
        partial = self._partial.will_hold(self._narrow_part(before))
        return Mux(record.is_chunk, partial, self._holds_total(record.wide, before))

    # -- what holds

    def _found(self) -> Iterator[Condition]:
        """Each operation will read what those ahead of it will have written, and so does the model."""
        element, parameters = self._element, self._parameters
        kind = "class" if self._is_class else "number"
        depth = len(parameters.operation_ranks)
        reads = parameters.position("align") if self._is_class else parameters.reading_position
        # The number of the last operation has been written.
        for place in range(depth if self._is_class else depth - 1, 0, -1):
            operation, record = element.opened.operations[place], element.records[place]
            if not self._is_class:
                # The bank of low ends does not tell partial sums from totals.
                yield f"fp32 is total {place}", ~(operation.writes & operation.wide & operation.partial)
            if place <= reads:
                yield f"{kind} for {place}", ~record.is_step | record.fresh | self._holds_accumulator(record)
            after, step = record.after, record.is_step
            self._partial.write(operation, record.is_chunk, self._narrow_part(after))
            self._narrow.write(operation, step & ~record.is_chunk & ~record.wide, self._narrow_part(after))
            self._wide.write(operation, step & ~record.is_chunk & record.wide, self._wide_part(after))
        even, odd = element.beats.registers
        is_open = Mux(element.half, odd.open, even.open)
        partial = self._partial.will_hold(self._narrow_part(element.partial.as_value()))
        yield f"{kind} partial", ~is_open | partial
        total = element.total_issued
        yield f"{kind} total", ~total.live | self._holds_total(total.wide, total.value.as_value())

    def _reading(self) -> tuple[int, Condition]:
        """The lane's inputs match the record."""
        element, parameters, lanes = self._element, self._parameters, self._element.opened.lanes
        place = parameters.position("align" if self._is_class else "read")
        record = element.records[place]
        wide = record.wide
        before = record.fields.before
        if self._is_class:
            wanted = Cat(before.its_class, before.flags)
            stored = [Cat(lanes[each].stored_class) for each in (element.lane & ~1, element.lane)]
            meets = Mux(wide, stored[0] == wanted, stored[1] == wanted)
        else:
            narrow, number = Cat(lanes[element.lane].stored), before.number
            if not element.is_odd:
                narrow = narrow[self._low_bits :]
            meets = Mux(
                wide,
                Cat(lanes[element.lane & ~1].stored) == number,
                narrow == number[self._low_bits :][: self._narrow_bits],
            )
        name = "class read" if self._is_class else "number read"
        return place, (name, ~record.is_step | meets)
