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
        ``difference``: signed, `near_width` bits and a sign; ``limit``: the group of four places with the lowest one
        from which a leading one may move to the top, which is one place lower for each step of the exponent above the
        smallest. There is none, and it is 0, where subnormals are flushed.
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
    groups = -(-(width + 1) // GROUP)
    if formats.flushes:
        return Bundle(difference=difference, limit=C(0, groups))
    # From the top: a leading one there would result in the accumulator's exponent plus one.
    return Bundle(
        difference=difference,
        limit=named(m, "near_limit", Cat(accumulator.exponent[2:] == group for group in range(groups))),
    )


def count_leading_digits(m: Module, near: Bundle) -> Bundle:
    """Find the first place that is not a copy of the sign, or the limit if that comes first, by groups of four places.

    ::

        [ 0 | 0 0 0 0 | 0 0 1 x | x x x x ]    the place above a group shows the sign, down to the first digit

    A negative difference is not negated here: rounding inverts its digits and adds the missing one as a carry. A power
    of two therefore looks one place shorter than it is, which that carry also corrects.

    Returns
    -------
    Bundle
        ``difference``, without its sign; ``negative``; ``limit``, unchanged; ``counts``: for each group, the places
        above its first digit; and for each pair of groups, ``skips``: whether the first one has neither digit nor
        limit; ``zeros``: whether both have neither.
    """
    # The extra lowest place stands for the one missing from a negative difference, so that -1 is not taken for zero.
    places = [*reversed(list(near.difference)), C(0, 1)]
    empty, counts = [], []
    for number, start in enumerate(range(1, len(places), GROUP)):
        above = places[start - 1]
        group = (places[start:][:GROUP] + [above] * GROUP)[:GROUP]
        (is_zero,), (count,) = zeros_in_groups(Cat(*reversed(group)) ^ above.replicate(GROUP))
        empty.append(is_zero & ~near.limit[number])
        counts.append(count)
    pairs = [empty[first : first + 2] for first in range(0, len(empty), 2)]
    return Bundle(
        difference=near.difference[:-1],
        negative=near.difference[-1],
        limit=near.limit,
        counts=Cat(*counts),
        skips=Cat(*(pair[0] for pair in pairs)),
        zeros=Cat(*(Cat(*pair).all() for pair in pairs)),
    )


def first_shift(m: Module, near: Bundle, is_near: Value) -> Bundle:
    """Shift left by pairs of groups without a digit, and encode the rest of the shift.

    Parameters
    ----------
    near : Bundle
        The result of `count_leading_digits`.
    is_near : Value
        Whether this path is used. If not, all results are 0: the reset of their registers clears them, without a LUT.

    Returns
    -------
    Bundle
        ``difference``; ``skipped``, the number of groups; ``within``, the shift that remains up to the first digit;
        ``is_limited``: its group has the limit; ``is_zero``: there is neither digit nor limit; ``negative``.
    """
    groups = [Cat(near.counts[2 * group :][:2], limit) for group, limit in enumerate(near.limit)]
    if len(groups) % 2:
        groups.append(groups[-1])
    zeros = list(near.zeros)
    numbers = [C(pair, (len(zeros) - 1).bit_length()) for pair in range(len(zeros))]
    options = [
        Cat(Mux(skips, second, first), skips)
        for skips, first, second in zip(near.skips, groups[::2], groups[1::2], strict=True)
    ]
    found = named(m, "near_found", first_group(zeros[:-1], options[:-1], options[-1]))
    pairs = named(m, "near_pairs", first_group(zeros[:-1], numbers[:-1], numbers[-1]))
    word = near.difference
    for bit, skips in enumerate(pairs):
        moves = 2 * GROUP << bit
        word = named(m, f"near_shifted_{moves}", Mux(skips, Cat(C(0, moves), word)[: len(word)], word))

    def used(value: Value) -> Value:
        return Mux(is_near, value, 0)

    return Bundle(
        difference=used(word),
        skipped=used(Cat(found[3], pairs)),
        within=used(found[:2]),
        is_limited=is_near & found[2],
        is_zero=is_near & near.zeros.all(),
        negative=is_near & near.negative,
    )


def second_shift(m: Module, near: Bundle) -> Value:
    """Shift left by a group of four places, which leaves at most three leading digits."""
    word = near.difference
    return named(m, f"near_shifted_{GROUP}", Mux(near.skipped[0], Cat(C(0, GROUP), word)[: len(word)], word))
