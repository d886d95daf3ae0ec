"""Conversion to a format whose smallest numbers are as small or smaller: subnormals of the source move left.

::

    significand of the source     [ 0 0 0 0 0 1 x x x x ]    leading zeros: 5 = 4 + 1
    shifted by 4                  [ 0 1 x x x x 0 0 0 0 ]
    shifted by 1                  [ 1 x x x x 0 0 0 0 0 ]    exponent - 5

A number moves until it is normal in the destination, or as far as the difference of the smallest exponents allows.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from golden.rounding import Rounding
from hdl.cores.conversion_words import (
    add_constant,
    at_least,
    overflow_field,
    pick,
    position_of_first,
    rounding_layout,
)
from hdl.cores.rounding import too_large
from hdl.cores.specials import is_special_field
from hdl.cores.words import named, select_width, shift_left
from hdl.float_shape import FloatShape, FloatView

__all__ = ["CoarseShiftLeft", "FineShiftLeft", "coarse_shift_left_layout"]

#: Zeros are searched in groups of this many.
_GROUP = 4


def _rebias(source: FloatFormat, destination: FloatFormat) -> int:
    return destination.bias - source.bias


def _farthest(source: FloatFormat, destination: FloatFormat) -> int:
    """Return the longest distance: a zero's, or the one that reaches the smallest exponent."""
    return min(_rebias(source, destination), source.precision)


def coarse_shift_left_layout(source: FloatFormat, destination: FloatFormat) -> data.StructLayout:
    """Return the fields between `CoarseShiftLeft` and `FineShiftLeft`.

    ``significand`` is shifted by a multiple of four. ``distance`` is the whole distance; a shift by its two low bits
    remains. ``exponent_field`` is the source's, ``is_normal`` says that it is not 0. The others are as in
    `rounding_layout`, but ``is_high`` and ``is_largest`` refer to normal numbers only.
    """
    return data.StructLayout(
        {
            "significand": source.precision,
            "distance": select_width(_farthest(source, destination) + 1),
            "exponent_field": source.exponent_bits,
            "is_normal": 1,
            "sign": 1,
            "is_filled": 1,
            "is_high": 1,
            "is_special": 1,
            "is_largest": 1,
            "is_quiet": 1,
        }
    )


class CoarseShiftLeft(wiring.Component):
    """Count leading zeros, and shift by four for every four of them. Combinational.

    Parameters
    ----------
    source, destination : FloatFormat
        The bias of `destination` is the larger one, or they are equal.

    Ports
    -----
    code : unsigned(source.width), in
    o : coarse_shift_left_layout(source, destination), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        super().__init__({"code": In(source.width), "o": Out(coarse_shift_left_layout(source, destination))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        o = self.o
        view = FloatView(FloatShape(self.source), self.code)
        field = view.exponent_field
        is_normal = named(m, "is_normal", field.any())
        is_special = named(m, "is_special", is_special_field(self.source, field))
        too_high = overflow_field(self.source, self.destination)
        numbers_end = self.source.max_finite_field + 1

        # [ leading | fraction ]: at most `farthest` leading zeros are counted, and a one below them ends the search.
        # The lowest `low` fraction bits of a number that is not shifted lie below the round bit.
        low = max(0, self.source.fraction_bits - self.destination.precision)
        word = Cat(view.fraction, is_normal)
        farthest = _farthest(self.source, self.destination)
        searched = Cat(C(1, 1), word[len(word) - farthest :])[::-1]
        groups = [searched[start : start + _GROUP] for start in range(0, farthest + 1, _GROUP)]
        found = [searched[: start + _GROUP].any() for start in range(0, farthest + 1, _GROUP)]
        group = position_of_first(m, "group", found[:-1])
        shifted = pick(group, [Cat(C(0, shift), word)[: len(word)] for shift in range(0, farthest + 1, _GROUP)])
        first = named(m, "first", pick(group, [Cat(bits, C(0, _GROUP - len(bits))) for bits in groups]))
        by_two = named(m, "by_two", ~(first[0] | first[1]))
        fine = Cat(Mux(by_two, ~first[2], ~first[0]), by_two)
        m.d.comb += [
            o.significand.eq(shifted),
            o.distance.eq(Cat(fine, group)),
            o.exponent_field.eq(field),
            o.is_normal.eq(is_normal),
            o.sign.eq(view.sign),
            o.is_filled.eq(view.fraction[low:].any()),
            o.is_high.eq(at_least(field, min(max(1, too_high), numbers_end))),
            o.is_special.eq(is_special),
            o.is_largest.eq(field == too_high - 1 if 1 < too_high <= numbers_end else 0),
            o.is_quiet.eq(view.fraction[-1]),
        ]
        return m


class FineShiftLeft(wiring.Component):
    """Shift by up to three places, and make the destination's exponent field. Combinational.

    Ports
    -----
    i : coarse_shift_left_layout(source, destination), in
    o : rounding_layout(destination), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        super().__init__(
            {"i": In(coarse_shift_left_layout(source, destination)), "o": Out(rounding_layout(destination))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        source, destination = self.source, self.destination
        farthest = _farthest(source, destination)
        word = i.significand
        shifted = shift_left(m, word, i.distance[:2])
        # [ leading | fraction | round_bit | next | low ]
        padded = Cat(C(0, max(0, destination.fraction_bits + 2 - source.fraction_bits)), shifted)
        places = len(padded) - 1 - destination.fraction_bits
        fraction, round_bit, below = padded[places:-1], padded[places - 1], padded[: places - 1]

        is_high, is_largest = i.is_high, i.is_largest
        field = i.exponent_field
        rebias = _rebias(source, destination)
        if rebias:
            # A subnormal's field depends only on the distance; at the longest it is a zero or still a subnormal.
            fields = [1 + rebias - distance for distance in range(farthest)]
            beyond = destination.max_finite_field + 1
            last = shifted[-1] if farthest == rebias else C(0, 1)
            table = [C(min(value, beyond), destination.exponent_bits) for value in fields]
            subnormal_field = pick(i.distance, [*table, last])
            field = Mux(i.is_normal, add_constant(field, rebias, destination.exponent_bits), subnormal_field)
            is_high = is_high | _among(m, i, [value >= beyond for value in fields])
            is_largest = is_largest | _among(m, i, [value == beyond - 1 for value in fields])
        unshifted = Cat(round_bit, fraction, field)
        if overflow_field(source, destination) != source.max_finite_field + 1:
            unshifted = Mux(is_high, too_large(destination, Rounding.NEAREST_EVEN, i.sign) << 1, unshifted)
        m.d.comb += [
            o.unshifted.eq(unshifted),
            o.sign.eq(i.sign),
            o.sticky.eq(below.any()),
            o.is_special.eq(i.is_special),
            o.is_filled.eq(i.is_filled),
            o.all_ones.eq(fraction.all() & round_bit),
            o.is_too_large.eq(is_high & ~i.is_special),
            o.is_largest.eq(is_largest & ~i.is_special),
            o.is_subnormal.eq(~shifted[-1]),
            o.is_nearly_normal.eq(below[-1]),
            o.is_quiet.eq(i.is_quiet),
        ]
        return m


def _among(m: Module, i: data.View, chosen: list[bool]) -> Value:
    """Return whether a subnormal's distance is among the chosen ones; if there are none, no logic is built."""
    if not any(chosen[1:]):
        return C(0, 1)
    return ~i.is_normal & pick(i.distance, [*(C(value, 1) for value in chosen), C(0, 1)])
