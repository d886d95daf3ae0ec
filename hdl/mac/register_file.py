# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The accumulators: two banks of 16-bit registers, so that an even-aligned pair is read and written at once."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Value
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
    written and read one cycle later than the number; a pair has them in its even half. Reading is combinational; a
    written value can be read from the next cycle on. Registers start as +0; a reset does not clear them.

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
    writing, class_writing : operation, in
        Operations whose result, and result's class, to write at the clock edge.
    result, word, result_class : number_layout, unsigned, class_layout, in
        ``word`` is the value for an even register.

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
                "class_writing": In(operation),
                "number": Out(number),
                "number_class": Out(its_class),
                "result": In(number),
                "word": In(word),
                "result_class": In(its_class),
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
        high = self.result.as_value()[low_bits:]
        for parity, word in enumerate((self.word, high)):
            self._connect(m, self.numbers[parity], parity, self.reading, self.writing, word)
            self._connect(m, self.classes[parity], parity, self.class_reading, self.class_writing, self.result_class)

        even, odd = (bank.o for bank in self.numbers)
        is_odd = self.reading.wide | self.reading.register[0]
        # +0 is all zeros.
        chosen = Mux(fresh, 0, Mux(is_odd, odd, even)[: len(high)])
        # Bits left below the fraction of a narrower number have no meaning.
        rest = even[:low_bits] & (~fresh).replicate(low_bits)
        m.d.comb += self.number.eq(Cat(rest, chosen))
        even, odd = (bank.o for bank in self.classes)
        is_odd = self.class_reading.register[0] & ~self.class_reading.wide
        m.d.comb += self.number_class.eq(Mux(self.class_reading.fresh, 0, Mux(is_odd, odd, even)))
        return m

    def _connect(self, m: Module, bank: Bank, parity: int, reading: Any, writing: Any, word: Value) -> None:
        m.d.comb += [
            bank.read_row.eq(bank_row(self.parameters, reading, reading.register[1:])),
            bank.write_row.eq(bank_row(self.parameters, writing, writing.register[1:])),
            bank.writes.eq(writing.writes & (writing.wide | (writing.register[0] == parity))),
            bank.word.eq(word),
        ]
