"""The formats that a fused step is built for, and the widths of its words, which follow from them."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import FloatFormat

__all__ = ["StepFormats"]


@dataclass(frozen=True)
class StepFormats:
    """Operand and accumulator formats of ``round(a * b + acc)``, selectable at run time by their indices.

    Parameters
    ----------
    operands : tuple of FloatFormat
        What `a` and `b` may be.
    accumulators : tuple of FloatFormat
        What the accumulator, and the result, may be.
    """

    operands: tuple[FloatFormat, ...]
    accumulators: tuple[FloatFormat, ...]

    @property
    def operand_width(self) -> int:
        """Bits of the widest operand."""
        return max(fmt.width for fmt in self.operands)

    @property
    def accumulator_width(self) -> int:
        """Bits of the widest accumulator."""
        return max(fmt.width for fmt in self.accumulators)

    @property
    def product_width(self) -> int:
        """Bits of the exact product of two significands: 22 for the named 16-bit formats."""
        return 2 * max(fmt.precision for fmt in self.operands)

    @property
    def accumulator_precision(self) -> int:
        """Bits of the widest accumulator's significand: 24 for fp32."""
        return max(fmt.precision for fmt in self.accumulators)

    @property
    def window_width(self) -> int:
        """Bits in which product and accumulator are added: 48 for the named formats into fp32.

        Take the larger exponent to the top. If the product is there, its leading one is within the product's width of
        the top, even unnormalised. An accumulator that starts more than two places below the product cannot cancel
        it: the result then keeps `accumulator_precision` bits from one place below the product's lowest bit at the
        least, and needs guard and sticky after them. An accumulator nearer than that is inside the window, whole.
        """
        return self.product_width + self.accumulator_precision + 2

    def product_bias(self, operand: FloatFormat, accumulator: FloatFormat) -> int:
        """Return what turns the sum of two operand exponents into the exponent of the product's top bit.

        The product of two significands in [0, 2) is in [0, 4), hence the 1; the result is biased as the accumulator.
        """
        return 1 - 2 * operand.bias + accumulator.bias

    @property
    def product_exponent_width(self) -> int:
        """Bits of the product's signed exponent, biased as the accumulator's."""
        extremes = []
        for operand in self.operands:
            for accumulator in self.accumulators:
                bias = self.product_bias(operand, accumulator)
                extremes += [2 + bias, 2 * (operand.exponent_field_max) + bias]
        return max(max(extremes).bit_length(), (-min(extremes)).bit_length() if min(extremes) < 0 else 0) + 1

    @property
    def exponent_width(self) -> int:
        """Bits of the larger of both exponents plus one, unsigned: what the sum may reach."""
        largest = max(
            2 * operand.exponent_field_max + self.product_bias(operand, accumulator)
            for operand in self.operands
            for accumulator in self.accumulators
        )
        largest = max(largest, *(fmt.exponent_field_max for fmt in self.accumulators))
        return (largest + 1).bit_length()

    @property
    def distance_width(self) -> int:
        """Bits of an alignment distance; its largest value moves everything out of the window."""
        return self.window_width.bit_length()
