"""Whether a step loses its product whole: the rounded result has the value of the accumulator (NUMERICS section 11).

Instead of the accumulator, three bits go along with a step. A product that is lost is smaller than an ulp of the
accumulator; then the magnitude of the result lies at most two codes below the accumulator's, and one above it, so that
the two lowest bits of the codes tell whether they are the same::

    code of the accumulator - 2    - 1    + 0    + 1
    two lowest bits               10     11     00     01    if those of the accumulator are 00
"""

from __future__ import annotations

from amaranth import C, Cat, Value

from hdl.cores.bundle import Bundle
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose

__all__ = ["is_swamped", "watch_addends"]

#: Bits of a code that are compared.
_COMPARED = 2


def watch_addends(
    formats: StepFormats, index: Value, product: Bundle, accumulator: Bundle, compared: Bundle, subtract: Value
) -> Bundle:
    """Return what of the addends must be known when the result is.

    Parameters
    ----------
    index : Value
        Of the accumulator's format.
    product, accumulator : Bundle
        As behind the rank ``compare``.
    compared : Bundle
        What `hdl.cores.far.exponent_difference` returns.
    subtract : Value
        Whether the signs of the addends differ.

    Returns
    -------
    Bundle
        ``is_small``: the product is not zero and smaller than an ulp of the accumulator; ``lowest``: the lowest bits
        of the accumulator's code. In other modes than the nearest even number also ``is_largest``: the product is not
        zero, and the accumulator is the largest finite value, of the same sign.
    """
    is_there = product.significand[-1]
    # Biased alike, the leading bits are `distance` + 1 places apart.
    is_below = choose(index, [compared.distance >= fmt.fraction_bits for fmt in formats.accumulators])
    field = Cat(accumulator.exponent[0] & accumulator.significand[-1], accumulator.exponent[1:])
    fraction = accumulator.significand[:-1]
    watched = Bundle(
        is_small=is_there & compared.product_is_lower & is_below,
        lowest=_lowest(formats, index, fraction, field),
    )
    if formats.is_nearest_even:
        return watched
    # Below the last place of a narrower format the fraction is zero here.
    largest = [
        (field == fmt.max_finite_field) & (fraction[len(fraction) - fmt.fraction_bits :]).all()
        for fmt in formats.accumulators
    ]
    return watched.but(is_largest=is_there & ~subtract & choose(index, largest))


def is_swamped(formats: StepFormats, index: Value, rounded: Bundle) -> Value:
    """Tell whether a step of finite addends has lost its product.

    Parameters
    ----------
    index : Value
        Of the accumulator's format.
    rounded : Bundle
        What `hdl.cores.fused_step.add_product` returns, with ``watched``: what `watch_addends` returns.
    """
    watched = rounded.watched
    is_same = _lowest(formats, index, rounded.fraction, rounded.field) == watched.lowest
    is_lost = watched.is_small & is_same
    if formats.is_nearest_even:
        return is_lost
    # Beyond the largest finite value a product of any size may be lost.
    return is_lost | (watched.is_largest & rounded.to_largest)


def _lowest(formats: StepFormats, index: Value, fraction: Value, field: Value) -> Value:
    """Return the lowest bits of a code, whose fraction stands at the left."""
    codes = [Cat(fraction[len(fraction) - fmt.fraction_bits :], field) for fmt in formats.accumulators]
    return choose(index, [Cat(code, C(0, 1))[:_COMPARED] for code in codes])
