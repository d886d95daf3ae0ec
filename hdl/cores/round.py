"""The one rounder: a normalised significand into a code, to nearest with ties to even, with flags."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth import C, Cat, Const, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.words import choose, jam, named, select_width

__all__ = ["FLAG_BITS", "Round", "flags_layout", "normal_layout", "pack", "result_layout"]

#: Width of the flags of a result, in the bit order of RISC-V ``fflags``.
FLAG_BITS = 5


def flags_layout() -> data.StructLayout:
    """Return the flags, least significant first, at the bits of `golden.Flag`; divide by zero is always 0."""
    return data.StructLayout({"inexact": 1, "underflow": 1, "overflow": 1, "divide_by_zero": 1, "invalid": 1})


def normal_layout(significand_width: int, exponent_width: int) -> data.StructLayout:
    """Return what the rounder takes: ``significand * 2**(exponent - bias - (significand_width - 1))``.

    Precedence: ``is_nan`` over ``is_infinite`` over the number. The number is normalised for its destination: the top
    bit of the significand is 1, or ``exponent`` is 1 (a subnormal or a zero). The lowest bit is sticky. ``invalid``
    has been raised on the way.
    """
    return data.StructLayout(
        {
            "significand": significand_width,
            "exponent": exponent_width,
            "sign": 1,
            "is_infinite": 1,
            "is_nan": 1,
            "invalid": 1,
        }
    )


def result_layout(width: int) -> data.StructLayout:
    """Return a code of `width` bits and the flags that making it raised."""
    return data.StructLayout({"bits": width, "flags": flags_layout()})


def pack(fmt: FloatFormat, *, sign: Value, magnitude: Value, is_infinite: Value, is_nan: Value) -> Value:
    """Return a code: the canonical NaN over infinity over ``[sign | exponent field and fraction]``."""
    code = Cat(Mux(is_infinite, fmt.inf, magnitude)[: fmt.width - 1], sign)
    return Mux(is_nan, Const(fmt.nan, fmt.width), code)


class Round(wiring.Component):
    """Round into one of several formats and pack. Combinational.

    The significand, for a destination with f fraction bits::

        [ h . f f f f f f f f | guard | next | sticky ... ]
          |   `---- kept ---'
          `-- 0: subnormal or zero, exponent field 0

    The rounding decision (nearest, ties to even)::

        guard  next|sticky   lowest kept bit   round up
          0        -                -             no      below half an ulp
          1        0                0             no      tie, already even
          1        0                1             yes     tie, to even
          1        1                -             yes     above half an ulp

    The increment is one addition over ``[exponent field | kept]``: its carry turns the largest subnormal into the
    smallest normal, a full fraction into the next binade and the largest finite value into infinity.

    Parameters
    ----------
    formats : sequence of FloatFormat
        The destinations.
    significand_width : int
        Bits of the incoming significand, at least the widest precision + 3.
    exponent_width : int
        Bits of the incoming exponent, unsigned, biased as the destination is.
    with_flags : bool
        Whether flags are computed; invalid, overflow, underflow and inexact are 0 otherwise.

    Ports
    -----
    i : normal_layout(significand_width, exponent_width), in
    format : unsigned, in
        Index into `formats`.
    o : result_layout(widest format), out
        The code in the low bits, zeros above it, and the flags.
    """

    def __init__(
        self, formats: Sequence[FloatFormat], significand_width: int, exponent_width: int, *, with_flags: bool = True
    ) -> None:
        self.formats = tuple(formats)
        self.with_flags = with_flags
        least = max(fmt.precision for fmt in self.formats) + 3
        if significand_width < least:
            raise ValueError(f"significand_width: got {significand_width}, must be at least {least} bits")
        super().__init__(
            {
                "i": In(normal_layout(significand_width, exponent_width)),
                "format": In(select_width(len(self.formats))),
                "o": Out(result_layout(max(fmt.width for fmt in self.formats))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        width = len(i.significand)
        fraction_bits = max(fmt.fraction_bits for fmt in self.formats)

        # Per destination: the bit `places` below the lowest kept one.
        def below(places: int) -> Value:
            return choose(self.format, [i.significand[width - 1 - fmt.fraction_bits - places] for fmt in self.formats])

        lowest, guard, following = named(m, "lowest", below(0)), named(m, "guard", below(1)), named(m, "next", below(2))
        sticky = named(
            m, "sticky", choose(self.format, [jam(i.significand, fmt.precision + 3)[0] for fmt in self.formats])
        )
        round_up = named(m, "round_up", guard & (lowest | following | sticky))

        # [exponent field | kept | 0]: every destination's fraction at the left of the widest one's
        is_normal = i.significand[-1]
        kept, ulp = [], []
        for fmt in self.formats:
            padding = C(0, fraction_bits - fmt.fraction_bits)
            kept.append(Cat(padding, i.significand[width - 1 - fmt.fraction_bits : width - 1]))
            ulp.append(Cat(padding, round_up))
        magnitude = Cat(choose(self.format, kept), Mux(is_normal, i.exponent, 0))
        rounded = named(m, "rounded", magnitude + choose(self.format, ulp))
        field = rounded[fraction_bits:]
        overflow = named(m, "overflow", choose(self.format, [field >= fmt.exponent_field_max for fmt in self.formats]))

        # Tininess after rounding: with an unbounded exponent the result would have one more bit, `guard`. It reaches
        # the smallest normal only from all ones, and only if the bit after them rounds it up.
        tiny = ~is_normal & ~((field == 1) & following)
        inexact = guard | following | sticky
        is_number = ~(i.is_nan | i.is_infinite)

        codes = []
        for fmt in self.formats:
            start = fraction_bits - fmt.fraction_bits
            code = rounded[start : start + fmt.width - 1]
            codes.append(pack(fmt, sign=i.sign, magnitude=code, is_infinite=i.is_infinite | overflow, is_nan=i.is_nan))
        m.d.comb += o.bits.eq(choose(self.format, codes))
        if self.with_flags:
            m.d.comb += [
                o.flags.invalid.eq(i.invalid),
                o.flags.overflow.eq(is_number & overflow),
                o.flags.underflow.eq(is_number & tiny & inexact),
                o.flags.inexact.eq(is_number & (inexact | overflow)),
            ]
        return m
