"""The accumulators: two banks of 16-bit registers, so that an even-aligned pair is read and written at once."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from hdl.mac.lane import class_layout, number_layout
from hdl.mac.operation import operation_layout
from hdl.mac.parameters import MacParameters

__all__ = ["RegisterFile"]


class RegisterFile(Elaboratable):
    """Hold totals and, where a level has chunks, partial sums.

    ::

        register     0    1    2    3    4    5
        even bank  [ 0 ]     [ 2 ]     [ 4 ]         fp32 in a pair: the end of its fraction in the even register,
        odd bank        [ 1 ]     [ 3 ]     [ 5 ]    the rest, as a narrower number would stand there, in the odd one

    Each bank has the totals of its registers and behind them their partial sums. A word is taken apart already: sign,
    exponent field, fraction, in that order, each as wide as any format needs. The class and the flags of a number are
    written, and read, one cycle later than the number; those of a pair are in its even half. Reading is combinational;
    what is written is read from the next cycle on. Registers start as +0.

    Parameters
    ----------
    parameters : MacParameters

    Attributes
    ----------
    reading, class_reading : operation_layout, in
        Whose accumulator, and whose accumulator's class, to read.
    number, number_class : number_layout, class_layout, out
    writing, class_writing : operation_layout, in
        Whose result to write at the clock edge.
    result, word, result_class : number_layout, unsigned, class_layout, in
        ``word`` is what goes into an even register.
    """

    def __init__(self, parameters: MacParameters) -> None:
        self.parameters = parameters
        operation, number = operation_layout(parameters), number_layout(parameters.formats)
        self.reading, self.class_reading = Signal(operation), Signal(operation)
        self.writing, self.class_writing = Signal(operation), Signal(operation)
        self.number, self.result = Signal(number), Signal(number)
        self.word = Signal(len(self.result.as_value()) - parameters.formats.low_fraction_bits)
        its_class = class_layout(with_flags=parameters.flags)
        self.number_class, self.result_class = Signal(its_class), Signal(its_class)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = self.parameters
        low_bits = parameters.formats.low_fraction_bits
        fresh = self.reading.fresh
        depth = parameters.registers // 2 * (2 if parameters.has_chunks else 1)

        # [ low fraction | fraction, field, ... ]: the layout begins with the low end of the fraction
        high = self.result.as_value()[low_bits:]
        words = []
        for parity, name in enumerate(("even", "odd")):
            m.submodules[name] = bank = Memory(shape=len(self.word), depth=depth, init=[])
            write, read = bank.write_port(), bank.read_port(domain="comb")
            m.d.comb += [
                read.addr.eq(self._address(self.reading)),
                write.addr.eq(self._address(self.writing)),
                write.en.eq(self._is_written(self.writing, parity)),
                write.data.eq(high if parity else self.word),
            ]
            words.append(read.data)

        even, odd = words
        is_odd = self.reading.wide | self.reading.register[0]
        # +0 is all zeros.
        chosen = Mux(fresh, 0, Mux(is_odd, odd, even)[: len(high)])
        # What this leaves below the fraction of a narrower number has no meaning.
        rest = even[:low_bits] & (~fresh).replicate(low_bits)
        m.d.comb += self.number.eq(Cat(rest, chosen))
        self._add_classes(m, depth)
        return m

    def _add_classes(self, m: Module, depth: int) -> None:
        words = []
        for parity, name in enumerate(("even_class", "odd_class")):
            m.submodules[name] = bank = Memory(shape=self.result_class.shape(), depth=depth, init=[])
            write, read = bank.write_port(), bank.read_port(domain="comb")
            m.d.comb += [
                read.addr.eq(self._address(self.class_reading)),
                write.addr.eq(self._address(self.class_writing)),
                write.en.eq(self._is_written(self.class_writing, parity)),
                write.data.eq(self.result_class),
            ]
            words.append(read.data)
        even, odd = words
        is_odd = self.class_reading.register[0] & ~self.class_reading.wide
        m.d.comb += self.number_class.eq(Mux(self.class_reading.fresh, 0, Mux(is_odd, odd.as_value(), even.as_value())))

    def _address(self, operation: Any) -> Value:
        register = operation.register[1:]
        return Cat(register, operation.partial) if self.parameters.has_chunks else register

    def _is_written(self, operation: Any, parity: int) -> Value:
        return operation.writes & (operation.wide | (operation.register[0] == parity))
