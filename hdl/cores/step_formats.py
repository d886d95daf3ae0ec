"""The formats and modes of a fused step, and the word widths that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import data

from golden.formats import FloatFormat
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding
from hdl.cores.modes import controls_layout
from hdl.cores.specials import check_accumulated

__all__ = ["StepFormats"]

#: Bits of a significand whose product, difference and sign fit the 32 places of the near path. No format of up to 16
#: bits has more.
WIDEST_PRECISION = 14


@dataclass(frozen=True)
class StepFormats:
    """Operand and accumulator formats of ``round(a * b + acc)``, selectable at run time by their indices.

    Parameters
    ----------
    operands : tuple of FloatFormat
        Formats of `a` and `b`.
    accumulators : tuple of FloatFormat
        Formats of the accumulator and the result.
    roundings : tuple of Rounding
        The modes that can be chosen at run time; a single one is fixed.
    random_bits : int
        Bits of a random number, if ``stochastic`` is among the modes.
    flushes : bool
        Whether subnormal operands and results become zeros of their sign (NUMERICS section 12).

    Raises
    ------
    TypeError
        If one of them is not a format.
    ValueError
        If a format is not supported, or the product of two operands has more places than the near path can shift by.
    """

    operands: tuple[FloatFormat, ...]
    accumulators: tuple[FloatFormat, ...]
    roundings: tuple[Rounding, ...] = (Rounding.NEAREST_EVEN,)
    random_bits: int = DEFAULT_RANDOM_BITS
    flushes: bool = False

    def __post_init__(self) -> None:
        for argument, formats in (("operands", self.operands), ("accumulators", self.accumulators)):
            for fmt in formats:
                check_accumulated(fmt, argument)
        for fmt in self.operands:
            if fmt.precision > WIDEST_PRECISION:
                raise ValueError(
                    f"operands: got {fmt} with a significand of {fmt.precision} bits, must have at most "
                    f"{WIDEST_PRECISION}: the near path shifts by at most 31 places"
                )

    @property
    def is_nearest_even(self) -> bool:
        """Whether every step rounds to nearest, ties to even."""
        return self.roundings == (Rounding.NEAREST_EVEN,)

    @property
    def is_stochastic(self) -> bool:
        """Whether a step takes random numbers."""
        return Rounding.STOCHASTIC in self.roundings

    @property
    def controls(self) -> data.StructLayout:
        """The control fields of a step: `hdl.cores.modes.controls_layout`."""
        return controls_layout(self.roundings, self.random_bits)

    @property
    def rest_bits(self) -> int:
        """Bits below the kept ones that decide on the rounding, not counting the sticky bit."""
        return self.random_bits if self.is_stochastic else 1

    @property
    def operand_width(self) -> int:
        """Bits of the widest operand."""
        return max(fmt.width for fmt in self.operands)

    @property
    def accumulator_width(self) -> int:
        """Bits of the widest accumulator."""
        return max(fmt.width for fmt in self.accumulators)

    @property
    def operand_precision(self) -> int:
        """Bits of the widest operand's significand."""
        return max(fmt.precision for fmt in self.operands)

    @property
    def product_width(self) -> int:
        """Bits of the exact product of two significands: 22 for fp16, 20 for cbfloat16."""
        return 2 * self.operand_precision

    @property
    def accumulator_precision(self) -> int:
        """Bits of the widest accumulator's significand: 24 for fp32."""
        return max(fmt.precision for fmt in self.accumulators)

    @property
    def accumulator_exponent_bits(self) -> int:
        """Bits of the widest accumulator's exponent field."""
        return max(fmt.exponent_bits for fmt in self.accumulators)

    @property
    def far_width(self) -> int:
        """Width of the far path's adder, without the sticky bit: 26 for fp32.

        The larger addend, an accumulator or a product, is whole. The smaller one is cut below the kept bits, the round
        bit and the next bit; if the sum has lost its first place, below the kept bits and the round bit. Stochastic
        rounding has as many bits in place of the round bit as the random number.
        """
        return max(self.accumulator_precision + 1 + self.rest_bits, self.product_width + 1)

    @property
    def near_width(self) -> int:
        """Bits of the exact difference of addends at most one place apart: 25 for the named formats into fp32.

        It has one place above the accumulator's leading bit for a product with a larger exponent, and one place below
        the product's lowest bit for a product with a smaller exponent.
        """
        return 2 + max(self.product_width, self.accumulator_precision - 1)

    @property
    def sum_width(self) -> int:
        """Bits of a sum of either path; the top bit is the place above the leading bits of the addends."""
        return max(1 + self.far_width + 1, self.near_width)

    @property
    def low_fraction_bits(self) -> int:
        """Bits of the widest accumulator's fraction in the second register, at most as many as in the first."""
        widest = max(self.accumulators, key=lambda fmt: fmt.fraction_bits)
        others = [fmt.fraction_bits for fmt in self.accumulators if fmt != widest]
        return max(0, widest.fraction_bits - max([*others, 16 - widest.exponent_bits]))

    def product_bias(self, operand: FloatFormat, accumulator: FloatFormat) -> int:
        """Return the constant that converts the sum of two operand exponents to the accumulator's bias."""
        return accumulator.bias - 2 * operand.bias

    @property
    def _product_exponents(self) -> tuple[int, int]:
        """The least and the greatest exponent of a product that is not zero."""
        least, greatest = [], []
        for operand in self.operands:
            for accumulator in self.accumulators:
                bias = self.product_bias(operand, accumulator)
                least.append(2 * (1 if self.flushes else 2 - operand.precision) + bias)
                greatest.append(2 * operand.exponent_field_max + 1 + bias)
        return min(least), max(greatest)

    @property
    def product_exponent_width(self) -> int:
        """Bits of the product's signed exponent."""
        below = 0 if self.flushes else self.operand_precision  # what normalising takes from an exponent
        sums = 2 * max(fmt.exponent_field_max + below for fmt in self.operands) + 1
        return (sums + 2 * max(map(abs, self._biases)) + self.far_width).bit_length() + 1

    @property
    def exponent_of_zero(self) -> int:
        """Exponent of a zero product: far below every accumulator's, also less one."""
        return 1 - (1 << (self.product_exponent_width - 1))

    @property
    def _biases(self) -> list[int]:
        return [
            self.product_bias(operand, accumulator) for operand in self.operands for accumulator in self.accumulators
        ]

    @property
    def exponent_width(self) -> int:
        """Bits of the larger exponent plus one, unsigned: the largest exponent of a sum."""
        greatest = max(self._product_exponents[1], *(fmt.exponent_field_max for fmt in self.accumulators))
        return (greatest + 1).bit_length()
