"""The accumulators of all lanes: a bank of 16-bit words for each, so that a pair of lanes holds an fp32 together."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from hdl.mac.lane import class_layout, number_layout
from hdl.vector.operation import vector_operation_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["VectorRegisterFile"]


class VectorRegisterFile(Elaboratable):
    """Hold totals and, where a level has chunks, partial sums: a row of words, one in the bank of each lane.

    ::

        lane                          0        1        2        3
        row of 16-bit numbers      [ n0  ]  [ n1  ]  [ n2  ]  [ n3  ]
        row of fp32 numbers        [ top |   end  ]  [ top |   end  ]    top: as a 16-bit number would stand there;
                                                                         end: the rest of the fraction

    Each bank has the totals of its rows and behind them their partial sums. A word is taken apart already: sign,
    exponent field, fraction, in that order, each as wide as any format needs. The class and the flags of a number are
    written, and read, one cycle later than the number; those of a pair are in its even lane. Reading is combinational;
    what is written is read from the next cycle on. Registers start as +0.

    Parameters
    ----------
    parameters : VectorParameters

    Attributes
    ----------
    reading, class_reading : vector_operation_layout, in
        Whose accumulators, and whose accumulators' classes, to read.
    numbers, classes : list of number_layout, list of class_layout, out
        Of every lane; a number is in the layout of its lane.
    writing, class_writing : vector_operation_layout, in
        Whose results to write at the clock edge.
    results, result_classes : list of number_layout, list of class_layout, in
    """

    def __init__(self, parameters: VectorParameters) -> None:
        self.parameters = parameters
        operation = vector_operation_layout(parameters)
        self.reading, self.class_reading = Signal(operation), Signal(operation)
        self.writing, self.class_writing = Signal(operation), Signal(operation)
        numbers = [number_layout(parameters.of_lane(lane).formats) for lane in range(parameters.lanes)]
        self.numbers = [Signal(number, name=f"number_{lane}") for lane, number in enumerate(numbers)]
        self.results = [Signal(number, name=f"result_{lane}") for lane, number in enumerate(numbers)]
        its_class = class_layout(with_flags=parameters.flags)
        self.classes = [Signal(its_class, name=f"class_{lane}") for lane in range(parameters.lanes)]
        self.result_classes = [Signal(its_class, name=f"result_class_{lane}") for lane in range(parameters.lanes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low_bits = self.parameters.formats.low_fraction_bits
        for even in range(0, self.parameters.lanes, 2):
            odd = even + 1
            # [ end of the fraction | fraction, field, ... ]: the layout begins with the low end of the fraction
            wide, narrow = self.results[even].as_value(), self.results[odd].as_value()
            word_width = max(low_bits, len(narrow))
            word = Mux(self.writing.wide, wide[:low_bits], narrow)[:word_width]
            top = self._bank(m, f"words_{even}", wide[low_bits:], self.reading, self.writing)
            rest = self._bank(m, f"words_{odd}", word, self.reading, self.writing)
            end = rest[:low_bits] & self.reading.wide.replicate(low_bits)
            m.d.comb += [
                self.numbers[even].eq(self._unless_fresh(self.reading, Cat(end, top))),
                self.numbers[odd].eq(self._unless_fresh(self.reading, rest[: len(narrow)])),
            ]
        for lane in range(self.parameters.lanes):
            held = self._bank(
                m, f"classes_{lane}", self.result_classes[lane].as_value(), self.class_reading, self.class_writing
            )
            m.d.comb += self.classes[lane].eq(self._unless_fresh(self.class_reading, held))
        return m

    def _unless_fresh(self, operation: Any, value: Value) -> Value:
        """Return +0, which is all zeros, for an accumulator that starts."""
        return value & (~operation.fresh).replicate(len(value))

    def _bank(self, m: Module, name: str, word: Value, reading: Any, writing: Any) -> Value:
        """Write a word of every operation and return the one to read."""
        rows = self.parameters.registers * (2 if self.parameters.has_chunks else 1)
        m.submodules[name] = bank = Memory(shape=len(word), depth=rows, init=[])
        write, read = bank.write_port(), bank.read_port(domain="comb")
        m.d.comb += [
            read.addr.eq(self._address(reading)),
            write.addr.eq(self._address(writing)),
            write.en.eq(writing.writes),
            write.data.eq(word),
        ]
        return read.data

    def _address(self, operation: Any) -> Value:
        return Cat(operation.register, operation.partial) if self.parameters.has_chunks else operation.register
