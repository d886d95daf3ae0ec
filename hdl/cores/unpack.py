"""A code taken apart: class, sign, effective exponent, significand with its leading bit."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import C, Cat, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.words import choose, named, select_width
from hdl.float_shape import FloatShape, FloatView

__all__ = ["Unpack", "unpacked_layout"]


def unpacked_layout(formats: Sequence[FloatFormat]) -> data.StructLayout:
    """Return the fields of a number unpacked from one of the formats.

    Precedence: ``is_nan`` over ``is_infinite`` over ``is_zero`` over the number. The number is
    ``significand * 2**(exponent - bias - (precision - 1))``, with `precision` the widest of the formats: narrower
    significands stand at the left. ``exponent`` is the exponent field, but 1 for a subnormal or a zero, whose leading
    bit is 0: no normalisation is needed to add or multiply.
    """
    return data.StructLayout(
        {
            "significand": max(fmt.precision for fmt in formats),
            "exponent": max(fmt.exponent_bits for fmt in formats),
            "sign": 1,
            "is_zero": 1,
            "is_infinite": 1,
            "is_signalling": 1,
            "is_nan": 1,
        }
    )


class Unpack(wiring.Component):
    """Take a code of one of several formats apart. Combinational.

    ::

        code         [ s | exponent_field | fraction       ]
        significand                     [ h | fraction | 0 ]    h = exponent_field is not 0

    Parameters
    ----------
    formats : sequence of FloatFormat
        What `code` may hold.

    Ports
    -----
    code : unsigned(widest format), in
        The code, in the low bits.
    format : unsigned(select_width(len(formats))), in
        Index into `formats`.
    o : unpacked_layout(formats), out
    """

    def __init__(self, formats: Sequence[FloatFormat]) -> None:
        self.formats = tuple(formats)
        super().__init__(
            {
                "code": In(max(fmt.width for fmt in self.formats)),
                "format": In(select_width(len(self.formats))),
                "o": Out(unpacked_layout(self.formats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        precision = len(self.o.significand)
        views = [FloatView(FloatShape(fmt), self.code[: fmt.width]) for fmt in self.formats]

        # [ fraction | 0 ]: the top fraction bit of every format at one place
        fractions = [
            Cat(C(0, precision - fmt.precision), view.fraction) for fmt, view in zip(self.formats, views, strict=True)
        ]
        field = named(m, "field", choose(self.format, [view.exponent_field for view in views]))
        fraction = named(m, "fraction", choose(self.format, fractions))
        field_is_ones = named(m, "field_is_ones", choose(self.format, [view.exponent_field.all() for view in views]))
        field_is_zero = named(m, "field_is_zero", field == 0)
        fraction_is_zero = named(m, "fraction_is_zero", fraction == 0)
        m.d.comb += [
            self.o.sign.eq(choose(self.format, [view.sign for view in views])),
            self.o.exponent.eq(Mux(field_is_zero, 1, field)),
            self.o.significand.eq(Cat(fraction, ~field_is_zero)),
            self.o.is_zero.eq(field_is_zero & fraction_is_zero),
            self.o.is_infinite.eq(field_is_ones & fraction_is_zero),
            self.o.is_nan.eq(field_is_ones & ~fraction_is_zero),
            self.o.is_signalling.eq(field_is_ones & ~fraction_is_zero & ~fraction[-1]),
        ]
        return m
