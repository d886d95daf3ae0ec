"""Conversion between any two formats, the first two steps: unpack a code, shift it into the destination's range.

::

    source       [ s | exponent_field | fraction ]
    unpacked                [ leading | fraction ]                     distance, class
    aligned      [ exponent_field | fraction | guard | sticky ]        of the destination

If the destination's smallest normal number is the larger of the two, numbers below it move right. If it is the smaller,
subnormals of the source move left. No conversion needs both, and none where subnormals are flushed. Fields of formats
without subnormals are counted as `ConversionPlan` says.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.conversion_words import add_constant, at_least, pick, position_of_first
from hdl.cores.specials import classify
from hdl.cores.words import named, select_width, shift_left
from hdl.float_shape import FloatShape, FloatView
from hdl.pipeline import rank

__all__ = ["Align", "Unpack", "aligned_layout", "unpacked_layout"]

_CLASS = ("sign", "is_nan", "is_signalling", "is_infinite")
_FLUSHED = ("is_low", "is_zero")


def _reach(plan: ConversionPlan) -> int:
    """Return the last exponent field of the source below the destination's normal range, or a negative number."""
    return plan.source.bias + plan.source_shift - plan.destination.bias - plan.destination_shift


def _farthest(plan: ConversionPlan) -> int:
    """Return the longest shift distance that can affect the result."""
    if plan.in_place:
        return 0
    reach = _reach(plan)
    return min(reach, plan.word_width) if reach >= 0 else min(-reach, plan.source.precision)


def _largest_field(plan: ConversionPlan) -> int:
    """Return the largest exponent field of a source number, rebiased for the destination."""
    return max(0, plan.source.max_finite_field + plan.source_shift - _reach(plan))


def unpacked_layout(plan: ConversionPlan) -> data.StructLayout:
    """Return the fields between `Unpack` and `Align`: ``distance`` is the shift distance, right or left."""
    widths = {
        "significand": plan.source.precision,
        "exponent_field": plan.source.exponent_bits + plan.source_shift,
        "distance": select_width(_farthest(plan) + 1),
    }
    return data.StructLayout(widths | dict.fromkeys(_CLASS, 1))


def aligned_layout(plan: ConversionPlan) -> data.StructLayout:
    """Return the fields between `Align` and `FinishConversion`.

    ``exponent_field`` is wide enough for every source number and for a carry out of rounding. A field of 0 stands for
    a zero or a subnormal.

    Where subnormals are flushed, a field of 0 stands for a number that a carry may make the smallest normal one;
    ``is_low`` for one that is smaller, and for a zero; ``is_zero`` for a zero, as which a subnormal code counts.
    """
    widths = {
        "sticky": 1,
        "guard": plan.guard_bits,
        "fraction": plan.destination.fraction_bits,
        "exponent_field": (_largest_field(plan) + 1).bit_length(),
    }
    return data.StructLayout(widths | dict.fromkeys((*_CLASS, *(_FLUSHED if plan.in_place else ())), 1))


class Unpack(wiring.Component):
    """Unpack a code, classify it, and find its shift distance.

    Parameters
    ----------
    plan : ConversionPlan
    has_rank : bool
        Whether the result comes a cycle later, in which ``moves`` is 1; combinational otherwise.

    Ports
    -----
    code : unsigned(source.width), in
    moves : unsigned(1), in
        Enables the registers; only with `has_rank`.
    o : unpacked_layout(plan), out
    """

    def __init__(self, plan: ConversionPlan, *, has_rank: bool = False) -> None:
        self.plan, self._has_rank = plan, has_rank
        moves = {"moves": In(1)} if has_rank else {}
        super().__init__({"code": In(plan.source.width), **moves, "o": Out(unpacked_layout(plan))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        o, source = self.o, self.plan.source
        view = FloatView(FloatShape(source), self.code)
        if source.normal_zero_field:
            is_normal = named(m, "is_normal", self.code[:-1].any())
            field: Value = named(m, "field", Mux(is_normal, view.exponent_field + 1, 0)[: len(o.exponent_field)])
        else:
            is_normal = named(m, "is_normal", view.exponent_field.any())
            field = view.exponent_field
        fraction = view.fraction
        if not source.subnormals or (self.plan.flushes and not self.plan.in_place):
            fraction = fraction & is_normal.replicate(source.fraction_bits)
        found = classify(source, self.code)
        what = {"sign": view.sign, "is_nan": found.is_nan, "is_signalling": found.is_signalling}
        what["is_infinite"] = found.is_infinite
        if self.plan.in_place:
            distance: Value = C(0, 0)
        elif _reach(self.plan) >= 0:
            distance = self._kept(m, "distance", self._to_the_right(field, is_normal))
        else:
            distance = self._to_the_left(m, fraction, is_normal)
        m.d.comb += [
            o.significand.eq(self._kept(m, "significand", Cat(fraction, is_normal))),
            o.exponent_field.eq(self._kept(m, "exponent_field", field)),
            o.distance.eq(distance),
            *(o[name].eq(self._kept(m, name, value)) for name, value in what.items()),
        ]
        return m

    def _kept(self, m: Module, name: str, value: Value) -> Value:
        """Return a value behind the rank, if there is one."""
        return rank(m, f"kept_{name}", value, self.moves) if self._has_rank else value

    def _to_the_right(self, field: Value, is_normal: Value) -> Value:
        """Return how far a number lies below the destination's normal range; a subnormal counts as exponent field 1."""
        reach, farthest = _reach(self.plan), _farthest(self.plan)
        field = Cat(field[0] | ~is_normal, field[1:])
        distance = (C(reach + 1) - field)[: select_width(farthest + 1)]
        is_near = at_least(field, reach + 2 - farthest)
        return Mux(at_least(field, reach + 1), 0, Mux(is_near, distance, farthest))

    def _to_the_left(self, m: Module, fraction: Value, is_normal: Value) -> Value:
        """Return the number of leading zeros, limited by the destination's smallest exponent.

        A rank holds which first bits of the significand have a 1 among them, about half of the way.
        """
        word = Cat(fraction, is_normal)
        reached = Cat(word[-count:].any() for count in range(1, _farthest(self.plan) + 1))
        return position_of_first(m, "leading", self._kept(m, "reached", reached))


class Align(wiring.Component):
    """Shift, and make the destination's exponent field. Combinational.

    Ports
    -----
    i : unpacked_layout(plan), in
    o : aligned_layout(plan), out
    """

    def __init__(self, plan: ConversionPlan) -> None:
        self.plan = plan
        super().__init__({"i": In(unpacked_layout(plan)), "o": Out(aligned_layout(plan))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        i, o, plan = self.i, self.o, self.plan
        if plan.in_place:
            word, lost, field = self._in_place(m)
        else:
            word, lost, field = self._right(m) if _reach(plan) >= 0 else self._left(m)
        m.d.comb += [
            Cat(o.guard, o.fraction).eq(word[:-1]),
            o.sticky.eq(lost),
            o.exponent_field.eq(field),
            *(o[name].eq(i[name]) for name in _CLASS),
        ]
        return m

    def _fitted(self, significand: Value) -> tuple[Value, Value]:
        """Return the word ``[ leading | fraction | guard ]`` of a significand, and whether anything is lost below."""
        spare = self.plan.word_width - len(significand)
        if spare >= 0:
            return Cat(C(0, spare), significand), C(0, 1)
        return significand[-spare:], significand[:-spare].any()

    def _in_place(self, m: Module) -> tuple[Value, Value, Value]:
        i, o, reach = self.i, self.o, _reach(self.plan)
        m.d.comb += [
            o.is_zero.eq(~i.significand[-1]),
            o.is_low.eq(~i.significand[-1] | ~at_least(i.exponent_field, reach)),
        ]
        field = add_constant(i.exponent_field, -reach, len(o.exponent_field))
        return *self._fitted(i.significand), Mux(at_least(i.exponent_field, reach + 1), field, 0)

    def _right(self, m: Module) -> tuple[Value, Value, Value]:
        i, reach = self.i, _reach(self.plan)
        word, lost = self._fitted(i.significand)
        width = len(word)
        for level in reversed(range(len(i.distance))):
            step = min(1 << level, width)
            lost = named(m, f"lost_{1 << level}", lost | (i.distance[level] & word[:step].any()))
            shifted = Cat(word[step:], C(0, step))
            word = named(m, f"shifted_right_{1 << level}", Mux(i.distance[level], shifted, word))
        field = add_constant(i.exponent_field, -reach, len(self.o.exponent_field))
        return word, lost, Mux(at_least(i.exponent_field, reach + 1), field, 0)

    def _left(self, m: Module) -> tuple[Value, Value, Value]:
        i, rebias, farthest = self.i, -_reach(self.plan), _farthest(self.plan)
        width = len(self.o.exponent_field)
        significand = shift_left(m, i.significand, i.distance)
        # A subnormal's field depends only on the distance; at the longest it is a zero or still a subnormal.
        last = significand[-1] if farthest == rebias else C(0, 1)
        fields = [*(C(1 + rebias - distance, width) for distance in range(farthest)), Cat(last, C(0, width))[:width]]
        field = Mux(i.significand[-1], add_constant(i.exponent_field, rebias, width), pick(i.distance, fields))
        return *self._fitted(significand), field
