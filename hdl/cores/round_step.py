"""The end of a step: both paths meet, the sum is normalised and rounded into the accumulator's format."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.bundle import Bundle
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, named

__all__ = ["join_paths", "normalise_sum", "round_sum"]


def join_paths(m: Module, formats: StepFormats, near: Bundle, near_word: Value, far: Bundle, far_sum: Value) -> Bundle:
    """Put the results of both paths into one word; the path that does not count is zero.

    ::

        [ c h x x x x x ... ]    far: carry, leading bit of the larger addend; a difference may begin one below it
        [ 0 0 0 1 x x x ... ]    near: the first digit is one of the top four

    Parameters
    ----------
    near : Bundle
        ``within``, ``is_zero``, ``negative``, ``skipped``.
    far : Bundle
        ``exponent``, ``is_near``, ``subtract``, ``sign``.

    Returns
    -------
    Bundle
        ``magnitude``, inverted and one less if ``negative``; ``shift``, by how many places it is still to be moved left;
        ``exponent`` of the place below the top; ``sign``; ``subtract``.
    """
    width = formats.sum_width
    far_word = Cat(C(0, width - len(far_sum)), far_sum)
    near_placed = Cat(C(0, width - len(near_word)), near_word)
    top, leading = far_sum[-1], far_sum[-2]
    carry = top & ~far.subtract
    # A carry stays; a leading one moves by one; one below it by two, unless the exponent is the smallest.
    at_smallest = far.exponent == 1
    far_shift = Cat(~carry & (leading | at_smallest), ~carry & ~leading & ~at_smallest)
    negative = Mux(far.is_near, near.negative, top & far.subtract)
    exponent = Signal(len(far.exponent), name="sum_exponent")
    skipped = Mux(far.is_near, Cat(C(0, 2), near.skipped), 0)
    m.d.comb += exponent.eq(Mux(far.is_near & near.is_zero, 1, far.exponent - skipped))
    return Bundle(
        magnitude=named(m, "sum_word", far_word | near_placed),
        shift=Mux(far.is_near, near.within, far_shift),
        negative=negative,
        exponent=exponent,
        sign=far.sign ^ negative,
        subtract=far.is_near | far.subtract,
    )


def normalise_sum(m: Module, formats: StepFormats, index: Value, total: Bundle) -> Bundle:
    """Shift left by up to three places and find guard, next bit and sticky bit.

    ::

        [ h . f f f f f f f f | guard | next | sticky ... ]
          |   `-- kept ---'
          `-- 0: subnormal or zero

    Of a negative word the kept bits are inverted, but not the three after them, which say how the signed number rounds.

    Parameters
    ----------
    index : Value
        Of the accumulator's format.

    Returns
    -------
    Bundle
        ``kept`` and ``guard`` as they stand; ``following`` and ``below`` (sticky) of the signed number; ``exponent``.
    """
    width = formats.sum_width
    negative = total.negative.replicate(width)
    word = named(m, "digits", total.magnitude ^ negative)
    by_one = named(m, "sum_by_1", Mux(total.shift[0], Cat(total.negative, word[:-1]), word))
    moved = named(m, "sum_by_2", Mux(total.shift[1], Cat(total.negative, total.negative, by_one[:-2]), by_one))

    following, below = [], []
    for fmt in formats.accumulators:
        place = width - fmt.precision - 2
        following.append(moved[place] ^ total.negative)
        # Before the shift: the lowest `place` bits less as many as it moves up.
        always = total.magnitude[: max(place - 3, 0)].any()
        some = [
            total.magnitude[place - 1 - moves] & (total.shift <= moves) for moves in range(3) if place - 1 - moves >= 0
        ]
        below.append(always | Cat(some).any())
    exponent = Signal(formats.exponent_width, name="rounded_exponent")
    # + 1 - shift, as two's complement without an adder
    change = Cat(~total.shift[0], total.shift[1].replicate(len(exponent) - 1))
    m.d.comb += exponent.eq(total.exponent + change)
    return Bundle(
        kept=moved,
        following=choose(index, following),
        below=choose(index, below),
        negative=total.negative,
        exponent=exponent,
        # An exact zero is positive unless both addends are negative. (A negative power of two has only its sign left.)
        sign=total.sign & ~(total.subtract & ~total.negative & ~total.magnitude.any()),
    )


def round_sum(m: Module, formats: StepFormats, index: Value, normal: Bundle) -> Bundle:
    """Round to nearest, ties to even, by one addition over ``[exponent field | fraction]``.

    Its carry turns the largest subnormal into the smallest normal, a full fraction into the next binade and the largest
    finite value into infinity. For a negative word, whose kept bits are ``-K - 1`` for a signed number K, the sum is the
    magnitude of K rounded: ``-(K + up)`` is ``(-K - 1) + (1 - up)``.

    Returns
    -------
    Bundle
        ``sign``, ``field``, ``fraction``, ``is_subnormal`` (before rounding); ``too_large``: the exponent was beyond the
        format before rounding; ``inexact``; ``following``: the bit after the guard, of the magnitude.
    """
    fraction_bits = formats.accumulator_precision - 1
    top = len(normal.kept) - 1
    lowest, guard, kept = [], [], []
    for fmt in formats.accumulators:
        lowest.append(normal.kept[top - fmt.fraction_bits])
        guard.append(normal.kept[top - fmt.fraction_bits - 1])
        # [ f f f f | 1 1 1 ]: below the last place of a narrower format, ones hand the carry on to it
        filled = fraction_bits - fmt.fraction_bits
        kept.append(Cat(C((1 << filled) - 1, filled), normal.kept[top - fmt.fraction_bits : top]))
    lowest_bit, guard_bit = named(m, "lowest", choose(index, lowest)), named(m, "guard", choose(index, guard))
    sticky = normal.following | normal.below
    # Of the signed number, up = guard & (sticky | lowest); the bits of a negative one stand here inverted.
    up_negative = guard_bit | (~sticky & lowest_bit)
    round_up = named(m, "round_up", Mux(normal.negative, up_negative, guard_bit & (sticky | lowest_bit)))

    exponent_bits = formats.accumulator_exponent_bits
    is_subnormal = ~normal.kept[top]
    exponent = normal.exponent[:exponent_bits]
    magnitude = Cat(choose(index, kept), exponent, C(0, exponent_bits - len(exponent)))
    # The exponent of a subnormal is 1, its field 0.
    less_one = Cat(C(0, fraction_bits), is_subnormal.replicate(exponent_bits))
    rounded = Signal(fraction_bits + exponent_bits, name="rounded")
    m.d.comb += rounded.eq(magnitude + less_one + round_up)
    return Bundle(
        sign=normal.sign,
        field=rounded[fraction_bits:],
        fraction=rounded[:fraction_bits],
        is_subnormal=is_subnormal,
        too_large=choose(index, [normal.exponent >= fmt.exponent_field_max for fmt in formats.accumulators]),
        inexact=(guard_bit ^ normal.negative) | sticky,
        following=normal.following ^ (normal.negative & normal.below),
    )
