"""What a block quantiser is built for, and the two formats inside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amaranth.lib import data

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, OVERFLOWS, Rounding
from hdl.cores.conversion_plan import ConversionPlan

__all__ = ["LARGEST_SCALE", "NAN_SCALE", "SCALE_BIAS", "SCALE_WIDTH", "BlockPlan", "InnerFormat"]

#: Of ``float8_e8m0fnu``: bits, what a code is above its exponent, the largest number, and NaN.
SCALE_WIDTH, SCALE_BIAS, LARGEST_SCALE, NAN_SCALE = 8, 127, 254, 255


class InnerFormat(FloatFormat):
    """A format of numbers that never leave the unit: float32 need not hold them."""

    def __post_init__(self) -> None:
        pass


@dataclass(frozen=True)
class BlockPlan:
    """A block quantiser's formats and rounding.

    A value is converted twice::

        source -- to odd --> wide -- less the scale's exponent --> scaled -- rounded --> element

    The wide format has as many fraction bits as the last rounding looks at, the sticky one among them: rounded to odd,
    a number then rounds as if it had not been rounded before.

    Parameters
    ----------
    source, element : FloatFormat
    rounding : Rounding
        Of the elements.
    random_bits : int
        Bits of a random number, if `rounding` is stochastic.
    """

    source: FloatFormat
    element: FloatFormat
    rounding: Rounding = Rounding.NEAREST_EVEN
    random_bits: int = DEFAULT_RANDOM_BITS

    @cached_property
    def wide(self) -> FloatFormat:
        """Of the values: every number of the source is normal, 0 alone has the exponent field 0."""
        smallest = self.source.emin - self.source.fraction_bits
        bias = 1 - smallest
        largest_field = self.source.emax + bias
        return InnerFormat(
            f"{self.source} without subnormals",
            (largest_field + 1).bit_length(),
            min(self.source.fraction_bits, self.element.fraction_bits + self._kept_below),
            bias,
        )

    @cached_property
    def scaled(self) -> FloatFormat:
        """Of the values over their scale: what lies below its normal range makes no difference but not being 0."""
        emin = self.element.emin - self.element.fraction_bits - (self._kept_below - 1)
        bias = 1 - emin
        largest = max(self.element.emax, self.source.emax - SCALE_BIAS)
        return InnerFormat(
            f"{self.source} over its scale", (largest + bias).bit_length(), self.wide.fraction_bits, bias, "finite"
        )

    @property
    def _kept_below(self) -> int:
        """Bits below the last place of an element that tell how it rounds, the sticky one among them."""
        return 1 + (self.random_bits if self.is_stochastic else 1)

    @property
    def is_stochastic(self) -> bool:
        """Whether random numbers come in."""
        return self.rounding is Rounding.STOCHASTIC

    @cached_property
    def first(self) -> ConversionPlan:
        """The conversion of a code into the wide format."""
        return ConversionPlan(self.source, self.wide, (Rounding.TO_ODD,), with_flags=False)

    @cached_property
    def last(self) -> ConversionPlan:
        """The conversion of a scaled number into an element."""
        return ConversionPlan(
            self.scaled, self.element, (self.rounding,), OVERFLOWS[1], self.random_bits, with_flags=False
        )

    @property
    def field_of_scale_0(self) -> int:
        """The largest wide exponent field of a block whose scale is code 0, were there no other limit."""
        return self.wide.bias + self.element.emax - SCALE_BIAS

    @property
    def value_layout(self) -> data.StructLayout:
        """What is kept of a value: its wide code and, for a stochastic rounding, its random number."""
        random = {"random": self.random_bits} if self.is_stochastic else {}
        return data.StructLayout({"code": self.wide.width, **random})

    @property
    def scaling_layout(self) -> data.StructLayout:
        """What is kept of a block: the code of its scale, and what exponent fields lose by it, a signed number."""
        width = max(self.wide.exponent_bits, SCALE_WIDTH, self.scaled.exponent_bits) + 2
        return data.StructLayout({"scale": SCALE_WIDTH, "offset": width})
