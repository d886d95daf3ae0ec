"""The exact product of two normalised operands, in two steps: multiply, normalise."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value, signed

from hdl.cores.bundle import Bundle
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, named

__all__ = ["combine_operands", "normalise_product"]


def product_bias(m: Module, formats: StepFormats, index: Value, accumulator_index: Value) -> Signal:
    """Return the constant that turns the sum of the operands' exponents into the exponent of the product's top bit.

    It has the accumulator's bias, and one because the top bit of a product of significands is worth 2.
    """
    shape = signed(formats.product_exponent_width)
    options = [
        choose(accumulator_index, [C(formats.product_bias(operand, to) + 1, shape) for to in formats.accumulators])
        for operand in formats.operands
    ]
    return named(m, "product_bias", choose(index, options))


def combine_operands(m: Module, formats: StepFormats, a: Bundle, b: Bundle) -> Bundle:
    """Return all parts of the product except its significand, which `hdl.cores.multiplier` computes.

    Parameters
    ----------
    a, b : Bundle
        The results of `normalise_operand`; the result of `product_bias` is added to one exponent.

    Returns
    -------
    Bundle
        ``sign``; ``exponent``: the sum of the exponents, far below all others for a zero; ``is_infinite``; ``is_nan``;
        ``invalid``.
    """
    exponent = Signal(signed(formats.product_exponent_width), name="exponent_sum")
    infinity_times_zero = (a.is_infinite & b.is_zero) | (a.is_zero & b.is_infinite)
    m.d.comb += exponent.eq(Mux(a.is_zero | b.is_zero, formats.exponent_of_zero, a.exponent + b.exponent))
    return Bundle(
        sign=a.sign ^ b.sign,
        exponent=exponent,
        is_infinite=a.is_infinite | b.is_infinite,
        is_nan=a.is_nan | b.is_nan | infinity_times_zero,
        invalid=a.is_signalling | b.is_signalling | infinity_times_zero,
    )


def normalise_product(m: Module, product: Bundle) -> Bundle:
    """Shift the product, which is in [1, 4), by one place if it is below 2.

    ::

        [ 0 1 x x x x ]  ->  [ 1 x x x x 0 ]    below 2
        [ 1 x x x x x ]  ->  [ 1 x x x x x ]

    Parameters
    ----------
    product : Bundle
        The result of `combine_operands`, and ``significand``.

    Returns
    -------
    Bundle
        The same, and ``is_below_2``, which is still to be subtracted from ``exponent``; then the value is
        ``significand * 2**(exponent - (product_width - 1))``, biased as the accumulator.
    """
    top = product.significand[-1]
    moved = Mux(top, product.significand, Cat(C(0, 1), product.significand[:-1]))
    return product.but(significand=named(m, "product_significand", moved), is_below_2=~top)
