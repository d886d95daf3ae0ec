"""One fused step as a single combinational core: what the pipelined unit computes, without its registers."""

from __future__ import annotations

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.accumulate import Add, Align, Compare
from hdl.cores.multiply import Multiply, product_layout
from hdl.cores.normalise import CountLeadingZeros, Normalise, step_normal_layout
from hdl.cores.round import Round, result_layout
from hdl.cores.step_formats import StepFormats
from hdl.cores.unpack import Unpack
from hdl.cores.words import select_width

__all__ = ["AddProduct", "FusedStep", "make_round"]


def make_round(formats: StepFormats, *, with_flags: bool = True) -> Round:
    """Return the rounder of a step."""
    layout = step_normal_layout(formats)
    return Round(formats.accumulators, layout["significand"].width, layout["exponent"].width, with_flags=with_flags)


class AddProduct(wiring.Component):
    """``round(product + acc)``: everything behind the multiplier. Combinational.

    Ports
    -----
    product : product_layout(formats), in
    acc : unsigned(formats.accumulator_width), in
        Code, in the low bits.
    accumulator_format : unsigned, in
        Index into `formats.accumulators`.
    o : result_layout(formats.accumulator_width), out
    """

    def __init__(self, formats: StepFormats, *, with_flags: bool = True) -> None:
        self.formats, self.with_flags = formats, with_flags
        super().__init__(
            {
                "product": In(product_layout(formats)),
                "acc": In(formats.accumulator_width),
                "accumulator_format": In(select_width(len(formats.accumulators))),
                "o": Out(result_layout(formats.accumulator_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        formats = self.formats
        m.submodules.unpack = unpack = Unpack(formats.accumulators)
        m.submodules.compare = compare = Compare(formats)
        m.submodules.align = align = Align(formats)
        m.submodules.add = add = Add(formats)
        m.submodules.count = count = CountLeadingZeros(formats)
        m.submodules.normalise = normalise = Normalise(formats)
        m.submodules.round = rounder = make_round(formats, with_flags=self.with_flags)
        m.d.comb += [
            unpack.code.eq(self.acc),
            unpack.format.eq(self.accumulator_format),
            compare.product.eq(self.product),
            compare.accumulator.eq(unpack.o),
            align.i.eq(compare.o),
            add.i.eq(align.o),
            count.i.eq(add.o),
            normalise.i.eq(count.o),
            rounder.i.eq(normalise.o),
            rounder.format.eq(self.accumulator_format),
            self.o.eq(rounder.o),
        ]
        return m


class FusedStep(wiring.Component):
    """``round(a * b + acc)``, one rounding. Combinational.

    Parameters
    ----------
    formats : StepFormats
    with_flags : bool
        Whether flags are computed; they are 0 otherwise.

    Ports
    -----
    a, b : unsigned(formats.operand_width), in
        Codes, in the low bits.
    acc : unsigned(formats.accumulator_width), in
    format, accumulator_format : unsigned, in
        Indices into `formats.operands` and `formats.accumulators`.
    o : result_layout(formats.accumulator_width), out
    """

    def __init__(self, formats: StepFormats, *, with_flags: bool = True) -> None:
        self.formats, self.with_flags = formats, with_flags
        super().__init__(
            {
                "a": In(formats.operand_width),
                "b": In(formats.operand_width),
                "acc": In(formats.accumulator_width),
                "format": In(select_width(len(formats.operands))),
                "accumulator_format": In(select_width(len(formats.accumulators))),
                "o": Out(result_layout(formats.accumulator_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unpack_a = unpack_a = Unpack(self.formats.operands)
        m.submodules.unpack_b = unpack_b = Unpack(self.formats.operands)
        m.submodules.multiply = multiply = Multiply(self.formats)
        m.submodules.add_product = add_product = AddProduct(self.formats, with_flags=self.with_flags)
        m.d.comb += [
            unpack_a.code.eq(self.a),
            unpack_a.format.eq(self.format),
            unpack_b.code.eq(self.b),
            unpack_b.format.eq(self.format),
            multiply.a.eq(unpack_a.o),
            multiply.b.eq(unpack_b.o),
            multiply.format.eq(self.format),
            multiply.accumulator_format.eq(self.accumulator_format),
            add_product.product.eq(multiply.o),
            add_product.acc.eq(self.acc),
            add_product.accumulator_format.eq(self.accumulator_format),
            self.o.eq(add_product.o),
        ]
        return m
