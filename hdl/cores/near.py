"""The near path: the difference of addends at most one place apart, whose leading ones may cancel.

Its result may need a long shift to the left, but neither addend needs one to the right.
"""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Value

from hdl.cores.bundle import Bundle
from hdl.cores.carries import subtract_from_chosen
from hdl.cores.operand import GROUP, first_group, zeros_in_groups
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import named

__all__ = ["count_leading_digits", "first_shift", "near_difference", "second_shift"]


def near_difference(
    m: Module, formats: StepFormats, product: Bundle, accumulator: Bundle, places: Value, kind: str
) -> Bundle:
    """Subtract the accumulator from a product at most one place away.

    ::

                         H                     H: the place of the accumulator's leading bit
        accumulator  [ 0 a a a a a a 0 0 0 ]
        product      [ p p p p p p 0 0 0 0 ]   one place above it, or
                     [ 0 p p p p p p 0 0 0 ]   at the same place, or
                     [ 0 0 p p p p p p 0 0 ]   one place below it

    Parameters
    ----------
    places : Value
        Product exponent minus accumulator exponent, modulo 4.
    kind : str
        One of `hdl.cores.multiplier.MULTIPLIERS`.

    Returns
    -------
    Bundle
        ``difference``: signed, `near_width` bits and a sign; ``limit``: marks the lowest place from which a leading one
        may move to the top. It is one place lower for each step of the exponent above the smallest. There is none, and
        it is 0, where subnormals are flushed.
    """
    width = formats.near_width

    def at(significand: Value, place: int) -> Value:
        """Put the leading bit `place` places below the top, and a place for the sign above it."""
        return Cat(C(0, width - place - len(significand)), significand, C(0, place + 1))

    above, level, below = (at(product.significand, place) for place in (0, 1, 2))
    elsewhere = named(m, "near_product", Mux(places[1], below, above))
    difference = subtract_from_chosen(
        m, "near_difference", ~places[0], (elsewhere, level), at(accumulator.significand, 1), kind
    )
    if formats.flushes:
        return Bundle(difference=difference, limit=C(0, width + 1))
    # From the top: a leading one there would result in the accumulator's exponent plus one.
    limit = [accumulator.exponent == place for place in range(width + 1)]
    return Bundle(difference=difference, limit=named(m, "near_limit", Cat(*reversed(limit))))


def count_leading_digits(m: Module, near: Bundle) -> Bundle:
    """Find the first place that is not a copy of the sign, or the limit if that comes first, by groups of four places.

    A negative difference is not negated here: rounding inverts its digits and adds the missing one as a carry. A power
    of two therefore looks one place shorter than it is, which that carry also corrects.
    """
    negative = near.difference[-1]
    width = len(near.difference) - 1
    # The extra lowest place stands for the one missing from a negative difference, so that -1 is not taken for zero.
    digits = Cat(negative, near.difference[:width] ^ negative.replicate(width))
    zeros, counts = zeros_in_groups(named(m, "near_digits", digits | near.limit))
    return Bundle(
        difference=near.difference[:width],
        negative=negative,
        zeros=Cat(*zeros),
        counts=Cat(*counts),
    )


def first_shift(m: Module, near: Bundle) -> Bundle:
    """Shift left by 16 places for four or more groups of leading digits, and encode the rest of the shift.

    Returns
    -------
    Bundle
        ``difference``; ``skipped``, the number of groups; ``within``, the remaining shift after all groups;
        ``is_zero``: no digit and no limit was found; ``negative``.
    """
    zeros, groups = list(near.zeros), len(near.zeros)
    counts = [near.counts[2 * group :][:2] for group in range(groups)]
    skipped = named(
        m,
        "near_skipped",
        first_group(zeros[:-1], [C(g, (groups - 1).bit_length()) for g in range(groups - 1)], C(groups - 1)),
    )
    word = near.difference
    if groups > 4:
        word = Mux(Cat(zeros[:4]).all(), Cat(C(0, 4 * GROUP), word)[: len(word)], word)
    return Bundle(
        difference=named(m, "near_shifted_16", word),
        skipped=skipped,
        # With the exponent set to 1, a zero difference that moves by the usual one place becomes a zero.
        within=named(m, "near_within", first_group(zeros, counts, C(1, 2))),
        is_zero=near.zeros.all(),
        negative=near.negative,
    )


def second_shift(m: Module, near: Bundle) -> Value:
    """Shift left by 8 and by 4 places, which leaves at most three leading digits."""
    word = near.difference
    for bit in (1, 0):
        if bit < len(near.skipped):
            moved = Cat(C(0, GROUP << bit), word)[: len(word)]
            word = named(m, f"near_shifted_{GROUP << bit}", Mux(near.skipped[bit], moved, word))
    return word
