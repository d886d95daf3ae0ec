"""The end of a step: both paths join, and the sum is normalised and rounded into the accumulator's format."""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.bundle import Bundle
from hdl.cores.modes import chosen_modes
from hdl.cores.operand import GROUP
from hdl.cores.step_formats import StepFormats
from hdl.cores.step_modes import kept_finite, other_modes, round_up
from hdl.cores.words import choose, named

__all__ = ["join_paths", "normalise_sum", "round_sum"]

#: Places of a sum that may become the lowest kept bit, the round bit and the next one, and those that stay below them.
_WINDOW = 6


def join_paths(m: Module, formats: StepFormats, index: Value, near: Bundle, near_word: Value, far: Bundle) -> Bundle:
    """Merge the results of both paths into one word; the unused path is zero.

    ::

        [ c h x x x x x ... ]    far: carry, leading bit of the larger addend; a difference may begin one below it
        [ 0 0 0 1 x x x ... ]    near: the first digit is one of the top four

    Parameters
    ----------
    index : Value
        Index of the accumulator's format.
    near : Bundle
        ``within``, ``is_zero``, ``skipped``; ``negative``, 0 if this path is unused.
    far : Bundle
        ``sum``, ``exponent`` and whether it is ``at_smallest``, ``is_near``, ``sign``; ``subtract``, 0 if this path is
        unused.

    Returns
    -------
    Bundle
        ``magnitude``, inverted and one less if ``negative``; ``window``, the places of it where rounding is decided;
        ``ones``, whether each group of four places from the bottom has any; ``shift``, the remaining shift to the left
        in places; ``exponent`` of the place below the top; ``sign``; ``subtract``.
    """
    width = formats.sum_width
    far_word = Cat(C(0, width - len(far.sum)), far.sum)
    near_placed = Cat(C(0, width - len(near_word)), near_word)
    top, leading = far.sum[-1], far.sum[-2]
    # A carry stays in place, a leading one moves by one place, and a one below it by two unless the exponent is the
    # smallest. A negative difference is of the last kind. The far path's sum is zero if that path is unused.
    far_otherwise = Cat(far.at_smallest, ~far.at_smallest)
    otherwise = named(m, "shift_otherwise", Mux(far.is_near, near.within, far_otherwise))
    shift = Cat(Mux(top, far.subtract, leading | otherwise[0]), ~top & ~leading & otherwise[1])
    negative = near.negative | (top & far.subtract)
    exponent = Signal(len(far.exponent), name="sum_exponent")
    skipped = Mux(far.is_near, Cat(C(0, 2), near.skipped), 0)
    m.d.comb += exponent.eq(Mux(far.is_near & near.is_zero, 1, far.exponent - skipped))
    word = named(m, "sum_word", far_word | near_placed)
    padded = Cat(C(0, _WINDOW), word)
    return Bundle(
        magnitude=word,
        window=choose(index, [padded[width - fmt.precision + 1 :][:_WINDOW] for fmt in formats.accumulators]),
        ones=Cat(word[start : start + GROUP].any() for start in range(0, width, GROUP)),
        shift=shift,
        negative=negative,
        exponent=exponent,
        sign=far.sign ^ negative,
        subtract=far.is_near | far.subtract,
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
    exponent = Signal(formats.exponent_width, name="rounded_exponent")
    # 1 - shift as two's complement, without an adder
    change = Cat(~total.shift[0], total.shift[1].replicate(len(exponent) - 1))
    m.d.comb += exponent.eq(total.exponent + change)
    magnitude = _magnitude(formats, index, moved, exponent)
    is_subnormal = ~moved[-1]
    round_bit = named(m, "round_bit", round_place ^ total.negative)
    lowest = named(m, "lowest", lowest_place ^ total.negative)
    chosen, below_kept = chosen_modes(formats.roundings, controls), {"sticky": sticky, "lowest": lowest}
    cancels = total.subtract & ~total.negative & ~total.ones.any()
    normal = Bundle(
        round_up=round_up(chosen, total.negative, round_bit=round_bit, sign=total.sign, **below_kept),
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
    if formats.is_nearest_even:
        return normal
    random = controls.random if formats.is_stochastic else None
    return other_modes(m, formats, index, chosen, random, total, normal, cancels)


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


def round_sum(m: Module, formats: StepFormats, index: Value, normal: Bundle) -> Bundle:
    """Round by one addition over ``[exponent | fraction]``.

    Its carry turns the largest subnormal into the smallest normal, a full fraction into the next binade and the largest
    finite value into infinity. The kept bits of a negative word are ``-K - 1`` for a signed number K. The sum is then
    the magnitude of K rounded, because ``-(K + up)`` is ``(-K - 1) + (1 - up)``.

    Returns
    -------
    Bundle
        ``sign``, ``field``, ``fraction``; ``is_subnormal`` (before rounding); ``too_large``: the exponent was beyond
        the format before rounding; ``is_largest``: it was the largest of the format; ``inexact``; ``following``: the
        magnitude's bit after the round bit, which would round up a result that is one place longer. Unless the only
        mode is ``nearest_even``, also ``to_largest``: a result that was too large became the largest finite value.
    """
    fraction_bits, exponent_bits = formats.accumulator_precision - 1, formats.accumulator_exponent_bits
    # The exponent of a subnormal is 1, its field 0.
    less_one = normal.is_subnormal.replicate(exponent_bits)
    rounded = Signal(fraction_bits + exponent_bits, name="rounded")
    m.d.comb += rounded.eq(normal.magnitude + Cat(C(0, fraction_bits), less_one) + normal.round_up)
    result = Bundle(
        sign=normal.sign,
        field=rounded[fraction_bits:],
        fraction=rounded[:fraction_bits],
        is_subnormal=normal.is_subnormal,
        too_large=choose(index, [normal.exponent >= fmt.max_finite_field + 1 for fmt in formats.accumulators]),
        is_largest=choose(index, [normal.exponent == fmt.max_finite_field for fmt in formats.accumulators]),
        inexact=(normal.round_bit ^ normal.negative) | normal.sticky,
        following=normal.following ^ (normal.negative & normal.below),
    )
    return result if formats.is_nearest_even else kept_finite(m, formats, index, normal, result)
