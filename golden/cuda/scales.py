"""Which steps a product runs in on a card, and the exponents by which its numbers are scaled.

These are the scales and limits of the CPU kernels (golden/kernels/source/plan.cpp): the same step does the same to the
same numbers.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from golden.cuda.structures import STAGE
from golden.formats import BF16, FP16, FP32, FloatFormat
from golden.kernels.products import carrier
from golden.reduction import Reduction
from golden.rounding import Rounding

__all__ = ["Scales", "Steps", "bound_fields", "choose", "choose_for", "first_beyond"]


class Steps(NamedTuple):
    """Which code runs the chains and joins the partial sums: one variant of the kernels.

    `chain` is ``"single"`` (float), ``"scaled"`` (short formats), ``"float16"`` or ``"bfloat16"`` (the card's own) or
    ``"generic"`` (any format, in doubles); `join` likewise, or ``"none"`` where the total is the chain itself. A
    ``"machine"`` follows the accumulator of another machine.
    """

    mode: Rounding
    chain: str
    join: str


class Scales(NamedTuple):
    """The steps of a product, and the exponents by which operands, partial sums and totals are scaled."""

    steps: Steps
    a: int = 0
    b: int = 0
    total: int = 0

    @property
    def inner(self) -> int:
        """Exponent of partial sums."""
        return self.a + self.b


def _is_short(fmt: FloatFormat) -> bool:
    return fmt.fraction_bits <= 21 and _scale(fmt) >= -126


def _scale(fmt: FloatFormat) -> int:
    """Return the exponent of the scale that moves the smallest normal value to float's, 2^-126."""
    return -126 - fmt.emin


def _same(fmt: FloatFormat, other: FloatFormat) -> bool:
    numbers = fmt.exponent_bits, fmt.fraction_bits, fmt.bias
    return numbers == (other.exponent_bits, other.fraction_bits, other.bias)


def _packs(fmt: FloatFormat, exponent: int) -> bool:
    """Tell whether every value of the format, times 2^exponent, is a float, and the factors are floats, too."""
    if exponent == 0:
        return True
    if _same(fmt, FP32) or not _is_short(fmt):
        return False
    lowest = fmt.emin - fmt.fraction_bits + exponent
    return lowest >= -149 and fmt.emax + exponent <= 127 and -126 <= exponent - _scale(fmt) <= 127


@lru_cache(maxsize=256)
def choose(reduction: Reduction, halves: bool, brains: bool) -> Scales:
    """Return steps and scales; `halves` and `brains` allow the native steps in float16 and bfloat16."""
    if reduction.accumulator is not None:  # whose numbers are not scaled
        return Scales(Steps(reduction.rounding, "machine", "none"))
    formats = carrier(reduction.factors), reduction.inner, reduction.outer
    return choose_for(formats, reduction.chunk, reduction.rounding, halves, brains)


def choose_for(
    formats: tuple[FloatFormat, FloatFormat, FloatFormat], chunk: int | None, mode: Rounding, halves: bool, brains: bool
) -> Scales:
    """Return steps and scales for the formats of operands, as they are packed, of chunks and of totals."""
    operand, inner, outer = formats
    generic = Scales(Steps(mode, "generic", "generic"))
    is_chain = _same(inner, FP32) and _same(outer, FP32) and chunk is None
    wide = _same(outer, FP32)
    if not (wide or _is_short(outer)):
        return generic
    join = "none" if is_chain else "single" if wide else "scaled"
    total = 0 if wide else _scale(outer)
    if mode is Rounding.NEAREST_EVEN and operand == inner and -126 <= total <= 127:
        if halves and _same(inner, FP16):
            return Scales(Steps(mode, "float16", join), total=total)
        if brains and _same(inner, BF16):
            return Scales(Steps(mode, "bfloat16", join), total=total)
    if _same(inner, FP32):
        chain, exponent = "single", 0
    elif _is_short(inner):
        chain, exponent = "scaled", _scale(inner)
    else:
        return generic
    if not -126 <= total - exponent <= 127:
        return generic
    # The second operand takes the scale of the products as far as it has room; the first takes the rest.
    b = exponent
    while b != 0 and not _packs(operand, b):
        b += 1 if b < 0 else -1
    if not (_packs(operand, b) and _packs(operand, exponent - b)):
        return generic
    return Scales(Steps(mode, chain, join), exponent - b, b, total)


def first_beyond(fmt: FloatFormat, exponent: int) -> float:
    """Return the first power of two beyond the largest finite value, times 2^exponent; infinity if no float is."""
    limit = fmt.emax + 1 + exponent
    return math.inf if limit > 127 else math.ldexp(1.0, limit)


def bound_fields(fmt: FloatFormat, exponent: int, mode: Rounding) -> tuple[float, float, float, float]:
    """Return `safe`, `product_factor`, `smallest` and `growth` of product.h.

    Rounding to nearest, or toward zero, moves a sum by no more than the product that has just joined, for the sum
    without it is a value of the format, too. Other modes move it by less than an ulp, or than the smallest value.
    """
    largest = math.ldexp(2 - 2.0**-fmt.fraction_bits, fmt.emax + exponent)
    least = math.ldexp(1.0, -149)  # makes up for products that are too small for a float
    if mode in (Rounding.NEAREST_EVEN, Rounding.NEAREST_AWAY, Rounding.TOWARD_ZERO):
        return largest, 2.0, least, 0.0
    if STAGE * 2.0**-fmt.fraction_bits > 1:  # beyond it, 1 + 2x is not above exp(x)
        return 0.0, 1.0, least, 0.0
    smallest = math.ldexp(1.0, fmt.emin - fmt.fraction_bits + exponent)
    return largest, 1.0, 2 * max(smallest, least), 2 * 2.0**-fmt.fraction_bits
