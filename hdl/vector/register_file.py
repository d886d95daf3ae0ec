# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The accumulators of all lanes: a bank of 16-bit words for each; a pair of lanes shares an fp32 accumulator."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.mac.bank import Bank, bank_row
from hdl.mac.lane import class_layout, number_layout
from hdl.vector.parameters import VectorParameters

__all__ = ["VectorRegisterFile"]

_ALWAYS = C(1)


class VectorRegisterFile(wiring.Component):
    """Store totals and, if a level has chunks, partial sums: a row of words, one in the bank of each lane.

    ::

        bank of                   lane 0   pair    lane 1     lane 2   pair    lane 3
        row of 16-bit numbers     [ n0  ]          [ n1  ]    [ n2  ]          [ n3  ]
        row of fp32 numbers       [ top |    end ]            [ top |    end ]

        top: arranged as a 16-bit number; end: the rest of the fraction

    The bank of a lane holds the totals of its rows, followed by their partial sums. A word is stored unpacked: sign,
    exponent field, fraction, in that order, each as wide as any format needs. The class and the flags of a number are
    read and written later than the number; a pair has them in its even lane. Reading is combinational; a word can be
    read from the cycle after its write. Registers start as +0; a reset does not clear them.

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
    low_ends : tuple of Bank
        State that proofs refer to: the ends of fp32 numbers, for every pair of lanes; none in a unit without fp32.
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
        rows = parameters.registers * (2 if parameters.has_chunks else 1)
        self.words = tuple(
            Bank(number.size - (0 if lane % 2 else low_bits), rows) for lane, number in enumerate(numbers)
        )
        self.low_ends = tuple(Bank(low_bits, parameters.registers) for _ in lanes[::2]) if low_bits else ()
        self.classes = tuple(Bank(its_class.size, rows) for _ in lanes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low_bits = self.parameters.formats.low_fraction_bits
        for lane, (bank, number, result) in enumerate(zip(self.words, self.numbers, self.results, strict=True)):
            m.submodules[f"words_{lane}"] = bank
            word, stored = result.as_value(), bank.o
            if lane % 2 == 0 and low_bits:
                # [ fraction's end | fraction, field, ... ]
                end = m.submodules[f"low_ends_{lane}"] = self.low_ends[lane // 2]
                # fp32 numbers are totals: this bank's rows have no bit for partial sums.
                self._connect(m, end, self.reading, self.writing, word[:low_bits], self.writing.wide)
                word, stored = word[low_bits:], Cat(end.o, stored)
            self._connect(m, bank, self.reading, self.writing, word)
            # +0 is all zeros. Bits left below the fraction of a narrower number have no meaning.
            m.d.comb += number.eq(Mux(self.reading.fresh, 0, stored))
        for lane, bank in enumerate(self.classes):
            m.submodules[f"classes_{lane}"] = bank
            self._connect(m, bank, self.class_reading, self.class_writing, self.result_class[lane])
            m.d.comb += self.number_class[lane].eq(Mux(self.class_reading.fresh, 0, bank.o))
        return m

    def _connect(
        self, m: Module, bank: Bank, reading: Any, writing: Any, word: Value, has_word: Value = _ALWAYS
    ) -> None:
        """Write and read one word for every operation; one without a word writes none."""
        m.d.comb += [
            bank.read_row.eq(bank_row(self.parameters, reading, reading.register)),
            bank.write_row.eq(bank_row(self.parameters, writing, writing.register)),
            bank.writes.eq(writing.writes & has_word),
            bank.word.eq(word),
        ]
