"""The end of a step: both paths join, and the sum is normalised and rounded into the accumulator's format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from hdl.cores.bundle import Bundle
from hdl.cores.modes import chosen_modes
from hdl.cores.step_formats import StepFormats
from hdl.cores.step_modes import kept_finite, other_modes, round_up
from hdl.cores.words import choose, named

__all__ = ["join_paths", "normalise_sum", "round_sum"]


def join_paths(m: Module, formats: StepFormats, near: Bundle, near_word: Value, far: Bundle) -> Bundle:
    """Merge the results of both paths into one word; the unused path is zero.

    ::

        [ c h x x x x x ... ]    far: carry, leading bit of the larger addend; a difference may begin one below it
        [ 0 0 0 1 x x x ... ]    near: the first digit is one of the top four

    Parameters
    ----------
    near : Bundle
        ``within``, ``is_zero``, ``skipped``; ``negative``, 0 if this path is unused.
    far : Bundle
        ``sum``, ``exponent``, ``is_near``, ``sign``; ``subtract``, 0 if this path is unused.

    Returns
    -------
    Bundle
        ``magnitude``, inverted and one less if ``negative``; ``shift``, the remaining shift to the left in places;
        ``exponent`` of the place below the top; ``sign``; ``subtract``.
    """
    width = formats.sum_width
    far_word = Cat(C(0, width - len(far.sum)), far.sum)
    near_placed = Cat(C(0, width - len(near_word)), near_word)
    top, leading = far.sum[-1], far.sum[-2]
    # A carry stays in place, a leading one moves by one place, and a one below it by two unless the exponent is the
    # smallest. A negative difference is of the last kind. The far path's sum is zero if that path is unused.
    at_smallest = far.exponent == 1
    otherwise = named(m, "shift_otherwise", Mux(far.is_near, near.within, Cat(at_smallest, ~at_smallest)))
    shift = Cat(Mux(top, far.subtract, leading | otherwise[0]), ~top & ~leading & otherwise[1])
    negative = near.negative | (top & far.subtract)
    exponent = Signal(len(far.exponent), name="sum_exponent")
    skipped = Mux(far.is_near, Cat(C(0, 2), near.skipped), 0)
    m.d.comb += exponent.eq(Mux(far.is_near & near.is_zero, 1, far.exponent - skipped))
    return Bundle(
        magnitude=named(m, "sum_word", far_word | near_placed),
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

    places = [width - fmt.precision - 2 for fmt in formats.accumulators]
    following = [moved[place] ^ total.negative for place in places]
    below = _any_below(index, total, places)
    sticky = named(m, "sticky", _any_below(index, total, [place + 1 for place in places]))
    exponent = Signal(formats.exponent_width, name="rounded_exponent")
    # 1 - shift as two's complement, without an adder
    change = Cat(~total.shift[0], total.shift[1].replicate(len(exponent) - 1))
    m.d.comb += exponent.eq(total.exponent + change)
    magnitude = _magnitude(formats, index, moved, exponent)
    is_subnormal = ~moved[-1]
    round_bit = named(m, "round_bit", choose(index, [moved[width - 1 - fmt.precision] for fmt in formats.accumulators]))
    lowest = named(m, "lowest", choose(index, [moved[width - fmt.precision] for fmt in formats.accumulators]))
    chosen, below_kept = chosen_modes(formats.roundings, controls), {"sticky": sticky, "lowest": lowest}
    cancels = total.subtract & ~total.negative & ~total.magnitude.any()
    normal = Bundle(
        round_up=round_up(chosen, total.negative, round_bit=round_bit, sign=total.sign, **below_kept),
        magnitude=magnitude,
        is_subnormal=is_subnormal,
        round_bit=round_bit,
        following=choose(index, following),
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


def _any_below(index: Value, total: Bundle, places: Sequence[int]) -> Value:
    """Return, for each format, whether the shifted word will have a one below the format's last place.

    ::

        [ x x x x x x x p 2 1 0 a a a a ]    below p: `a` always, 2 unless the word moves by 3, 0 only if it stays

    Bits below the lowest of the places are below all of them, so each format adds only the bits between.
    """
    found, done = [], 0
    for place in sorted(set(places)):
        applies = choose(index, [C(place <= own, 1) for own in places])
        always = total.magnitude[done : max(place - 3, 0)].any()
        sometimes = [
            total.magnitude[place - 1 - moves] & (total.shift <= moves) for moves in range(3) if place - 1 - moves >= 0
        ]
        found.append(applies & (always | Cat(sometimes).any()))
        done = max(place - 3, 0)
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
