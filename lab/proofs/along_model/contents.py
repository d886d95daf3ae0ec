"""The future contents of the register file, once the operations in flight have written to it."""

from __future__ import annotations

from amaranth import Module, Mux, Value

from hdl.cores.words import named
from lab.proofs.along_model.record import Record, chosen
from lab.proofs.unknown_step import CLASS_WIDTH, FLAGS_WIDTH

__all__ = ["Contents", "meets"]

#: Bits of class and flags in a value, behind its number.
_CLASS_BITS = CLASS_WIDTH + FLAGS_WIDTH


class Contents:
    """The rows of a pair of registers in the register file, with their future contents.

    Parameters
    ----------
    m : Module
    totals, partials : list of Value
        Rows of the totals and the partial sums of both registers. The even one has the low end of a total of the pair.
    low_bits : int
        Bits of the low end of a pair; 0 for classes and flags, for which only the even half counts.
    is_class : bool
    """

    def __init__(self, m: Module, totals: list[Value], partials: list[Value], low_bits: int, *, is_class: bool) -> None:
        self._m, self._totals, self._partials = m, totals, partials
        self._low_bits, self._is_class = low_bits, is_class

    def _part(self, value: Value) -> tuple[Value, Value]:
        """Return the part of a value in the even row of a pair, and its word where it takes a single row."""
        number, its_class = value[:-_CLASS_BITS], value[-_CLASS_BITS:]
        return (its_class, its_class) if self._is_class else (number[: self._low_bits], number[self._low_bits :])

    def _written(self, register: int, wide: Value, value: Value) -> Value:
        """Return the word that a write of a value puts into the row of a register."""
        low, high = self._part(value)
        return high if self._is_class or register else Mux(wide, low, high)

    def with_operation(self, record: Record) -> Contents:
        """Return the value after an operation."""
        fields = record.fields
        partial = fields.is_product & ~fields.is_chain
        totals, partials = [], []
        for register, (total, sum_) in enumerate(zip(self._totals, self._partials, strict=True)):
            its = record.is_followed & (fields.register[0] == register)
            its_total = Mux(record.wide, record.is_followed, its)
            written = self._written(register, record.wide, record.after)
            totals.append(self._row(fields.writes & ~partial & its_total, written, total))
            written = self._part(record.after)[1]
            partials.append(self._row(fields.writes & partial & its, written, sum_))
        return Contents(self._m, totals, partials, self._low_bits, is_class=self._is_class)

    def with_promotion_of(self, record: Record) -> Contents:
        """Return the value after the pending promotion of a chunk."""
        fields = record.fields
        totals = []
        for register, total in enumerate(self._totals):
            its = record.is_followed & (fields.wide_total | (fields.register[0] == register))
            written = self._written(register, fields.wide_total, record.total_after)
            totals.append(self._row(record.is_pending & its, written, total))
        return Contents(self._m, totals, self._partials, self._low_bits, is_class=self._is_class)

    def _row(self, writes: Value, word: Value, row: Value) -> Value:
        return named(self._m, "row", Mux(writes, word, row)[: len(row)])

    def holds_pair(self, value: Value) -> Value:
        """Tell whether a value stands in the pair."""
        low, high = self._part(value)
        even, odd = self._totals
        return even == low if self._is_class else (even[: self._low_bits] == low) & (odd == high)

    def holds_total(self, register: Value, value: Value) -> Value:
        """Tell whether a value of a narrow format is the total of a register."""
        return chosen(self._totals, register[0]) == self._part(value)[1]

    def holds_partial(self, register: Value, value: Value) -> Value:
        """Tell whether a value is the partial sum of a register."""
        return chosen(self._partials, register[0]) == self._part(value)[1]

    def holds_accumulator(self, record: Record) -> Value:
        """Tell whether the value that an operation reads is there, if it reads any."""
        fields = record.fields
        value, register = fields.before.as_value(), fields.register
        narrow = Mux(fields.is_product, self.holds_partial(register, value), self.holds_total(register, value))
        holds = Mux(record.wide, self.holds_pair(value), narrow)
        return ~fields.writes | ~record.is_followed | record.fresh | holds


def meets(record: Record, number: Value, low_bits: int) -> Value:
    """Tell whether a number is the accumulator of an operation; the low end of a narrow one has no meaning."""
    wanted = record.fields.before.number
    return (number[low_bits:] == wanted[low_bits:]) & (~record.wide | (number[:low_bits] == wanted[:low_bits]))
