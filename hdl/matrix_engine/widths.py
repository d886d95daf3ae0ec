# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The conversion of a row of results to the format of D, and its elements side by side."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hdl.converter import FloatConverter
from hdl.matrix_engine.parameters import CODE_WIDTH, EngineParameters, code_of

__all__ = ["ELEMENT", "Widths"]

#: Bits of the widest element of D.
ELEMENT = 32


class Widths(wiring.Component):
    """Hold a row of results; convert them one by one if the command says so; pack them.

    ::

        row -> held: element 0, 1, ... --> to float32 -> to the format of D, ties to even --.
                 ^         (exact, unless they are float32)                                 |
                 '---------------------------- rotates -------------------------------------'
                 `-> packed: 2 or 4 bytes an element

    A conversion takes a cycle for each column, and 3 more.

    Ports
    -----
    i, o : stream of struct
        ``codes``: an element for each column, at the input of `ELEMENT` bits, at the output packed; ``count``: how many
        of them are to be written.
    is_wide : in
        The elements of D have 4 bytes.
    converts : in
    source, destination : in
        Formats, as in `hdl.matrix_engine.registers.FORMAT_CODES`.
    flags : out
        Flags of a conversion in this cycle.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        row = data.StructLayout(
            {"codes": data.ArrayLayout(ELEMENT, parameters.columns), "count": range(parameters.columns + 1)}
        )
        super().__init__(
            {
                "i": In(stream.Signature(row)),
                "o": Out(stream.Signature(row)),
                "is_wide": In(1),
                "converts": In(1),
                "source": In(4),
                "destination": In(4),
                "flags": Out(5),
            }
        )
        formats = parameters.operands if parameters.conversions else ()
        narrow_results = formats if 2 in parameters.levels else ()
        self.widening = {code_of(fmt): FloatConverter(source=fmt, destination=FP32) for fmt in narrow_results}
        self.narrowing = {
            code_of(fmt): FloatConverter(source=FP32, destination=fmt, subnormals=parameters.subnormals)
            for fmt in formats
        }

    def elaborate(self, platform: object) -> Module:
        m = Module()
        columns = self.parameters.columns
        held, count, has_row = Signal(ELEMENT * columns, reset_less=True), Signal.like(self.i.payload.count), Signal()
        entered, left = Signal(range(columns + 1)), Signal(range(columns + 1))
        is_ready = Signal()
        m.d.comb += [
            is_ready.eq(~self.converts | (left == columns)),
            self.o.valid.eq(has_row & is_ready),
            self.o.payload.count.eq(count),
            self.o.payload.codes.eq(
                Mux(
                    self.is_wide,
                    held,
                    Cat(held.word_select(number, ELEMENT)[:CODE_WIDTH] for number in range(columns)),
                )
            ),
            self.i.ready.eq(~has_row),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += has_row.eq(0)
        if self.narrowing:
            self._convert(m, held, count, has_row, entered, left)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                held.eq(self.i.payload.codes),
                count.eq(self.i.payload.count),
                has_row.eq(1),
                entered.eq(0),
                left.eq(0),
            ]
        return m

    def _convert(self, m: Module, held, count, has_row, entered, left) -> None:
        columns = self.parameters.columns
        # Element number `entered` enters in every cycle; its result takes the place of element number `left`.
        enters, element = Signal(), Signal(ELEMENT)
        m.d.comb += [
            enters.eq(has_row & self.converts & (entered != columns)),
            element.eq(Array(held.word_select(number, ELEMENT) for number in range(columns))[entered]),
        ]
        with m.If(enters):
            m.d.sync += entered.eq(entered + 1)

        single, has_single = Signal(ELEMENT), Signal()
        plain = Signal(ELEMENT)
        m.d.sync += [plain.eq(element), has_single.eq(enters)]
        m.d.comb += single.eq(plain)
        for code, converter in self.widening.items():
            m.submodules[f"widen_{code}"] = converter
            m.d.comb += [
                converter.i.payload.eq(element),
                converter.i.valid.eq(enters),
                converter.o.ready.eq(1),
            ]
            with m.If(self.source == code):
                m.d.comb += single.eq(converter.o.payload.bits)

        ranks = [Signal(ELEMENT, name=f"single_{number}") for number in range(2)]
        has = [Signal(name=f"has_single_{number}") for number in range(2)]
        m.d.sync += [ranks[0].eq(single), ranks[1].eq(ranks[0]), has[0].eq(has_single), has[1].eq(has[0])]
        result, flags = Signal(ELEMENT), Signal(5)
        m.d.comb += result.eq(ranks[1])
        for code, converter in self.narrowing.items():
            m.submodules[f"narrow_{code}"] = converter
            assert converter.latency == len(ranks)
            m.d.comb += [
                converter.i.payload.eq(single),
                converter.i.valid.eq(has_single),
                converter.o.ready.eq(1),
            ]
            with m.If(self.destination == code):
                m.d.comb += [
                    result.eq(converter.o.payload.bits),
                    flags.eq(converter.o.payload.flags.as_value()),
                ]
        with m.If(has[1]):
            m.d.comb += self.flags.eq(Mux(left < count, flags, 0))
            m.d.sync += left.eq(left + 1)
            with m.Switch(left):
                for number in range(columns):
                    with m.Case(number):
                        m.d.sync += held.word_select(number, ELEMENT).eq(result)
