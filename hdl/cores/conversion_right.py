"""Conversion to a format whose smallest numbers are larger: numbers below its normal range move right.

::

    significand of the source     [ 1 | x x x x x x x x x x x x x ]
    exponent in the range         [ field | x x x x | g | ------- sticky ------- ]
    exponent 3 below it           [   0   | 0 0 1 x | g | --------- sticky --------- ]

The distance less 1 is (`reach` - exponent field), where `reach` is the last exponent field below the normal range. Its
two low bits depend only on the two low bits of the exponent field, which therefore control a fine shift directly. In
parallel, comparisons with constants select one of the groups of four distances; a number in no group gives 0.
"""

from __future__ import annotations

from amaranth import C, Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FloatFormat
from hdl.cores.conversion_words import add_constant, at_least, between, overflow_field, pick, rounding_layout
from hdl.cores.specials import is_special_field
from hdl.cores.words import named
from hdl.float_shape import FloatShape, FloatView

__all__ = ["CoarseShiftRight", "FineShiftRight", "fine_shift_right_layout"]

#: Distances of the fine shift.
_FINE = 4


def _steps(destination: FloatFormat) -> range:
    """Return the distances of the coarse shift; a longer one would leave no bit above the sticky bit."""
    return range(0, destination.precision, _FINE)


def fine_shift_right_layout(source: FloatFormat, destination: FloatFormat) -> data.StructLayout:
    """Return the fields between `FineShiftRight` and `CoarseShiftRight`.

    ``shifted`` ends in the round bit. ``group`` has a bit for each step of the coarse shift, which selects it. A step
    ends at a group of bits: ``fell_out`` is the OR of the bits that the fine shift pushes out of it, ``filled`` the OR
    of the whole group. ``is_normal`` selects ``unshifted``, ``is_low`` says that the number is too small for any step.
    The others are as in `rounding_layout`.
    """
    groups = len(_steps(destination))
    return data.StructLayout(
        {
            "unshifted": destination.width,
            "shifted": destination.precision,
            "group": groups,
            "fell_out": groups,
            "filled": groups,
            "is_normal": 1,
            "is_low": 1,
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
    """Shift by one to four places, and select the step of four that follows. Combinational.

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
        too_high = overflow_field(source, destination)
        numbers_end = source.max_finite_field + 1
        steps = _steps(destination)
        smallest = reach + 1 - len(steps) * _FINE

        # [ leading | fraction down to the round bit | low ]
        fraction = Cat(C(0, max(0, destination.precision - source.fraction_bits)), view.fraction)
        low, kept = fraction[: -destination.precision], fraction[-destination.precision :]

        # A subnormal counts as exponent field 1, with leading bit 0; if even 1 is too small, the bit has no effect.
        is_zero_field = named(m, "is_zero_field", field == 0)
        lowest, leading = field[0], C(1, 1)
        if smallest <= 1:
            lowest, leading = lowest | is_zero_field, ~is_zero_field
        word = Cat(kept, leading)
        fine, distances = Cat(lowest, field[1]), [1 + (reach - value) % _FINE for value in range(_FINE)]

        def limit(step: int) -> int:
            # the exponent field that goes `step` places farther than the last one; a subnormal goes with 1
            return reach + 1 - step if reach + 1 - step > 1 else 0

        high = min(too_high, numbers_end)
        m.d.comb += [
            o.unshifted.eq(Cat(kept, add_constant(field, -reach, destination.exponent_bits))),
            o.shifted.eq(pick(fine, [word[distance:] for distance in distances])),
            o.group.eq(Cat(between(field, limit(step + _FINE), min(limit(step), high)) for step in steps)),
            o.fell_out.eq(
                Cat(pick(fine, [word[step : step + distance].any() for distance in distances]) for step in steps)
            ),
            o.filled.eq(Cat(kept[step : step + _FINE].any() for step in steps)),
            o.is_normal.eq(between(field, reach + 1, high)),
            o.is_low.eq(~at_least(field, min(limit(len(steps) * _FINE), numbers_end))),
            o.is_high.eq(at_least(field, high)),
            o.sign.eq(view.sign),
            o.sticky.eq(low.any()),
            o.is_special.eq(is_special_field(source, field)),
            o.is_zero_field.eq(is_zero_field),
            o.all_ones.eq(kept.all()),
            o.is_largest.eq(field == too_high - 1 if too_high <= numbers_end else 0),
            o.is_subnormal.eq(~at_least(field, reach + 1)),
            o.is_nearly_normal.eq(field == reach if reach <= numbers_end else 0),
            o.is_quiet.eq(view.fraction[-1]),
        ]
        return m


class CoarseShiftRight(wiring.Component):
    """Shift by steps of four, and clear unused bits. Combinational.

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
        # At most one group is selected, so an OR of the selections combines them.
        shifted, lost = C(0, 1), []
        for number, step in enumerate(steps):
            chosen = i.group[number]
            shifted = shifted | (i.shifted[step:] & chosen.replicate(len(i.shifted) - step))
            lost.append(chosen & (i.fell_out[number] | i.filled[:number].any()))
        is_filled = named(m, "is_filled", i.filled.any())
        m.d.comb += [
            o.unshifted.eq(i.unshifted & i.is_normal.replicate(len(i.unshifted))),
            o.shifted.eq(shifted),
            o.is_high.eq(i.is_high),
            o.sign.eq(i.sign),
            o.sticky.eq(Cat(i.sticky, lost[0], Cat(lost[1:]).any())),
            o.is_special.eq(i.is_special),
            o.is_filled.eq(is_filled),
            # If a number is too small for any shift, only a zero is exact; `sticky` covers the rest of its fraction.
            o.is_lost.eq(i.is_low & (~i.is_zero_field | is_filled)),
            o.all_ones.eq(i.all_ones),
            o.is_too_large.eq(i.is_high & ~i.is_special),
            o.is_largest.eq(i.is_largest),
            o.is_subnormal.eq(i.is_subnormal),
            o.is_nearly_normal.eq(i.is_nearly_normal),
            o.is_quiet.eq(i.is_quiet),
        ]
        return m
