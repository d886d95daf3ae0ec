"""Conversion to a format whose smallest numbers are larger: what falls below its normal range moves right.

::

    significand of the source     [ 1 | x x x x x x x x x x x x x ]
    exponent in the range         [ field | x x x x | g | ------- sticky ------- ]
    exponent 3 below it           [   0   | 0 0 1 x | g | --------- sticky --------- ]

The distance less 1 is (`reach` - exponent field), where `reach` is the last exponent field below the normal range. Only
as many low bits of the exponent field decide on it as the distance has bits: whether the number is to be shifted at
all, or is too small for that, is found out meanwhile and clears the result.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion_words import add_constant, at_least, overflow_field, pick, rounding_layout
from hdl.cores.words import named, select_width
from hdl.float_shape import FloatShape, FloatView

__all__ = ["CoarseShiftRight", "FineShiftRight", "fine_shift_right_layout"]

#: Distances of the fine shift.
_FINE = 4


def _distance_bits(destination: FloatFormat) -> int:
    """Return the bits of a distance, less 1, that takes everything past the guard bit."""
    return max(select_width(_FINE), select_width(destination.precision))


def _steps(destination: FloatFormat) -> range:
    """Return the distances of the coarse shift."""
    return range(0, 1 << _distance_bits(destination), _FINE)


def fine_shift_right_layout(source: FloatFormat, destination: FloatFormat) -> data.StructLayout:
    """Return the fields between `FineShiftRight` and `CoarseShiftRight`.

    ``shifted`` ends in the guard bit; ``coarse`` counts the steps of four yet to be shifted. For each number of steps,
    ``fell_out`` is the OR of what the fine shift pushes out after them, ``filled`` of the four bits that one step more
    takes, and ``leading`` is the leading bit. ``is_normal`` and ``is_shifted`` say which of the two words counts; if
    neither, the number is too large or too small. The others are as in `rounding_layout`.
    """
    groups = len(_steps(destination))
    return data.StructLayout(
        {
            "unshifted": destination.width,
            "shifted": destination.precision,
            "coarse": _distance_bits(destination) - select_width(_FINE),
            "fell_out": groups,
            "filled": groups,
            "leading": 1,
            "is_normal": 1,
            "is_shifted": 1,
            "is_high": 1,
            "sign": 1,
            "sticky": 1,
            "is_special": 1,
            "is_zero_field": 1,
            "all_ones": 1,
            "is_largest": 1,
            "is_subnormal": 1,
            "is_nearly_normal": 1,
            "is_quiet": 1,
        }
    )


class FineShiftRight(wiring.Component):
    """Shift by one to four places, and find out how many steps of four are to follow. Combinational.

    Parameters
    ----------
    source, destination : FloatFormat
        The bias of `source` is the larger one.

    Ports
    -----
    code : unsigned(source.width), in
    o : fine_shift_right_layout(source, destination), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        super().__init__({"code": In(source.width), "o": Out(fine_shift_right_layout(source, destination))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        o, source, destination = self.o, self.source, self.destination
        view = FloatView(FloatShape(source), self.code)
        field = view.exponent_field
        reach = source.bias - destination.bias
        too_large = overflow_field(source, destination)
        steps = _steps(destination)
        smallest = reach + 1 - len(steps) * _FINE

        # [ leading | fraction down to the guard bit | low ]
        fraction = Cat(C(0, max(0, destination.precision - source.fraction_bits)), view.fraction)
        low, kept = fraction[: -destination.precision], fraction[-destination.precision :]

        # A subnormal counts as exponent field 1, with leading bit 0; where even 1 is too small, that matters to none.
        is_zero_field = named(m, "is_zero_field", field == 0)
        lowest, leading = field[0], C(1, 1)
        if smallest <= 1:
            lowest, leading = lowest | is_zero_field, ~is_zero_field
        word = Cat(kept, leading)
        bits = _distance_bits(destination)
        low_field = Cat(lowest, field[1:], C(0, max(0, bits - len(field))))[:bits]
        distances = [(reach - value) % (1 << bits) for value in range(1 << bits)]
        fine, fine_distances = low_field[:2], [distance % _FINE for distance in distances[:_FINE]]

        def fell_out(step: int) -> Value:
            groups = [word[step : step + distance + 1] for distance in fine_distances]
            return pick(fine, [group.any() if len(group) else C(0, 1) for group in groups])

        is_normal = named(m, "is_normal", at_least(field, reach + 1) & ~at_least(field, too_large) & ~field.all())
        m.d.comb += [
            o.unshifted.eq(Cat(kept, add_constant(field, -reach, destination.exponent_bits))),
            o.shifted.eq(pick(fine, [word[distance + 1 :] for distance in fine_distances])),
            o.coarse.eq(pick(low_field, [C(distance // _FINE, bits - 2) for distance in distances]) if bits > 2 else 0),
            o.fell_out.eq(Cat(fell_out(step) for step in steps)),
            o.filled.eq(Cat(kept[step : step + _FINE].any() if step < len(kept) else C(0, 1) for step in steps)),
            o.leading.eq(leading),
            o.is_normal.eq(is_normal),
            o.is_shifted.eq(at_least(field, smallest if smallest > 1 else 0) & ~at_least(field, reach + 1)),
            o.is_high.eq(at_least(field, min(too_large, source.exponent_field_max))),
            o.sign.eq(view.sign),
            o.sticky.eq(low.any()),
            o.is_special.eq(field.all()),
            o.is_zero_field.eq(is_zero_field),
            o.all_ones.eq(kept.all()),
            o.is_largest.eq(field == too_large - 1 if too_large <= source.exponent_field_max else 0),
            o.is_subnormal.eq(~at_least(field, reach + 1)),
            o.is_nearly_normal.eq(field == reach if reach <= source.exponent_field_max else 0),
            o.is_quiet.eq(view.fraction[-1]),
        ]
        return m


class CoarseShiftRight(wiring.Component):
    """Shift by steps of four, and clear what is not to count. Combinational.

    Ports
    -----
    i : fine_shift_right_layout(source, destination), in
    o : rounding_layout(destination), out
    """

    def __init__(self, source: FloatFormat, destination: FloatFormat) -> None:
        self.source, self.destination = source, destination
        super().__init__(
            {"i": In(fine_shift_right_layout(source, destination)), "o": Out(rounding_layout(destination))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o = self.i, self.o
        steps = _steps(self.destination)
        lost = [
            i.fell_out[number] | i.filled[:number].any() if step <= self.destination.precision else i.leading | i.filled.any()
            for number, step in enumerate(steps)
        ]
        is_filled = named(m, "is_filled", i.filled.any())
        m.d.comb += [
            o.unshifted.eq(Mux(i.is_normal, i.unshifted, 0)),
            o.shifted.eq(Mux(i.is_shifted, pick(i.coarse, [i.shifted[step:] for step in steps]), 0)),
            o.is_high.eq(i.is_high),
            o.sign.eq(i.sign),
            o.sticky.eq(Cat(i.sticky, Mux(i.is_shifted, pick(i.coarse, lost), 0))),
            o.is_special.eq(i.is_special),
            o.is_filled.eq(is_filled),
            # Too large or too small, only a zero and an infinity lose nothing; `sticky` knows the rest of the fraction.
            o.is_lost.eq(
                ~i.is_normal & ~i.is_shifted & ~i.is_special & (~i.is_zero_field | is_filled)
            ),
            o.all_ones.eq(i.all_ones),
            o.is_too_large.eq(i.is_high & ~i.is_special),
            o.is_largest.eq(i.is_largest),
            o.is_subnormal.eq(i.is_subnormal),
            o.is_nearly_normal.eq(i.is_nearly_normal),
            o.is_quiet.eq(i.is_quiet),
        ]
        return m
