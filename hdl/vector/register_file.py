# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The accumulators of all lanes: a bank of 16-bit words for each; a pair of lanes shares an fp32 accumulator."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.bank import Bank, bank_row
from hdl.mac.lane import class_layout, number_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["VectorRegisterFile"]


class VectorRegisterFile(wiring.Component):
    """Store totals and, if a level has chunks, partial sums: a row of words, one in the bank of each lane.

    ::

        lane                          0        1        2        3
        row of 16-bit numbers      [ n0  ]  [ n1  ]  [ n2  ]  [ n3  ]
        row of fp32 numbers        [ top |   end  ]  [ top |   end  ]    top: arranged as a 16-bit number;
                                                                         end: the rest of the fraction

    Each bank holds the totals of its rows, followed by their partial sums. A word is stored unpacked: sign, exponent
    field, fraction, in that order, each as wide as any format needs. The class and the flags of a number are read and
    written later than the number; a pair has them in its even lane. Reading is combinational; a word can be read
    from the cycle after its write. Registers start as +0; a reset does not clear them.

    Parameters
    ----------
    parameters : VectorParameters
    operation : data.StructLayout
        With the fields of `hdl.mac.operation.operation_layout`.

    Ports
    -----
    reading, class_reading : operation, in
        Operations whose accumulators, and accumulators' classes, to read.
    writing, class_writing : operation, in
        Operations whose results, and results' classes, to write at the clock edge.
    number_0, result_0, ... : number_layout, out; in
        The accumulator, and the result, of every lane, in the layout of its lane.
    number_class, result_class : arrays of class_layout, out; in
        Their classes, for every lane.

    Attributes
    ----------
    numbers, results : list
        The ports of the lanes.
    words, classes : tuple of Bank
        State that proofs refer to: the bank of every lane.
    """

    def __init__(self, parameters: VectorParameters, operation: data.StructLayout) -> None:
        self.parameters = parameters
        lanes, its_class = range(parameters.lanes), class_layout(with_flags=parameters.flags)
        numbers = [number_layout(parameters.of_lane(lane).formats) for lane in lanes]
        super().__init__(
            {
                "reading": In(operation),
                "class_reading": In(operation),
                "writing": In(operation),
                "class_writing": In(operation),
                **{f"number_{lane}": Out(number) for lane, number in enumerate(numbers)},
                **{f"result_{lane}": In(number) for lane, number in enumerate(numbers)},
                "number_class": Out(its_class).array(parameters.lanes),
                "result_class": In(its_class).array(parameters.lanes),
            }
        )
        self.numbers = [getattr(self, f"number_{lane}") for lane in lanes]
        self.results = [getattr(self, f"result_{lane}") for lane in lanes]
        low_bits = parameters.formats.low_fraction_bits
        widths = [
            max(low_bits, number.size) if lane % 2 else number.size - low_bits for lane, number in enumerate(numbers)
        ]
        rows = parameters.registers * (2 if parameters.has_chunks else 1)
        self.words = tuple(Bank(width, rows) for width in widths)
        self.classes = tuple(Bank(its_class.size, rows) for _ in lanes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low_bits = self.parameters.formats.low_fraction_bits
        for even in range(0, self.parameters.lanes, 2):
            odd = even + 1
            # [ end of the fraction | fraction, field, ... ]: the layout begins with the low end of the fraction
            wide, narrow = self.results[even].as_value(), self.results[odd].as_value()
            word = Mux(self.writing.wide, wide[:low_bits], narrow)
            m.submodules[f"words_{even}"], m.submodules[f"words_{odd}"] = top, rest = self.words[even], self.words[odd]
            self._connect(m, top, self.reading, self.writing, wide[low_bits:])
            self._connect(m, rest, self.reading, self.writing, word)
            # Bits left below the fraction of a narrower number have no meaning.
            for lane, stored in ((even, Cat(rest.o[:low_bits], top.o)), (odd, rest.o[: len(narrow)])):
                # +0 is all zeros.
                m.d.comb += self.numbers[lane].eq(Mux(self.reading.fresh, 0, stored))
        for lane, bank in enumerate(self.classes):
            m.submodules[f"classes_{lane}"] = bank
            self._connect(m, bank, self.class_reading, self.class_writing, self.result_class[lane])
            m.d.comb += self.number_class[lane].eq(Mux(self.class_reading.fresh, 0, bank.o))
        return m

    def _connect(self, m: Module, bank: Bank, reading: Any, writing: Any, word: Value) -> None:
        """Write and read one word for every operation."""
        m.d.comb += [
            bank.read_row.eq(bank_row(self.parameters, reading, reading.register)),
            bank.write_row.eq(bank_row(self.parameters, writing, writing.register)),
            bank.writes.eq(writing.writes),
            bank.word.eq(word),
        ]
