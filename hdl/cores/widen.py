"""Exact conversion of codes of narrow formats into a wider one, in front of the multiplication."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion import Convert
from hdl.cores.words import choose, select_width

__all__ = ["Widen"]


class Widen(wiring.Component):
    """Convert a code of one of several formats to `inner`, which holds all their numbers. Combinational.

    A signalling NaN stays signalling, so that the step still raises invalid.

    Parameters
    ----------
    formats : sequence of FloatFormat
    inner : FloatFormat

    Ports
    -----
    code : unsigned(width of the widest), in
        In the low bits.
    format : unsigned, in
        Index into `formats`.
    o : unsigned(inner.width), out
    """

    def __init__(self, formats: Sequence[FloatFormat], inner: FloatFormat) -> None:
        self.formats, self.inner = tuple(formats), inner
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
            codes.append(Mux(convert.o.flags.invalid, signalling, convert.o.bits))
        m.d.comb += self.o.eq(choose(self.format, codes))
        return m
