"""Exact conversion of codes of narrow formats into a wider one, in front of the multiplication."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Cat, Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion import Convert
from hdl.cores.specials import classify
from hdl.cores.words import choose, select_width
from hdl.float_shape import FloatShape, FloatView

__all__ = ["Widen"]


class Widen(wiring.Component):
    """Convert a code of one of several formats to `inner`, which holds all their numbers. Combinational.

    A signalling NaN stays signalling, so that the step still raises invalid.

    Parameters
    ----------
    formats : sequence of FloatFormat
    inner : FloatFormat
    flushes : bool
        Whether subnormal codes become zeros of their sign.

    Ports
    -----
    code : unsigned(width of the widest), in
        In the low bits.
    format : unsigned, in
        Index into `formats`.
    o : unsigned(inner.width), out
    """

    def __init__(self, formats: Sequence[FloatFormat], inner: FloatFormat, *, flushes: bool = False) -> None:
        self.formats, self.inner, self.flushes = tuple(formats), inner, flushes
        super().__init__(
            {
                "code": In(max(fmt.width for fmt in formats)),
                "format": In(select_width(len(formats))),
                "o": Out(inner.width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        signalling = Const(self.inner.inf | 1, self.inner.width)
        codes = []
        for fmt in self.formats:
            if fmt == self.inner:
                codes.append(self.code[: fmt.width])
                continue
            m.submodules[f"from_{fmt}"] = convert = Convert(fmt, self.inner)
            m.d.comb += convert.code.eq(self.code[: fmt.width])
            word = Mux(convert.o.flags.invalid, signalling, convert.o.bits)
            if self.flushes:  # a code that its inner format holds as a normal number
                view = FloatView(FloatShape(fmt), self.code[: fmt.width])
                is_zero = ~view.exponent_field.any() & ~classify(fmt, view.as_value()).is_nan
                word = Cat(word[:-1] & ~is_zero.replicate(self.inner.width - 1), word[-1])
            codes.append(word)
        m.d.comb += self.o.eq(choose(self.format, codes))
        return m
