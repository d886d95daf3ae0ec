"""Conversion between two formats: unpack, bring the exponent into the destination's range, round."""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.round import Round, normal_layout, pack, result_layout
from hdl.cores.unpack import Unpack, unpacked_layout
from hdl.cores.words import jam, leading_zero_count, shift_left, shift_right_sticky

__all__ = ["ConversionRound", "Convert", "Rescale", "rescaled_layout"]


def _exponent_width(source: FloatFormat, destination: FloatFormat) -> int:
    largest = source.exponent_field_max + max(0, destination.bias - source.bias)
    return max(largest.bit_length(), destination.exponent_bits)


def rescaled_layout(source: FloatFormat, destination: FloatFormat):
    """Return the fields between `Rescale` and `ConversionRound`: kept bits, guard, next and sticky."""
    return normal_layout(destination.precision + 3, _exponent_width(source, destination))


class Rescale(wiring.Component):
    """Re-bias the exponent and shift the significand so that it is normalised for the destination. Combinational.

    One of three happens, known when the converter is built:

    - The smallest exponents are equal (bf16 and fp32): no shift.
    - The destination reaches lower: source subnormals become normal, the significand moves left::

        [ 0 0 0 1 x x x 0 0 0 ]  ->  [ 1 x x x 0 0 0 0 0 0 ]    exponent - 3

    - The destination ends higher: small numbers become subnormal, the significand moves right, with a sticky bit::

        [ 1 x x x x x x x x x ]  ->  [ 0 0 0 1 x x x x x S ]    exponent + 3, which is then 1

    Parameters
    ----------
    source, destination : FloatFormat

    Ports
    -----
    i : unpacked_layout((source,)), in
    o : rescaled_layout(source, destination), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        super().__init__({"i": In(unpacked_layout((source,))), "o": Out(rescaled_layout(source, destination))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        width = len(o.significand)
        rebias = self.destination.bias - self.source.bias
        if rebias == 0:
            m.d.comb += [o.significand.eq(jam(i.significand, width)), o.exponent.eq(i.exponent)]
        elif rebias > 0:
            # Only a subnormal has leading zeros; its exponent is 1 + rebias and must not fall below 1.
            count = leading_zero_count(m, i.significand)
            distance = Signal(min(len(count), rebias.bit_length()))
            unshifted = jam(i.significand, max(width, len(i.significand)))
            m.d.comb += [
                distance.eq(Mux(count > rebias, rebias, count)),
                o.significand.eq(jam(shift_left(m, unshifted, distance), width)),
                o.exponent.eq(i.exponent + rebias - distance),
            ]
        else:
            exponent = Signal(range(1 + rebias, self.source.exponent_field_max + rebias + 1))
            below = Signal(range(-rebias + 1))
            limit = (1 << width.bit_length()) - 1
            distance = Signal(width.bit_length())
            m.d.comb += [
                exponent.eq(i.exponent + rebias),
                below.eq(Mux(exponent < 1, 1 - exponent, 0)),
                distance.eq(Mux(below > limit, limit, below)),
                o.significand.eq(shift_right_sticky(m, jam(i.significand, width), distance)),
                o.exponent.eq(Mux(exponent < 1, 1, exponent)),
            ]
        m.d.comb += [
            o.sign.eq(i.sign),
            o.is_nan.eq(i.is_nan),
            o.is_infinite.eq(i.is_infinite),
            o.invalid.eq(i.is_signalling),
        ]
        return m


class ConversionRound(wiring.Component):
    """Round into the destination; wires and NaN handling where the destination holds every source value. Combinational.

    Ports
    -----
    i : rescaled_layout(source, destination), in
    o : result_layout(destination.width), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat, *, with_flags: bool = True) -> None:
        self.source, self.destination, self.with_flags = source, destination, with_flags
        super().__init__({"i": In(rescaled_layout(source, destination)), "o": Out(result_layout(destination.width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        if not self.destination.holds(self.source):
            m.submodules.round = rounder = Round(
                (self.destination,), len(i.significand), len(i.exponent), with_flags=self.with_flags
            )
            m.d.comb += [rounder.i.eq(i), o.eq(rounder.o)]
            return m
        fraction = i.significand[-1 - self.destination.fraction_bits : -1]
        field = Mux(i.significand[-1], i.exponent, 0)[: self.destination.exponent_bits]
        m.d.comb += o.bits.eq(
            pack(
                self.destination,
                sign=i.sign,
                magnitude=Cat(fraction, field),
                is_infinite=i.is_infinite,
                is_nan=i.is_nan,
            )
        )
        if self.with_flags:
            m.d.comb += o.flags.invalid.eq(i.invalid)
        return m


class Convert(wiring.Component):
    """Convert a code of `source` into a code of `destination`, with flags. Combinational.

    Parameters
    ----------
    source, destination : FloatFormat
    with_flags : bool
        Whether flags are computed; they are 0 otherwise.

    Ports
    -----
    code : unsigned(source.width), in
    o : result_layout(destination.width), out
        Fields ``bits`` and ``flags``.
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat, *, with_flags: bool = True) -> None:
        self.source, self.destination, self.with_flags = source, destination, with_flags
        super().__init__({"code": In(source.width), "o": Out(result_layout(destination.width))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unpack = unpack = Unpack((self.source,))
        m.submodules.rescale = rescale = Rescale(self.source, self.destination)
        m.submodules.round = rounder = ConversionRound(self.source, self.destination, with_flags=self.with_flags)
        m.d.comb += [unpack.code.eq(self.code), rescale.i.eq(unpack.o), rounder.i.eq(rescale.o), self.o.eq(rounder.o)]
        return m
