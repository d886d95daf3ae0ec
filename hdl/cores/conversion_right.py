"""Conversion to a format whose smallest numbers are larger: what falls below its normal range moves right.

::

    significand of the source     [ 1 | x x x x x x x x x x x x x ]
    exponent in the range         [ field | x x x x | g | ------- sticky ------- ]
    exponent 3 below it           [   0   | 0 0 1 x | g | --------- sticky --------- ]

The distance less 1 is (`reach` - exponent field), where `reach` is the last exponent field below the normal range. Its
two low bits depend on the two low bits of the exponent field alone, so that they choose the bits of a fine shift as
they are. The rest is which group of four the exponent field lies in: comparisons with constants, made meanwhile.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion_words import (
    add_constant,
    at_least,
    overflow_field,
    pick,
    position_of_first,
    rounding_layout,
)
from hdl.cores.words import named, select_width
from hdl.float_shape import FloatShape, FloatView

__all__ = ["CoarseShiftRight", "FineShiftRight", "fine_shift_right_layout"]

#: Distances of the fine shift.
_FINE = 4


def _groups(destination: FloatFormat) -> int:
    """Return in how many steps of four everything down to the guard bit has left."""
    return -(-destination.precision // _FINE)


def fine_shift_right_layout(source: FloatFormat, destination: FloatFormat) -> data.StructLayout:
    """Return the fields between `FineShiftRight` and `CoarseShiftRight`.

    ``unshifted`` and ``shifted`` end in the guard bit; ``group`` is 0 for a number that stays unshifted, and otherwise
    the steps of four yet to be shifted, plus 1. ``is_high``: too large, or ``is_special``; ``is_outside``: that or too
    small for any group; ``sticky`` is complete for these. The others as in `rounding_layout`.
    """
    return data.StructLayout(
        {
            "unshifted": destination.precision,
            "shifted": destination.precision,
            "group": select_width(_groups(destination) + 1),
            "fell_out": 1,
            "exponent_field": destination.exponent_bits,
            "sign": 1,
            "sticky": 1,
            "is_high": 1,
            "is_outside": 1,
            "is_special": 1,
            "may_overflow": 1,
            "is_quiet": 1,
        }
    )


class FineShiftRight(wiring.Component):
    """Shift by up to four places, and find out how many steps of four are to follow. Combinational.

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
        o = self.o
        view = FloatView(FloatShape(self.source), self.code)
        field = view.exponent_field
        reach = self.source.bias - self.destination.bias
        groups = _groups(self.destination)
        too_large = overflow_field(self.source, self.destination)

        # [ leading | fraction down to the guard bit | low ]
        fraction = Cat(C(0, max(0, self.destination.precision - self.source.fraction_bits)), view.fraction)
        low, kept = fraction[: -self.destination.precision], fraction[-self.destination.precision :]

        # A subnormal counts as exponent field 1, with leading bit 0. Where both are beyond the last group, that they
        # are is all that matters.
        fine = field[:2]
        leading = C(1, 1)
        is_zero_field = named(m, "is_zero_field", field == 0)
        if reach <= _FINE * groups:
            fine, leading = Cat(field[0] | is_zero_field, field[1]), ~is_zero_field
        word = Cat(kept, leading)
        distances = [1 + (reach - value) % _FINE for value in range(_FINE)]

        # One threshold more than there are groups: the last is that of everything that is neither shifted nor shifted
        # out.
        reached = [
            at_least(field, limit if limit > 1 else 0) for limit in range(reach + 1, reach - _FINE * groups, -_FINE)
        ]
        is_high = named(m, "is_high", at_least(field, min(too_large, self.source.exponent_field_max)))
        is_special = named(m, "is_special", field.all())
        is_outside = named(m, "is_outside", is_high | ~reached[-1])
        # Outside, only a zero and an infinity lose nothing.
        loses = named(m, "loses", ~(is_special | is_zero_field) | kept.any())
        m.d.comb += [
            o.unshifted.eq(kept),
            o.shifted.eq(pick(fine, [word[distance:] for distance in distances])),
            o.group.eq(position_of_first(m, "group", reached[:-1])),
            o.fell_out.eq(pick(fine, [word[:distance].any() for distance in distances])),
            o.exponent_field.eq(add_constant(field, -reach, self.destination.exponent_bits)),
            o.sign.eq(view.sign),
            o.sticky.eq(low.any() | (is_outside & loses)),
            o.is_high.eq(is_high),
            o.is_outside.eq(is_outside),
            o.is_special.eq(is_special),
            o.may_overflow.eq(at_least(field, too_large - 1)),
            o.is_quiet.eq(view.fraction[-1]),
        ]
        return m


class CoarseShiftRight(wiring.Component):
    """Shift by steps of four, and decide on what is too large or too small to be shifted. Combinational.

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
        is_normal = i.group == 0
        steps = [_FINE * step for step in range(_groups(self.destination))]
        lost = [C(0, 1)]
        for step in steps:
            lost.append(i.fell_out | i.shifted[:step].any())
        kept = pick(i.group, [i.unshifted, *(i.shifted[step:] for step in steps)])
        m.d.comb += [
            Cat(o.guard, o.fraction).eq(Mux(i.is_outside, 0, kept)),
            o.exponent_field.eq(
                Mux(i.is_high, self.destination.exponent_field_max, Mux(is_normal, i.exponent_field, 0))
            ),
            o.sign.eq(i.sign),
            o.sticky.eq(Cat(i.sticky, pick(i.group, lost) & ~i.is_outside)),
            o.is_special.eq(i.is_special),
            o.next.eq(i.unshifted[0]),
            o.is_subnormal.eq(~is_normal),
            o.may_overflow.eq(i.may_overflow),
            o.is_quiet.eq(i.is_quiet),
        ]
        return m
