"""What the register file will hold when operations in flight have written to it."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Value

from hdl.cores.words import named
from sim.formal.along_model.record import Record

__all__ = ["PLACES", "Contents", "meets"]

#: The total of register 0 and the low end of a pair, the total of register 1 and the rest of a pair, partial sums.
PLACES = ("even", "odd", "even_partial", "odd_partial")


class Contents:
    """The rows of the register file, as they will be.

    Parameters
    ----------
    m : Module
    rows : dict of str to Value
        Of each of `PLACES`.
    low_bits : int
        Bits of the low end of a pair; 0 for classes and flags, of which those in the even half count.
    is_class : bool
    """

    def __init__(self, m: Module, rows: dict[str, Value], low_bits: int, *, is_class: bool) -> None:
        self._m, self.rows, self.low_bits, self.is_class = m, rows, low_bits, is_class

    def _part(self, value: Any) -> tuple[Value, Value]:
        """Return what of a value stands in the even row of a pair; what stands in a row of its own."""
        if self.is_class:
            return (Cat(value[-7:]),) * 2
        number = value[: len(value) - 7]
        return number[: self.low_bits], number[self.low_bits :]

    def _written(self, value: Any, noise: Value) -> tuple[Value, Value]:
        """Return what is written of a value to the even row of a pair; to a row of its own."""
        low, high = self._part(value)
        return low if self.is_class else Cat(low, noise), high

    def with_operation(self, record: Record) -> Contents:
        """Return what an operation makes of it."""
        fields = record.fields
        low, high = self._written(record.after, fields.given.noise)
        partial, writes = fields.is_product & ~fields.is_chain, fields.writes
        return self._with(
            {
                "even": (writes & ~partial & (record.wide | ~fields.register[0]), Mux(record.wide, low, high)),
                "odd": (writes & ~partial & (record.wide | fields.register[0]), high),
                "even_partial": (writes & partial & ~fields.register[0], high),
                "odd_partial": (writes & partial & fields.register[0], high),
            }
        )

    def with_promotion_of(self, record: Record) -> Contents:
        """Return what the promotion that is to come of a chunk will make of it."""
        fields = record.fields
        low, high = self._written(record.total_after, fields.total_given.noise)
        pending, wide = record.is_pending, fields.wide_total
        return self._with(
            {
                "even": (pending & (wide | ~fields.register[0]), Mux(wide, low, high)),
                "odd": (pending & (wide | fields.register[0]), high),
            }
        )

    def _with(self, changes: dict[str, tuple[Value, Value]]) -> Contents:
        rows = dict(self.rows)
        for place, (writes, word) in changes.items():
            rows[place] = named(self._m, place, Mux(writes, word, rows[place])[: len(rows[place])])
        return Contents(self._m, rows, self.low_bits, is_class=self.is_class)

    def holds_wide(self, value: Any) -> Value:
        """Tell whether a value stands in the pair."""
        low, high = self._part(value)
        if self.is_class:
            return self.rows["even"] == low
        return (self.rows["even"][: self.low_bits] == low) & (self.rows["odd"] == high)

    def holds_total(self, register: Value, value: Any) -> Value:
        """Tell whether a value of a narrow format is the total of a register."""
        return Mux(register, self.rows["odd"], self.rows["even"]) == self._part(value)[1]

    def holds_partial(self, register: Value, value: Any) -> Value:
        """Tell whether a value is the partial sum of a register."""
        return Mux(register, self.rows["odd_partial"], self.rows["even_partial"]) == self._part(value)[1]

    def holds_accumulator(self, record: Record) -> Value:
        """Tell whether what an operation must read is there, if it reads anything."""
        fields = record.fields
        value, register = fields.before.as_value(), fields.register[0]
        narrow = Mux(fields.is_product, self.holds_partial(register, value), self.holds_total(register, value))
        return ~fields.writes | record.fresh | Mux(record.wide, self.holds_wide(value), narrow)


def meets(record: Record, number: Value, low_bits: int) -> Value:
    """Tell whether a number is the accumulator of an operation; of a narrow one the low end has no meaning."""
    wanted = record.fields.before.number
    return (number[low_bits:] == wanted[low_bits:]) & (~record.wide | (number[:low_bits] == wanted[:low_bits]))
