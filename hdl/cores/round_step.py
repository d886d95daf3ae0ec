"""The end of a step: both paths join, and the sum is normalised and rounded into the accumulator's format."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.bundle import Bundle
from hdl.cores.modes import chosen_modes
from hdl.cores.operand import GROUP
from hdl.cores.step_formats import StepFormats
from hdl.cores.step_modes import add_random, increments, kept_finite, other_modes, round_up
from hdl.cores.words import choose, named

__all__ = ["join_paths", "normalise_sum", "round_sum"]

#: Places of a sum that may become the lowest kept bit, the round bit and the next one, and those that stay below them.
_WINDOW = 6


def join_paths(
    m: Module, formats: StepFormats, index: Value, near: Bundle, near_word: Value, far: Bundle, controls: Any = None
) -> Bundle:
    """Merge the results of both paths into one word; the unused path is zero.

    ::

        [ c h x x x x x ... ]    far: carry, leading bit of the larger addend; a difference may begin one below it
        [ 0 0 0 1 x x x ... ]    near: the first digit is one of the top four

    Parameters
    ----------
    index : Value
        Index of the accumulator's format.
    near : Bundle
        The result of `hdl.cores.near.first_shift`, 0 if this path is unused; ``lowest``, the place of the limit in its
        group.
    far : Bundle
        ``sum``, ``subtract`` and ``within``, the shift of a sum without a leading one in the top two places, which are
        0 if this path is unused; ``is_near``, ``sign``; ``exponent``, and what it is ``less``.
    controls : View
        With the fields of `formats.controls`, if there are any.

    Returns
    -------
    Bundle
        ``magnitude``, inverted and one less if ``negative``; ``window``, the places of it where rounding is decided;
        ``ones``, whether each group of four places from the bottom has any; ``shift``, the remaining shift to the left
        in places; ``exponent`` of the place below the top; ``sign``; ``subtract``. With a choice of modes also
        ``increments``.
    """
    width = formats.sum_width
    far_word = Cat(C(0, width - len(far.sum)), far.sum)
    near_placed = Cat(C(0, width - len(near_word)), near_word)
    top, leading = far.sum[-1], far.sum[-2]
    exceeds = named(m, "exceeds_limit", near.is_limited & (near.within > near.lowest))
    within = Mux(exceeds, near.lowest, near.within)
    # A carry stays in place, a leading one moves by one place, and a one below it by two unless the exponent is the
    # smallest. A negative difference is of the last kind. The far path's sum is zero if that path is unused.
    shift = within | Cat(Mux(top, far.subtract, leading | far.within[0]), ~top & ~leading & far.within[1])
    negative = near.negative | (top & far.subtract)
    less = Cat(far.less, near.skipped)
    if formats.flushes:  # a sum below the smallest normal number has an exponent below 1
        size = max(len(far.exponent), (formats.near_width + GROUP).bit_length()) + 1
        exponent = Signal(size, name="sum_exponent")
        m.d.comb += exponent.eq(far.exponent - less)
    else:
        exponent = Signal(len(far.exponent), name="sum_exponent")
        # A zero difference moves by three places.
        m.d.comb += exponent.eq(Mux(near.is_zero, 3, far.exponent - less))
    word = named(m, "sum_word", far_word | near_placed)
    padded = Cat(C(0, _WINDOW), word)
    sign = far.sign ^ negative
    its_increments = {}
    if len(formats.roundings) > 1:
        its_increments["increments"] = named(m, "increments", increments(formats, controls, negative, sign))
    return Bundle(
        magnitude=word,
        window=choose(index, [padded[width - fmt.precision + 1 :][:_WINDOW] for fmt in formats.accumulators]),
        ones=Cat(word[start : start + GROUP].any() for start in range(0, width, GROUP)),
        shift=shift,
        negative=negative,
        exponent=exponent,
        sign=sign,
        subtract=far.is_near | far.subtract,
        **its_increments,
    )


def normalise_sum(m: Module, formats: StepFormats, index: Value, total: Bundle, controls: Any = None) -> Bundle:
    """Shift left by up to three places and find round bit, next bit and sticky bit.

    ::

        [ h . f f f f f f f f | round_bit | next | sticky ... ]
          |   `-- kept ---'
          `-- 0: subnormal or zero

                         [ k r n s s s ] l l l    window: of a word that stays in place; it moves with the word.
                                                  l: always below it, so found for the whole word

    The kept bits of a negative word are inverted. The three bits after them are not: they round the signed number.

    Parameters
    ----------
    index : Value
        Index of the accumulator's format.
    controls : View
        With the fields of `formats.controls`, if there are any.

    Returns
    -------
    Bundle
        ``magnitude``: exponent and kept fraction; ``round_up``, the increment; ``is_subnormal``; ``round_bit``, not
        inverted; ``following``, ``below`` it, and ``sticky`` (the OR of both) of the signed number; ``negative``;
        ``exponent``; ``sign``. Unless the only mode is ``nearest_even``, also the values from
        `hdl.cores.step_modes.other_modes`.
    """
    width = formats.sum_width
    negative = total.negative.replicate(width)
    word = named(m, "digits", total.magnitude ^ negative)
    by_one = named(m, "sum_by_1", Mux(total.shift[0], Cat(total.negative, word[:-1]), word))
    moved = named(m, "sum_by_2", Mux(total.shift[1], Cat(total.negative, total.negative, by_one[:-2]), by_one))

    window, shift, lost = total.window, total.shift, named(m, "lost", _any_lost(formats, index, total))
    stays, by_two = (Mux(shift[0], window[2 - moves : 5 - moves], window[3 - moves : 6 - moves]) for moves in (0, 2))
    following, round_place, lowest_place = Mux(shift[1], by_two, stays)
    below = lost | Cat(window[2 - moves] & (shift <= moves) for moves in range(3)).any()
    sticky = named(
        m, "sticky", lost | window[0] | Cat(window[3 - moves] & (shift <= moves) for moves in range(3)).any()
    )
    exponent = Signal(len(total.exponent), name="rounded_exponent")
    # 1 - shift as two's complement, without an adder
    change = Cat(~total.shift[0], total.shift[1].replicate(len(exponent) - 1))
    m.d.comb += exponent.eq(total.exponent + change)
    magnitude = _magnitude(formats, index, moved, exponent)
    # Where subnormals are flushed: so small that no carry makes it the smallest normal number, or an exact zero.
    is_subnormal = ~moved[-1] | exponent[-1] if formats.flushes else ~moved[-1]
    round_bit = named(m, "round_bit", round_place ^ total.negative)
    lowest = named(m, "lowest", lowest_place ^ total.negative)
    if len(formats.roundings) > 1:
        ups = list(total.increments)
        for bit in (lowest, sticky, round_bit):
            ups = [Mux(bit, if_one, if_zero) for if_zero, if_one in zip(ups[::2], ups[1::2], strict=True)]
        up = ups[0]
    else:
        chosen = chosen_modes(formats.roundings, controls)
        up = round_up(chosen, total.negative, round_bit=round_bit, sticky=sticky, lowest=lowest, sign=total.sign)
    cancels = total.subtract & ~total.negative & ~total.ones.any()
    normal = Bundle(
        round_up=named(m, "round_up", up),
        magnitude=magnitude,
        is_subnormal=is_subnormal,
        round_bit=round_bit,
        following=following,
        below=below,
        sticky=sticky,
        negative=total.negative,
        exponent=exponent,
        # An exact zero is positive unless both addends are negative. (A negative power of two has only its sign left.)
        sign=total.sign & ~cancels,
    )
    if formats.flushes:
        normal = normal.but(has_ones=total.negative | total.ones.any())
    if formats.is_nearest_even:
        return normal
    return other_modes(m, formats, index, controls, total, normal.but(cancels=cancels), moved)


def _any_lost(formats: StepFormats, index: Value, total: Bundle) -> Value:
    """Return whether a sum has a one below its window, by whole groups of four places where it can.

    Places below the lowest window are below all of them, so each format adds only the places between.
    """
    found, done = [], 0
    ends = [max(len(total.magnitude) - fmt.precision + 1 - _WINDOW, 0) for fmt in formats.accumulators]
    for end in sorted(set(ends)):
        first, last = -(-done // GROUP), end // GROUP
        places = total.magnitude[done:end]
        if first < last:
            places = Cat(places[: GROUP * first - done], total.ones[first:last], total.magnitude[GROUP * last : end])
        found.append(choose(index, [C(end <= own, 1) for own in ends]) & places.any())
        done = end
    return Cat(found).any()


def _magnitude(formats: StepFormats, index: Value, word: Value, exponent: Value) -> Value:
    """Return ``[exponent | fraction]``; ones below the last place of a narrower format propagate a carry to it."""
    top, fraction_bits = len(word) - 1, formats.accumulator_precision - 1
    fractions = []
    for fmt in formats.accumulators:
        filled = fraction_bits - fmt.fraction_bits
        fractions.append(Cat(C((1 << filled) - 1, filled), word[top - fmt.fraction_bits : top]))
    field = Cat(exponent, C(0, formats.accumulator_exponent_bits))[: formats.accumulator_exponent_bits]
    return Cat(choose(index, fractions), field)


def round_sum(m: Module, formats: StepFormats, index: Value, normal: Bundle, controls: Any = None) -> Bundle:
    """Round by one addition over ``[exponent | fraction]``.

    Its carry turns the largest subnormal into the smallest normal, a full fraction into the next binade and the largest
    finite value into infinity. The kept bits of a negative word are ``-K - 1`` for a signed number K. The sum is then
    the magnitude of K rounded, because ``-(K + up)`` is ``(-K - 1) + (1 - up)``.

    Returns
    -------
    Bundle
        ``sign``, ``field``, ``fraction``; ``is_subnormal`` (before rounding; where subnormals are flushed, whether the
        number is a zero, whose fraction is undefined, and ``has_ones`` if it is not exact); ``too_large``: the exponent
        was beyond the format before rounding; ``is_largest``: it was the largest of the format; ``inexact``;
        ``following``: the magnitude's bit after the round bit, which would round up a result that is one place longer.
        Unless the only mode is ``nearest_even``, also ``to_largest``: a result that was too large became the largest
        finite value.
    """
    fraction_bits, exponent_bits = formats.accumulator_precision - 1, formats.accumulator_exponent_bits
    if formats.flushes:
        return _flushed_sum(m, formats, index, normal, controls)
    # The exponent of a subnormal is 1, its field 0.
    less_one = normal.is_subnormal.replicate(exponent_bits)
    rounded = Signal(fraction_bits + exponent_bits, name="rounded")
    addend, more = Cat(C(0, fraction_bits), less_one), {}
    if formats.is_stochastic:
        kept, more["longer_carries"] = add_random(m, formats, controls, normal, addend)
        m.d.comb += rounded.eq(kept)
    else:
        m.d.comb += rounded.eq(normal.magnitude + addend + normal.round_up)
    result = _result(m, formats, index, normal, rounded).but(**more)
    return result if formats.is_nearest_even else kept_finite(m, formats, index, controls, normal, result)


def _result(m: Module, formats: StepFormats, index: Value, normal: Bundle, rounded: Value) -> Bundle:
    """Return the result of `round_sum` with its number, ``[exponent | fraction]``."""
    fraction_bits, exponent = formats.accumulator_precision - 1, normal.exponent
    # The largest exponent field of a format is all ones but for the lowest bit.
    is_beyond = named(m, "is_beyond", choose(index, [exponent[f.exponent_bits :].any() for f in formats.accumulators]))
    are_ones = named(m, "are_ones", choose(index, [exponent[1 : f.exponent_bits].all() for f in formats.accumulators]))
    return Bundle(
        sign=normal.sign,
        field=rounded[fraction_bits:],
        fraction=rounded[:fraction_bits],
        is_subnormal=normal.is_subnormal,
        too_large=is_beyond | (are_ones & exponent[0]),
        is_largest=~is_beyond & are_ones & ~exponent[0],
        inexact=(normal.round_bit ^ normal.negative) | normal.sticky,
        following=normal.following ^ (normal.negative & normal.below),
    )


def _flushed_sum(m: Module, formats: StepFormats, index: Value, normal: Bundle, controls: Any) -> Bundle:
    """Do as `round_sum` where subnormals are flushed.

    ::

        exponent 1 and more   a normal number
        exponent 0            a carry out of an all-ones fraction makes the smallest normal number, else zero
        exponent -1 and less  zero

    With exponent 0 and without a carry, the field is 0. The fraction is left as it is: whoever reads it has a rank in
    which to clear it, and the addition has just ended.
    """
    fraction_bits = formats.accumulator_precision - 1
    rounded = Signal(len(normal.magnitude), name="rounded")
    kept = normal.magnitude + normal.round_up
    if formats.is_stochastic:
        kept, _ = add_random(m, formats, controls, normal, C(0, 1))
    m.d.comb += rounded.eq(Mux(normal.is_subnormal, 0, kept))
    is_lowest = named(m, "is_lowest", ~normal.exponent.any())
    is_zero = named(m, "is_flushed", normal.is_subnormal | (is_lowest & ~rounded[fraction_bits]))
    whole = _result(m, formats, index, normal, rounded)
    result = whole.but(
        is_subnormal=is_zero,
        has_ones=normal.has_ones,
        too_large=whole.too_large & ~normal.is_subnormal,
        is_largest=whole.is_largest & ~normal.is_subnormal,
    ).without("following")
    return result if formats.is_nearest_even else kept_finite(m, formats, index, controls, normal, result)
