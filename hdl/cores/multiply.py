"""The exact product: the visible boundary between multiplier and adder."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.step_formats import StepFormats
from hdl.cores.unpack import unpacked_layout
from hdl.cores.words import choose, select_width

__all__ = ["Multiply", "product_layout"]


def product_layout(formats: StepFormats) -> data.StructLayout:
    """Return the fields of an exact product, not normalised.

    Precedence: ``is_nan`` over ``is_infinite`` over the number, which is
    ``significand * 2**(exponent - bias - (product_width - 1))`` with the bias of the accumulator. A zero product has
    exponent 0, below that of every accumulator, so that it never pushes one out of the window.
    """
    return data.StructLayout(
        {
            "significand": formats.product_width,
            "exponent": signed(formats.product_exponent_width),
            "sign": 1,
            "is_infinite": 1,
            "is_nan": 1,
            "invalid": 1,
        }
    )


class Multiply(wiring.Component):
    """Multiply two unpacked operands exactly. Combinational.

    Parameters
    ----------
    formats : StepFormats

    Ports
    -----
    a, b : unpacked_layout(formats.operands), in
    format, accumulator_format : unsigned, in
        Indices into `formats.operands` and `formats.accumulators`.
    o : product_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        operand = unpacked_layout(formats.operands)
        super().__init__(
            {
                "a": In(operand),
                "b": In(operand),
                "format": In(select_width(len(formats.operands))),
                "accumulator_format": In(select_width(len(formats.accumulators))),
                "o": Out(product_layout(formats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, o, formats = self.a, self.b, self.o, self.formats
        bias = Signal(signed(formats.product_exponent_width))
        m.d.comb += bias.eq(
            choose(
                self.format,
                [
                    choose(
                        self.accumulator_format,
                        [formats.product_bias(operand, accumulator) for accumulator in formats.accumulators],
                    )
                    for operand in formats.operands
                ],
            )
        )
        infinity_times_zero = (a.is_infinite & b.is_zero) | (a.is_zero & b.is_infinite)
        m.d.comb += [
            o.significand.eq(a.significand * b.significand),
            o.exponent.eq(Mux(a.is_zero | b.is_zero, 0, a.exponent + b.exponent + bias)),
            o.sign.eq(a.sign ^ b.sign),
            o.is_infinite.eq(a.is_infinite | b.is_infinite),
            o.is_nan.eq(a.is_nan | b.is_nan | infinity_times_zero),
            o.invalid.eq(a.is_signalling | b.is_signalling | infinity_times_zero),
        ]
        return m
