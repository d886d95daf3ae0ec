# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The accumulators: two banks of 16-bit registers, so that an even-aligned pair is read and written at once."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.bank import Bank, bank_row
from hdl.mac.lane import class_layout, number_layout
from hdl.mac.parameters import MacParameters

__all__ = ["RegisterFile"]


class RegisterFile(wiring.Component):
    """Store totals and, if a level has chunks, partial sums.

    ::

        register     0    1    2    3    4    5
        even bank  [ 0 ]     [ 2 ]     [ 4 ]         fp32 in a pair: the end of its fraction in the even register,
        odd bank        [ 1 ]     [ 3 ]     [ 5 ]    the rest in the odd one, arranged as a narrower number

    Each bank holds the totals of its registers, followed by their partial sums. A word is stored unpacked: sign,
    exponent field, fraction, in that order, each as wide as any format needs. The class and the flags of a number are
    read later than the number; a pair has them in its even half. Reading is combinational; a written value can be read
    from the next cycle on, its number also in the same cycle. Registers start as +0; a reset does not clear them.

    Parameters
    ----------
    parameters : MacParameters
    operation : data.StructLayout
        With the fields of `hdl.mac.operation.operation_layout`.

    Ports
    -----
    reading, class_reading : operation, in
        Operations whose accumulator, and accumulator's class, to read.
    number, number_class : number_layout, class_layout, out
    writing : operation, in
        The operation whose result to write at the clock edge.
    result, result_class : number_layout, class_layout, in
    passes_by : in
        The number that is written is the one to read.

    Attributes
    ----------
    numbers, classes : tuple of Bank
        State that proofs refer to: the even bank and the odd one.
    """

    def __init__(self, parameters: MacParameters, operation: data.StructLayout) -> None:
        self.parameters = parameters
        number, its_class = number_layout(parameters.formats), class_layout(with_flags=parameters.flags)
        word = number.size - parameters.formats.low_fraction_bits
        super().__init__(
            {
                "reading": In(operation),
                "class_reading": In(operation),
                "writing": In(operation),
                "number": Out(number),
                "number_class": Out(its_class),
                "result": In(number),
                "result_class": In(its_class),
                "passes_by": In(1),
            }
        )
        depth = parameters.registers // 2 * (2 if parameters.has_chunks else 1)
        self.numbers = (Bank(word, depth), Bank(word, depth))
        self.classes = (Bank(its_class.size, depth), Bank(its_class.size, depth))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low_bits = self.parameters.formats.low_fraction_bits
        fresh = self.reading.fresh
        m.submodules.even, m.submodules.odd = self.numbers
        m.submodules.even_class, m.submodules.odd_class = self.classes
        # [ low fraction | fraction, field, ... ]: the layout begins with the low end of the fraction
        low, high = self.result.as_value()[:low_bits], self.result.as_value()[low_bits:]
        for parity, word in enumerate((Mux(self._is_wide(self.writing), low, high) if low_bits else high, high)):
            self._connect(m, self.numbers[parity], parity, self.reading, word)
            self._connect(m, self.classes[parity], parity, self.class_reading, self.result_class)

        even, odd = (bank.o for bank in self.numbers)
        is_odd = self._is_wide(self.reading) | self.reading.register[0]
        # Bits left below the fraction of a narrower number have no meaning.
        stored = Cat(even[:low_bits], Mux(is_odd, odd, even)[: len(high)])
        # +0 is all zeros.
        m.d.comb += self.number.eq(Mux(fresh, 0, Mux(self.passes_by, self.result.as_value(), stored)))
        even, odd = (bank.o for bank in self.classes)
        is_odd = self.class_reading.register[0] & ~self._is_wide(self.class_reading)
        m.d.comb += self.number_class.eq(Mux(self.class_reading.fresh, 0, Mux(is_odd, odd, even)))
        return m

    def _is_wide(self, operation: Any) -> Value:
        """Return whether an operation's accumulator is a pair: without chunks, every one is."""
        return operation.wide if self.parameters.has_chunks else C(1, 1)

    def _connect(self, m: Module, bank: Bank, parity: int, reading: Any, word: Value) -> None:
        writing = self.writing
        m.d.comb += [
            bank.read_row.eq(bank_row(self.parameters, reading, reading.register[1:])),
            bank.write_row.eq(bank_row(self.parameters, writing, writing.register[1:])),
            bank.writes.eq(writing.writes & (self._is_wide(writing) | (writing.register[0] == parity))),
            bank.word.eq(word),
        ]
