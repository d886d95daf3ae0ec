# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The rank of words between the bus and block RAM, with the converters of float32 operands."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32
from hdl.converter import FloatConverter
from hdl.matrix_engine.parameters import EngineParameters
from hdl.pipeline import rank

__all__ = ["Narrow"]

_STAGES = 2


class Narrow(wiring.Component):
    """Take words of the bus to words of codes; round float32 numbers to the operand format, ties to even.

    ::

        word -+-> rank -> rank ------------------+-> codes
              '-> FloatConverter to format 0 -.  |
              '-> FloatConverter to format 1 --+-'

    All ranks move together. Without converters there is one rank. Of float32 elements of C, the halves are taken that
    `is_high` says, in place of a conversion.

    Ports
    -----
    i, o : stream of bus words
    is_float32, format : in
        Of the word at the input.
    is_c, is_high : in
        Likewise. Only with initial values.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        super().__init__(
            {
                "i": In(stream.Signature(parameters.bus_width)),
                "o": Out(stream.Signature(parameters.bus_width)),
                "is_float32": In(1),
                "format": In(range(max(2, len(parameters.operands)))),
                **({"is_c": In(1), "is_high": In(1)} if parameters.initial else {}),
            }
        )
        #: A converter for each float32 number of a word, for each operand format. Operands keep their subnormals
        #: until the array flushes them (NUMERICS section 12).
        self.converters = [
            [
                FloatConverter(source=FP32, destination=fmt, stages=_STAGES, flags=False)
                for _ in range(parameters.bus_width // FP32.width if parameters.conversions else 0)
            ]
            for fmt in parameters.operands
        ]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        enable = Signal()
        m.d.comb += [enable.eq(~self.o.valid | self.o.ready), self.i.ready.eq(enable)]
        word, valid = self.i.payload, self.i.valid
        names = ("is_float32", "format", *(("is_c", "is_high") if self.parameters.initial else ()))
        controls = Signal(data.StructLayout({name: getattr(self, name).shape() for name in names}))
        m.d.comb += [controls[name].eq(getattr(self, name)) for name in names]
        for number in range(_STAGES if self.parameters.conversions else 1):
            word = rank(m, f"word_{number}", word, enable)
            valid = rank(m, f"valid_{number}", valid, enable, reset=True)
            controls = rank(m, f"controls_{number}", controls, enable)
        m.d.comb += [self.o.payload.eq(word), self.o.valid.eq(valid)]
        if self.parameters.conversions:
            self._convert(m, controls)
        if self.parameters.initial:
            width = FP32.width // 2
            chosen = [word.word_select(at + controls.is_high, width) for at in range(0, len(word) // width, 2)]
            with m.If(controls.is_c & controls.is_float32):
                m.d.comb += self.o.payload.eq(Cat(chosen))
        return m

    def _convert(self, m: Module, controls: Any) -> None:
        with m.If(controls.is_float32):
            with m.Switch(controls.format):
                for index, converters in enumerate(self.converters):
                    with m.Case(index):
                        m.d.comb += self.o.payload.eq(Cat(each.o.payload.bits for each in converters))
        for index, converters in enumerate(self.converters):
            for number, converter in enumerate(converters):
                m.submodules[f"convert_{index}_{number}"] = converter
                m.d.comb += [
                    converter.i.payload.eq(self.i.payload.word_select(number, FP32.width)),
                    converter.i.valid.eq(self.i.valid),
                    # Their ranks move with the others: a converter stalls only while it offers a result.
                    converter.o.ready.eq(self.o.ready),
                ]
