"""Adding an exact product to an accumulator: compare exponents, align, add."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.multiply import product_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.unpack import unpacked_layout
from hdl.cores.words import shift_right_sticky

__all__ = ["Add", "Align", "Compare", "addends_layout", "compared_layout", "sum_layout"]


def _outcome() -> dict[str, int]:
    """What is decided from the classes alone and travels beside the number.

    Precedence: ``is_nan`` over ``is_infinite`` (with ``infinite_sign``) over the number.
    """
    return {"is_nan": 1, "invalid": 1, "is_infinite": 1, "infinite_sign": 1}


def compared_layout(formats: StepFormats) -> data.StructLayout:
    """Return product and accumulator sorted by exponent.

    ``upper`` has the larger exponent, ``exponent``; ``lower`` is `distance` places below it. Both significands stand
    at the left of a word as wide as the wider of them.
    """
    width = max(formats.product_width, formats.accumulator_precision)
    return data.StructLayout(
        {
            "upper": width,
            "lower": width,
            "upper_sign": 1,
            "lower_sign": 1,
            "exponent": formats.exponent_width,
            "distance": formats.distance_width,
            **_outcome(),
        }
    )


def addends_layout(formats: StepFormats) -> data.StructLayout:
    """Return both addends in the window: the top bit has the weight of ``exponent``, the lowest bit is sticky."""
    return data.StructLayout(
        {
            "upper": formats.window_width,
            "lower": formats.window_width,
            "upper_sign": 1,
            "lower_sign": 1,
            "exponent": formats.exponent_width,
            **_outcome(),
        }
    )


def sum_layout(formats: StepFormats) -> data.StructLayout:
    """Return the exact sum (but for its sticky bit): the top bit of ``magnitude`` has the weight of ``exponent``."""
    return data.StructLayout(
        {
            "magnitude": formats.window_width + 1,
            "sign": 1,
            "exponent": formats.exponent_width,
            "is_nan": 1,
            "invalid": 1,
            "is_infinite": 1,
        }
    )


class Compare(wiring.Component):
    """Sort product and accumulator by exponent and decide what NaNs and infinities make of them. Combinational.

    Parameters
    ----------
    formats : StepFormats

    Ports
    -----
    product : product_layout(formats), in
    accumulator : unpacked_layout(formats.accumulators), in
    o : compared_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        super().__init__(
            {
                "product": In(product_layout(formats)),
                "accumulator": In(unpacked_layout(formats.accumulators)),
                "o": Out(compared_layout(formats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        product, accumulator, o = self.product, self.accumulator, self.o
        width = len(o.upper)
        # [ significand | 0 ]: top bits at one place
        product_word = Cat(C(0, width - len(product.significand)), product.significand)
        accumulator_word = Cat(C(0, width - len(accumulator.significand)), accumulator.significand)

        # Either may be the longer word: the products of a format with a high bias are far below most of fp32.
        difference = Signal(signed(max(len(product.exponent), len(accumulator.exponent) + 1) + 1))
        product_is_lower = difference[-1]
        magnitude = Mux(product_is_lower, -difference, difference)[: len(difference)]
        m.d.comb += [
            difference.eq(product.exponent - accumulator.exponent),
            o.upper.eq(Mux(product_is_lower, accumulator_word, product_word)),
            o.lower.eq(Mux(product_is_lower, product_word, accumulator_word)),
            o.upper_sign.eq(Mux(product_is_lower, accumulator.sign, product.sign)),
            o.lower_sign.eq(Mux(product_is_lower, product.sign, accumulator.sign)),
            o.exponent.eq(Mux(product_is_lower, accumulator.exponent, product.exponent)),
            o.distance.eq(magnitude[: len(o.distance)] | magnitude[len(o.distance) :].any().replicate(len(o.distance))),
        ]
        opposite_infinities = product.is_infinite & accumulator.is_infinite & (product.sign ^ accumulator.sign)
        m.d.comb += [
            o.is_nan.eq(product.is_nan | accumulator.is_nan | opposite_infinities),
            o.invalid.eq(product.invalid | accumulator.is_signalling | (opposite_infinities & ~product.is_nan)),
            o.is_infinite.eq(product.is_infinite | accumulator.is_infinite),
            o.infinite_sign.eq(Mux(product.is_infinite, product.sign, accumulator.sign)),
        ]
        return m


class Align(wiring.Component):
    """Shift the lower addend into its place. Combinational.

    ::

        upper  [ u u u u u u u u 0 0 0 0 0 0 0 0 0 ]
        lower  [ 0 0 0 0 0 l l l l l l l l 0 0 0 0 ]    distance 5
        lower  [ 0 0 0 0 0 0 0 0 0 0 0 l l l l l S ]    distance 11: two bits fell out, S is 1 if one of them was

    Ports
    -----
    i : compared_layout(formats), in
    o : addends_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        super().__init__({"i": In(compared_layout(formats)), "o": Out(addends_layout(formats))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        padding = C(0, self.formats.window_width - len(i.upper))
        m.d.comb += [
            o.upper.eq(Cat(padding, i.upper)),
            o.lower.eq(shift_right_sticky(m, Cat(padding, i.lower), i.distance)),
        ]
        m.d.comb += [o[name].eq(i[name]) for name in ("upper_sign", "lower_sign", "exponent", *_outcome())]
        return m


class Add(wiring.Component):
    """Add or subtract the addends; the result is a sign and a magnitude. Combinational.

    The sign of an exact zero is + unless both addends are negative. A sticky bit in the lowest place of the shifted
    addend makes the difference odd, hence inexact, and leaves every bit above it as in the exact difference.

    Ports
    -----
    i : addends_layout(formats), in
    o : sum_layout(formats), out
    """

    def __init__(self, formats: StepFormats) -> None:
        self.formats = formats
        super().__init__({"i": In(addends_layout(formats)), "o": Out(sum_layout(formats))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        width = self.formats.window_width
        subtract = i.upper_sign ^ i.lower_sign
        # One adder: upper + lower, or upper + ~lower + 1, whose carry is 1 unless lower is the larger.
        total = Signal(width + 1)
        m.d.comb += total.eq(i.upper + (i.lower ^ subtract.replicate(width)) + subtract)
        is_negative = subtract & ~total[-1]
        difference = total[:-1]
        is_zero = total[:-1] == 0
        m.d.comb += [
            o.magnitude.eq(Mux(subtract, Mux(is_negative, -difference, difference)[:width], total)),
            o.exponent.eq(i.exponent + 1),
            o.is_nan.eq(i.is_nan),
            o.invalid.eq(i.invalid),
            o.is_infinite.eq(i.is_infinite),
        ]
        sign = Mux(is_zero & subtract, 0, i.upper_sign ^ is_negative)
        m.d.comb += o.sign.eq(Mux(i.is_infinite, i.infinite_sign, sign))
        return m
