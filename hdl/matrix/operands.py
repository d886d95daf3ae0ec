# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""Operands of rows and columns: taken apart and normalised once, not in every lane."""

from __future__ import annotations

from amaranth import C, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.copies import copied
from hdl.cores.operand import classify_flushed, inspect_flushed, inspect_operand, normalise_operand
from hdl.cores.product import product_bias
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, select_width
from hdl.matrix.parameters import MatrixParameters

__all__ = ["Operand", "factor_layout", "one_as_factor", "split_layout"]


def split_layout(formats: StepFormats) -> data.StructLayout:
    """Return the layout of an unpacked code: the result of `hdl.cores.operand.split_code`."""
    return data.StructLayout(
        {
            "sign": 1,
            "field": max(fmt.exponent_bits for fmt in formats.operands),
            "fraction": formats.operand_precision - 1,
            "is_normal": 1,
        }
    )


def factor_layout(formats: StepFormats) -> data.StructLayout:
    """Return the layout of a factor of lanes: a normalised significand, and the class that overrides the number.

    The exponent of a zero is so low that it needs no further attention.
    """
    return data.StructLayout(
        {
            "significand": formats.operand_precision,
            "sign": 1,
            "exponent": signed(formats.product_exponent_width),
            "is_zero": 1,
            "is_infinite": 1,
            "is_nan": 1,
            "is_signalling": 1,
        }
    )


def one_as_factor(m: Module, formats: StepFormats, index: Value, accumulator_index: Value) -> Bundle:
    """Return 1.0 with the exponent that a second factor has: the constant of `product_bias` is in it."""
    exponent = Signal(signed(formats.product_exponent_width), name="exponent_of_one")
    m.d.comb += exponent.eq(
        choose(index, [C(fmt.bias, signed(len(exponent))) for fmt in formats.operands])
        + product_bias(m, formats, index, accumulator_index)
    )
    none = C(0, 1)
    return Bundle(
        significand=C(1 << (formats.operand_precision - 1), formats.operand_precision),
        sign=none,
        exponent=exponent,
        is_zero=none,
        is_infinite=none,
        is_nan=none,
        is_signalling=none,
    )


class Operand(wiring.Component):
    """Normalise the operand of a row or of a column.

    ::

        split code | inspect | normalise, 1.0 for a promotion |
                 arrive    unpack                           normal     the names of the ranks

    Parameters
    ----------
    parameters : MatrixParameters
    is_second : bool
        Whether it is the factor of a column: its exponent has the constant of `product_bias`, and it becomes 1.0 for
        a promotion.

    Ports
    -----
    i : split_layout, in
        The operand of the operation issued a cycle ago, behind the rank ``arrive``.
    format, accumulator_format : in
        The formats of the operation that is issued now.
    promotes : in
        That operation is a promotion, in the same formats.
    o : factor_layout, out
        Behind the rank ``normal``.
    """

    def __init__(self, parameters: MatrixParameters, *, is_second: bool) -> None:
        self.parameters, self._is_second = parameters, is_second
        formats = parameters.formats
        index, accumulator_index = (select_width(len(each)) for each in (formats.operands, formats.accumulators))
        super().__init__(
            {
                "i": In(split_layout(formats)),
                "format": In(index),
                "accumulator_format": In(accumulator_index),
                "promotes": In(1),
                "o": Out(factor_layout(formats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        formats, kind = self.parameters.formats, self.parameters.multiplier
        split = Bundle(**{name: self.i[name] for name, _ in self.i.shape()}, is_infinite=C(0, 1), is_nan=C(0, 1))
        index = copied(m, "index", self.format, kind)
        if formats.flushes:
            inspected = inspect_flushed(formats.operands, index, split, split.is_normal)
        else:
            inspected = inspect_operand(m, formats.operands, index, split)
        biased = Signal(signed(formats.product_exponent_width), name="biased_exponent")
        bias: Value = C(0, 1)
        if self._is_second:
            accumulator_index = copied(m, "accumulator_index", self.accumulator_format, kind)
            bias = product_bias(m, formats, index, accumulator_index)
        m.d.comb += biased.eq(inspected.exponent + bias)
        inspected = inspected.but(exponent=biased).registered(m, "unpack")
        factor = classify_flushed(inspected) if formats.flushes else normalise_operand(m, inspected)
        factor = factor.but(exponent=Mux(factor.is_zero, self.parameters.zeros[self._is_second], factor.exponent))
        if self._is_second and self.parameters.has_chunks:
            one = one_as_factor(m, formats, index, accumulator_index).registered(m, "one")
            promotes = copied(m, "promotes_next", copied(m, "promotes_there", self.promotes, kind), kind)
            factor = Bundle(**{name: Mux(promotes, value, getattr(factor, name)) for name, value in vars(one).items()})
        for name, field in self.o.shape():
            behind = Signal(field.shape, name=f"normal_{name}", reset_less=True)
            m.d.sync += behind.eq(getattr(factor, name))
            m.d.comb += self.o[name].eq(behind)
        return m
