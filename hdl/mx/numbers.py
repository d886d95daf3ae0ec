"""Blocks whose scale is a number of a narrow format, as of NVFP4: their plan, and their two cores.

The quotient of a value and the scale is never computed. A quotient rounds to an element, or to a larger one, from a
certain value on. For the scales of one binade, these least values are constants of the circuit. They are found on exact
integers, from the same steps in float32 as of the recipe, so that the codes have its bits.

All of them are a short number, or the next one above or below in the source. So a value is kept with few bits of its
fraction, and with what lies below: nothing, all ones, or something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import ceil

from amaranth import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.formats import FP32, FloatFormat
from golden.mx import BlockFormat
from golden.rounding import Rounding
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.words import choose, named
from hdl.float_shape import FloatShape, FloatView
from hdl.mx.plan import InnerFormat, wide_format

__all__ = ["SCALE_RANKS", "TENSOR_EXPONENT", "NumberPlan", "NumberScale", "Quotient"]

#: Of the exponent of a tensor's scale.
TENSOR_EXPONENT = Shape(8, signed=True)
#: Ranks of registers inside `NumberScale`.
SCALE_RANKS = 2
#: What lies below the kept bits of a fraction: zeros, something, ones alone.
_NOTHING, _SOMETHING, _ONES = range(3)
_BELOW_BITS = 2


@dataclass(frozen=True)
class NumberPlan:
    """A quantiser of blocks whose scales are numbers.

    Numbers are compared by their place, ``exponent << fraction_bits | fraction``, which grows with the number.

    Parameters
    ----------
    source : FloatFormat
    blocks : BlockFormat
        With the formats of elements and scales.
    """

    source: FloatFormat
    blocks: BlockFormat
    #: As of `hdl.mx.plan.BlockPlan`.
    rounding = Rounding.NEAREST_EVEN
    random_bits = 0
    is_stochastic = False

    @property
    def element(self) -> FloatFormat:
        """The format of the elements."""
        return self.blocks.element

    @property
    def scale(self) -> FloatFormat:
        """The format of the scales."""
        return self.blocks.scale

    @cached_property
    def exact(self) -> InnerFormat:
        """The format of the values: every number of the source is normal, and only 0 has the exponent field 0."""
        return wide_format(self.source, self.source.fraction_bits)

    @cached_property
    def first(self) -> ConversionPlan:
        """The conversion of a code into the exact format."""
        return ConversionPlan(self.source, self.exact, (Rounding.TO_ODD,), with_flags=False)

    @cached_property
    def wide(self) -> InnerFormat:
        """The format of the values as they are kept, whose fraction ends with what lies below its bits."""
        return wide_format(self.source, min(self.source.fraction_bits, self._kept_bits + _BELOW_BITS))

    @cached_property
    def _kept_bits(self) -> int:
        """Bits of a fraction such that every place of a constant has nothing, the least bit or ones alone below."""
        places = [*self._of_scale.values(), *self._of_element.values()]

        def are_enough(bits: int) -> bool:
            below = (1 << self.source.fraction_bits - bits) - 1
            return all(place & below in (0, 1, below) for place in places)

        return next(bits for bits in range(self.source.fraction_bits + 1) if are_enough(bits))

    @property
    def is_shortened(self) -> bool:
        """Whether values are kept with fewer bits than they have."""
        return self.wide.fraction_bits < self.exact.fraction_bits

    def kept(self, m: Module, name: str, code: Value, sign: Value) -> Value:
        """Return the wide code of an exact one, with a sign that a NaN has, too."""
        if not self.is_shortened:
            return Cat(code[:-1], sign)
        count = self.exact.fraction_bits - self._kept_bits
        below = code[:count]
        kind = named(m, name, Mux(below.all(), _ONES, Mux(below.any(), _SOMETHING, _NOTHING)))
        return Cat(kind, code[count:-1], sign)

    def _shortened(self, place: int) -> int:
        """Return the place of a wide number from which on wide numbers are those of exact ones from a place on."""
        if not self.is_shortened:
            return place
        count = self.exact.fraction_bits - self._kept_bits
        kept, below = place >> count, place & (1 << count) - 1
        kind = {0: _NOTHING, 1: _SOMETHING, (1 << count) - 1: _ONES}[below]
        return kept << _BELOW_BITS | kind

    @property
    def value_layout(self) -> data.StructLayout:
        """The stored fields of a value."""
        return data.StructLayout({"code": self.wide.width})

    @property
    def scaling_layout(self) -> data.StructLayout:
        """The stored fields of a block: the code of its scale, the scale's fraction, and its exponent as a wide field.

        The exponent includes the tensor's. Fraction and exponent are those of a normal number, also if the scale is
        subnormal.
        """
        offset = max(self.wide.exponent_bits, TENSOR_EXPONENT.width) + 2
        return data.StructLayout(
            {"scale": self.scale.width, "fraction": self.scale.fraction_bits, "offset": Shape(offset, signed=True)}
        )

    @cached_property
    def _of_scale(self) -> dict[int, int]:
        """The least place of the largest magnitude of a block whose scale has a code or a larger one, by the code."""
        largest, places = self.largest_element, {}
        for code in range(1, 3 << self.scale.fraction_bits):
            below, above = _value(self.scale, code - 1), _value(self.scale, code)
            reaches = partial(_reaches, lambda number: number / largest, below, above, code)
            places[code] = self._least(reaches, (below + above) / 2 * largest)
        return places

    @cached_property
    def _of_element(self) -> dict[tuple[int, int], int]:
        """The least place of a magnitude with a code or a larger one, over a scale from 1 to 2 with a fraction."""
        places = {}
        for fraction in range(1 << self.scale.fraction_bits):
            scale = 1 + Fraction(fraction, 1 << self.scale.fraction_bits)
            factor = _in_float32(1 / scale)
            for code in range(1, self.element.max_finite + 1):
                below, above = _value(self.element, code - 1), _value(self.element, code)
                reaches = partial(_reaches, lambda number, factor=factor: number * factor, below, above, code)
                places[code, fraction] = self._least(reaches, (below + above) / 2 * scale)
        return places

    @cached_property
    def largest_element(self) -> Fraction:
        """The largest element."""
        return _value(self.element, self.element.max_finite)

    def least_of_scale(self, code: int) -> int:
        """Return the least place of the largest magnitude of a block whose scale has this code or a larger one."""
        return self._shortened(self._of_scale[code])

    def least_of_element(self, code: int, fraction: int) -> int:
        """Return the least place of a magnitude with this code or a larger one, over a scale from 1 to 2."""
        return self._shortened(self._of_element[code, fraction])

    def place_of(self, number: Fraction) -> int:
        """Return the place of a positive number that the wide format has."""
        return self._shortened(self._exact_place(number))

    def _exact_place(self, number: Fraction) -> int:
        """Return the place of the first number of the source's precision that is not below a positive one."""
        exponent = _exponent(number)
        fraction = (number / _power(exponent) - 1) * (1 << self.source.fraction_bits)
        return (exponent << self.source.fraction_bits) + ceil(fraction)

    def _least(self, reaches: Callable[[Fraction], bool], near: Fraction) -> int:
        """Return the place of the least number that reaches something, which numbers from about `near` on do."""
        place, step = self._exact_place(near / 2), 1 << self.source.fraction_bits
        while step:  # the largest place of a number that does not reach it
            if not reaches(self._number(place + step)):
                place += step
            step >>= 1
        assert not reaches(self._number(place))
        return place + 1

    def _number(self, place: int) -> Fraction:
        exponent, fraction = place >> self.source.fraction_bits, place % (1 << self.source.fraction_bits)
        return (1 + Fraction(fraction, 1 << self.source.fraction_bits)) * _power(exponent)


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _exponent(number: Fraction) -> int:
    """Return the exponent of the power of two at or below a positive number."""
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    return exponent if number >= _power(exponent) else exponent - 1


def _in_float32(number: Fraction) -> Fraction:
    """Return a positive number, rounded to the precision of float32 to nearest even; its range is not looked at."""
    ulp = _power(_exponent(number) - FP32.fraction_bits)
    return round(number / ulp) * ulp


def _value(fmt: FloatFormat, code: int) -> Fraction:
    """Return the number of a positive finite code."""
    field, fraction = code >> fmt.fraction_bits, code % (1 << fmt.fraction_bits)
    significand = fraction + ((1 << fmt.fraction_bits) if field else 0)
    return significand * _power(max(field, 1) - fmt.bias - fmt.fraction_bits)


def _reaches(
    scaled: Callable[[Fraction], Fraction], below: Fraction, above: Fraction, code: int, number: Fraction
) -> bool:
    """Return whether a number, scaled in float32, rounds to nearest even to `above`, which has a code, or beyond it."""
    result, middle = _in_float32(scaled(number)), (below + above) / 2
    return result > middle or (result == middle and code % 2 == 0)


class NumberScale(wiring.Component):
    """Find the scale of a block from its largest magnitude.

    The scale is the largest magnitude over the tensor's scale and over the largest element, to nearest even, at most
    the largest number of the scale's format. A NaN makes the scale NaN.

    Parameters
    ----------
    plan : NumberPlan
    has_ranks : bool
        Whether the result comes `SCALE_RANKS` cycles later; combinational otherwise.

    Ports
    -----
    largest : unsigned(wide.width - 1), in
        The largest wide code without its sign.
    tensor_exponent : signed(8), in
    o : plan.scaling_layout, out
    """

    def __init__(self, plan: NumberPlan, *, has_ranks: bool = False) -> None:
        self.plan, self._has_ranks = plan, has_ranks
        super().__init__(
            {
                "largest": In(plan.wide.width - 1),
                "tensor_exponent": In(TENSOR_EXPONENT),
                "o": Out(plan.scaling_layout),
            }
        )

    def _rank(self, m: Module, name: str, value: Value) -> Signal:
        """Return a value in the next rank."""
        there = Signal(value.shape(), name=name, reset_less=True)
        m.d[("comb", "sync")[self._has_ranks]] += there.eq(value)
        return there

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, scale = self.plan, self.plan.scale
        field, fraction = self.largest[plan.wide.fraction_bits :], self.largest[: plan.wide.fraction_bits]
        power = named(m, "power", field - plan.wide.bias - self.tensor_exponent)
        place = named(m, "place", Cat(fraction, power).as_signed())
        # Magnitudes below the first normal scale have places of their own; the others are alike in every binade.
        normal, binade = 1 << scale.fraction_bits, 1 << plan.wide.fraction_bits
        least = [plan.least_of_scale(code) for code in range(1, 3 * normal)]
        exponent = least[normal - 1] // binade + 1
        starts = [each - exponent * binade for each in least]
        first_normal = plan.place_of(_value(scale, normal) * plan.largest_element)
        steps = Cat(fraction >= start for start in starts if 0 < start < binade)

        is_subnormal = self._rank(m, "is_subnormal", place < first_normal)
        subnormal_steps = self._rank(m, "subnormal_steps", Cat(place >= each for each in least[:normal]))
        before = sum(start <= 0 for start in starts)
        steps = self._rank(m, "steps", steps)
        binades = self._rank(m, "binades", (power - exponent + before // normal))
        is_zero, is_special = self._rank(m, "is_zero", ~field.any()), self._rank(m, "is_special", field.all())
        is_nan = self._rank(m, "is_nan", field.all() & fraction.any())
        tensor_exponent = self._rank(m, "its_exponent", self.tensor_exponent)

        low = named(m, "low", _count(steps, before % normal))
        high = named(m, "high", binades + low[scale.fraction_bits :])
        code = Cat(low[: scale.fraction_bits], high[: scale.exponent_bits])
        is_over = is_special | high[scale.exponent_bits :].any() | (code > scale.max_finite)
        normal_code = Mux(is_over, scale.max_finite, code)
        finite = Mux(is_zero, 0, Mux(is_subnormal & ~is_special, _count(subnormal_steps), normal_code))
        found = Signal(scale.width, name="found")
        m.d.comb += found.eq(Mux(is_nan, scale.nan, finite))
        offset = named(m, "tensor_offset", tensor_exponent + (plan.wide.bias - scale.bias))
        self._normalise(m, self._rank(m, "scale", found), self._rank(m, "offset", offset))
        return m

    def _normalise(self, m: Module, scale: Signal, offset: Signal) -> None:
        """Give the fraction and the exponent of the scale as a normal number."""
        o, fraction_bits = self.o, self.plan.scale.fraction_bits
        view = FloatView(FloatShape(self.plan.scale), scale)
        fraction, shift = Signal(fraction_bits, name="fraction"), Signal(range(fraction_bits + 1), name="shift")
        m.d.comb += fraction.eq(view.fraction)
        with m.If(~view.exponent_field.any()):
            for places in range(1, fraction_bits + 1):
                with m.If(view.fraction[fraction_bits - places :] == 1):
                    m.d.comb += [fraction.eq(view.fraction << places), shift.eq(places - 1)]
        m.d.comb += [o.scale.eq(scale), o.fraction.eq(fraction), o.offset.eq(offset + view.exponent_field - shift)]


def _count(bits: Value, start: int = 0) -> Value:
    """Return how many bits are set, more than `start`, where a set one has only set ones below it.

    Each bit of the result changes with some of the bits: no carry runs through it.
    """
    total, last = [], start + len(bits)
    for place in range(last.bit_length()):
        changes = [bit for number, bit in enumerate(bits, start) if (number ^ number + 1) >> place & 1]
        total.append(Cat(changes).xor() ^ (start >> place & 1))
    return Cat(total)


class Quotient(wiring.Component):
    """Round a value over the scale of its block to an element, in two steps. Combinational.

    Parameters
    ----------
    plan : NumberPlan

    Ports
    -----
    code : unsigned(wide.width), in
    scaling : plan.scaling_layout, in
        Scaling of the block.
    o : unsigned, out
        A bit for each code of a positive element but 0: the magnitude reaches it; and the sign.
    """

    def __init__(self, plan: NumberPlan) -> None:
        self.plan = plan
        super().__init__(
            {
                "code": In(plan.wide.width),
                "scaling": In(plan.scaling_layout),
                "o": Out(plan.element.max_finite + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plan, scaling, codes = self.plan, self.scaling, range(1, self.plan.element.max_finite + 1)
        fractions, binade = range(1 << plan.scale.fraction_bits), 1 << plan.wide.fraction_bits
        least = {code: [plan.least_of_element(code, fraction) for fraction in fractions] for code in codes}
        view = FloatView(FloatShape(plan.wide), self.code)
        power = named(m, "power", view.exponent_field - scaling.offset)
        # The few binades in which elements begin; below them, none is reached, above them, each.
        lowest, highest = (end(map(end, least.values())) // binade for end in (min, max))
        bits = (highest - lowest).bit_length()
        is_below, is_above = power < lowest, power >= lowest + (1 << bits)
        place = named(m, "place", Cat(view.fraction, (power - lowest)[:bits]))
        is_zero = ~view.exponent_field.any() | ~scaling.scale.any() | is_below
        is_most = view.exponent_field.all() | (scaling.scale == plan.scale.nan)
        is_every = is_most | (is_above & ~is_zero)
        reached = []
        for code in codes:
            places = [each - lowest * binade for each in least[code]]
            its_least = named(m, f"least_{code}", choose(scaling.fraction, places))
            reached.append(((place >= its_least) & ~is_zero) | is_every)
        m.d.comb += self.o.eq(Cat(*reached, view.sign))
        return m

    @staticmethod
    def element_of(plan: NumberPlan, reached: Value) -> Value:
        """Return the element's code from the output of this core."""
        return Cat(_count(reached[:-1])[: plan.element.width - 1], reached[-1])
