"""The plan of a block quantiser, and its two internal formats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from amaranth.lib import data

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, OVERFLOWS, Rounding
from hdl.cores.conversion_plan import ConversionPlan

__all__ = ["LARGEST_SCALE", "NAN_SCALE", "SCALE_BIAS", "SCALE_WIDTH", "BlockPlan", "InnerFormat", "wide_format"]

#: Constants of ``float8_e8m0fnu``: width, bias, the code of the largest number, and NaN.
SCALE_WIDTH, SCALE_BIAS, LARGEST_SCALE, NAN_SCALE = 8, 127, 254, 255


class InnerFormat(FloatFormat):
    """A format of numbers that never leave the unit and need not fit float32."""

    def __post_init__(self) -> None:
        pass


def wide_format(source: FloatFormat, fraction_bits: int) -> InnerFormat:
    """Return a format in which every number of a source is normal, and only 0 has the exponent field 0."""
    smallest = source.emin - source.fraction_bits
    bias = 1 - smallest
    largest_field = source.emax + bias
    return InnerFormat(f"{source} without subnormals", (largest_field + 1).bit_length(), fraction_bits, bias)


@dataclass(frozen=True)
class BlockPlan:
    """A block quantiser's formats and rounding.

    A value is converted twice::

        source -- to odd --> wide -- less the scale's exponent --> scaled -- rounded --> element

    The wide format has as many fraction bits as the last rounding needs, including the sticky bit. A number rounded to
    odd therefore rounds the second time like the original.

    Parameters
    ----------
    source, element : FloatFormat
    rounding : Rounding
        Rounding mode of the elements.
    random_bits : int
        Bits of a random number, if `rounding` is stochastic.
    """

    source: FloatFormat
    element: FloatFormat
    rounding: Rounding = Rounding.NEAREST_EVEN
    random_bits: int = DEFAULT_RANDOM_BITS

    @cached_property
    def wide(self) -> FloatFormat:
        """The format of the values: every source number is normal, and only 0 has the exponent field 0."""
        return wide_format(self.source, min(self.source.fraction_bits, self.element.fraction_bits + self._kept_below))

    @cached_property
    def scaled(self) -> FloatFormat:
        """The format of the values over their scale; below its normal range, only 0 or not 0 matters."""
        emin = self.element.emin - self.element.fraction_bits - (self._kept_below - 1)
        bias = 1 - emin
        largest = max(self.element.emax, self.source.emax - SCALE_BIAS)
        return InnerFormat(
            f"{self.source} over its scale", (largest + bias).bit_length(), self.wide.fraction_bits, bias, "finite"
        )

    @property
    def _kept_below(self) -> int:
        """Bits below the last place of an element that decide on its rounding, including the sticky bit."""
        return 1 + (self.random_bits if self.is_stochastic else 1)

    @property
    def is_stochastic(self) -> bool:
        """Whether the quantiser takes random numbers."""
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
        """The largest wide exponent field of a block with scale code 0, without other limits."""
        return self.wide.bias + self.element.emax - SCALE_BIAS

    @property
    def value_layout(self) -> data.StructLayout:
        """The stored fields of a value: its wide code and, for stochastic rounding, its random number."""
        random = {"random": self.random_bits} if self.is_stochastic else {}
        return data.StructLayout({"code": self.wide.width, **random})

    @property
    def scaling_layout(self) -> data.StructLayout:
        """The stored fields of a block: the code of its scale, and the signed offset of its exponent fields."""
        width = max(self.wide.exponent_bits, SCALE_WIDTH, self.scaled.exponent_bits) + 2
        return data.StructLayout({"scale": SCALE_WIDTH, "offset": width})
