"""The plan of a quantiser of blocks whose scale is a number of a narrow format, as of NVFP4.

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

from amaranth import Cat, Module, Mux, Shape, Value
from amaranth.lib import data

from golden.formats import FP32, FloatFormat
from golden.mx.recipes import BlockFormat
from golden.rounding import Rounding
from hdl.cores.conversion_plan import ConversionPlan
from hdl.cores.words import named
from hdl.mx.plan import InnerFormat, wide_format

__all__ = ["TENSOR_EXPONENT", "NumberPlan", "value_of"]

#: Of the exponent of a tensor's scale.
TENSOR_EXPONENT = Shape(8, signed=True)
#: Kinds of the bits below the kept ones of a fraction: all zeros, a mixture, all ones.
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
            below, above = value_of(self.scale, code - 1), value_of(self.scale, code)
            reaches = partial(_reaches, 1 / largest, below, above, code)
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
                below, above = value_of(self.element, code - 1), value_of(self.element, code)
                reaches = partial(_reaches, factor, below, above, code)
                places[code, fraction] = self._least(reaches, (below + above) / 2 * scale)
        return places

    @cached_property
    def largest_element(self) -> Fraction:
        """The largest element."""
        return value_of(self.element, self.element.max_finite)

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


def value_of(fmt: FloatFormat, code: int) -> Fraction:
    """Return the number of a positive finite code."""
    field, fraction = code >> fmt.fraction_bits, code % (1 << fmt.fraction_bits)
    significand = fraction + ((1 << fmt.fraction_bits) if field else 0)
    return significand * _power(max(field, 1) - fmt.bias - fmt.fraction_bits)


def _reaches(factor: Fraction, below: Fraction, above: Fraction, code: int, number: Fraction) -> bool:
    """Return whether a number times a factor, in float32, rounds to nearest even to `above`, of a code, or beyond."""
    result, middle = _in_float32(number * factor), (below + above) / 2
    return result > middle or (result == middle and code % 2 == 0)
