"""Detection of swamping: the rounded result still has the value of the accumulator (NUMERICS section 11).

Three bits accompany a step in place of the accumulator. A swamped product is smaller than an ulp of the accumulator.
The magnitude of the result then lies at most two codes below the accumulator's, or one above. The two lowest bits of
the codes therefore decide whether they are equal::

    code of the accumulator - 2    - 1    + 0    + 1
    two lowest bits               10     11     00     01    if the accumulator's are 00
"""

from __future__ import annotations

from amaranth import C, Cat, Mux, Value

from hdl.cores.bundle import Bundle
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, is_at_least

__all__ = ["is_swamped", "watch_addends", "watch_distance"]

#: Bits of a code that are compared.
_COMPARED = 2


def watch_addends(
    formats: StepFormats, index: Value, product: Bundle, accumulator: Bundle, compared: Bundle, subtract: Value
) -> Bundle:
    """Return the facts about the addends that `watch_distance` and `is_swamped` need.

    Parameters
    ----------
    index : Value
        Index of the accumulator's format.
    product, accumulator : Bundle
        Their values after the rank ``read``.
    compared : Bundle
        The result of `hdl.cores.far.compare_exponents`.
    subtract : Value
        Whether the signs of the addends differ.

    Returns
    -------
    Bundle
        ``is_lower``: the product is not zero and its exponent is smaller; ``distance`` of the exponents; ``lowest``:
        the lowest bits of the accumulator's code. Where subnormals are flushed, also ``is_zero``: the accumulator is a
        zero, and the product is none. Unless the only mode is ``nearest_even``, also ``is_largest``: the product is
        not zero, and the accumulator is the largest finite value, of the same sign.
    """
    is_there = product.significand[-1]
    field = Cat(accumulator.exponent[0] & accumulator.significand[-1], accumulator.exponent[1:])
    fraction = accumulator.significand[:-1]
    watched = Bundle(
        is_lower=is_there & compared.product_is_lower,
        distance=compared.distance,
        lowest=_lowest(formats, index, fraction, field),
    )
    if formats.flushes:
        watched = watched.but(is_zero=is_there & ~accumulator.significand[-1])
    if formats.is_nearest_even:
        return watched
    # Below the last place of a narrower format the fraction is zero here.
    largest = [
        (field == fmt.max_finite_field) & (fraction[len(fraction) - fmt.fraction_bits :]).all()
        for fmt in formats.accumulators
    ]
    return watched.but(is_largest=is_there & ~subtract & choose(index, largest))


def watch_distance(formats: StepFormats, index: Value, watched: Bundle) -> Bundle:
    """Return the result of `watch_addends` with ``is_small`` in place of the distance.

    It says that the product is not zero and smaller than an ulp of the accumulator.
    """
    # Biased alike, the leading bits are `distance` + 1 places apart.
    is_below = choose(index, [is_at_least(watched.distance, fmt.fraction_bits) for fmt in formats.accumulators])
    return watched.without("is_lower", "distance").but(is_small=watched.is_lower & is_below)


def is_swamped(formats: StepFormats, index: Value, rounded: Bundle) -> Value:
    """Return whether a step of finite addends has lost its product.

    Parameters
    ----------
    index : Value
        Index of the accumulator's format.
    rounded : Bundle
        The result of `hdl.cores.fused_step.add_product`; its ``watched`` is the result of `watch_distance`.
    """
    watched = rounded.watched
    is_same = _lowest(formats, index, rounded.fraction, rounded.field) == watched.lowest
    is_lost = watched.is_small & is_same
    if formats.flushes:  # a result that is tiny has the value of a zero alone, whatever the lowest bits
        is_lost = Mux(rounded.is_subnormal, watched.is_zero, is_lost)
    if formats.is_nearest_even:
        return is_lost
    # Beyond the largest finite value a product of any size may be lost.
    return is_lost | (watched.is_largest & rounded.to_largest)


def _lowest(formats: StepFormats, index: Value, fraction: Value, field: Value) -> Value:
    """Return the lowest bits of a code with a left-aligned fraction."""
    codes = [Cat(fraction[len(fraction) - fmt.fraction_bits :], field) for fmt in formats.accumulators]
    return choose(index, [Cat(code, C(0, 1))[:_COMPARED] for code in codes])
