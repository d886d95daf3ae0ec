"""A step's rounding in the modes that it is built for, and what other modes than the nearest even number need beside.

Below the kept bits of the normalised word, of which a negative one is inverted and one less, stand the rest, in units
of an ulp, and in its lowest places a sticky bit::

    [ kept | round_bit | following | ... sticky ]
           [         rest         |  sticky  ]      of a stochastic rounding: as many bits as the random number
               [         rest         | sticky ]    one place lower

A random number is added to the rest before the word is normalised, once for each place where the rest may be: the
additions take place while the word is shifted.
"""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Value

from golden.rounding import Rounding
from hdl.cores.bundle import Bundle
from hdl.cores.rounding import Bit, increment, increment_of_negative, of_chosen, stays_finite
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, named

__all__ = ["kept_finite", "other_modes", "round_up"]


def round_up(chosen: dict[Rounding, Bit], negative: Value, *, round_bit: Value, **below_kept: Value) -> Bit:
    """Return the increment of the kept bits of a sum in every mode but ``stochastic``.

    Parameters
    ----------
    chosen : dict of Rounding to Value or int
        What `hdl.cores.modes.chosen_modes` returns.
    negative : Value
        The kept bits, and the round bit, are the inverted ones of a negative word.
    round_bit, **below_kept : Value
        As of `hdl.cores.rounding.increment`.
    """
    decided = _decided(chosen)
    return Mux(
        negative,
        of_chosen(decided, lambda mode: increment_of_negative(mode, inverted_round_bit=round_bit, **below_kept)),
        of_chosen(decided, lambda mode: increment(mode, round_bit=round_bit, **below_kept)),
    )


def _decided(chosen: dict[Rounding, Bit]) -> dict[Rounding, Bit]:
    """Return the modes that need no random number."""
    return {mode: is_chosen for mode, is_chosen in chosen.items() if mode != Rounding.STOCHASTIC}


def other_modes(
    m: Module,
    formats: StepFormats,
    index: Value,
    chosen: dict[Rounding, Bit],
    random: Any,
    total: Bundle,
    normal: Bundle,
    cancels: Value,
) -> Bundle:
    """Add to a normalised sum what rounding in other modes takes.

    Parameters
    ----------
    random : Value or None
        The random number, if ``stochastic`` is among the modes.
    total : Bundle
        What `hdl.cores.round_step.join_paths` returns. Its sign is that of a result that is not an exact zero.
    normal : Bundle
        What `hdl.cores.round_step.normalise_sum` returns in the mode ``nearest_even``.
    cancels : Value
        It is an exact zero, and its addends have different signs.

    Returns
    -------
    Bundle
        The same with ``round_up`` and ``sign`` of the mode, and ``rises``: one place longer, the result would be
        rounded up from all ones; ``stays_finite``: beyond the largest finite value it would become that.
    """
    negative, sign = normal.negative, total.sign
    # Of the magnitude, of which a negative word has the bits below the kept ones inverted and one less.
    is_carried = negative & ~normal.sticky
    round_bit = normal.round_bit ^ is_carried
    following = normal.following ^ (negative & normal.below)
    ups, rises = (
        normal.round_up,
        round_bit
        & of_chosen(
            _decided(chosen),
            lambda mode: increment(mode, round_bit=following, sticky=normal.below, lowest=1, sign=sign),
        ),
    )
    if formats.is_stochastic:
        is_chosen, carries = chosen[Rounding.STOCHASTIC], _random_carries(m, formats, index, random, total)
        ups = ups | (is_chosen & choose(total.shift, carries[:-1]))
        # A one that is missing, carried as far as the round bit, leaves nothing below it.
        rises = rises | (is_chosen & normal.round_bit & ~is_carried & choose(total.shift, carries[1:]))
    if Rounding.DOWN in chosen:
        zero_sign = cancels & chosen[Rounding.DOWN]
        signs = normal.sign | zero_sign
    else:
        signs = normal.sign
    return normal.but(
        round_up=named(m, "round_up", ups),
        rises=named(m, "rises", rises),
        stays_finite=named(m, "stays_finite", C(0, 1) | of_chosen(chosen, lambda mode: stays_finite(mode, sign))),
        sign=signs,
    )


def _random_carries(m: Module, formats: StepFormats, index: Value, random: Value, total: Bundle) -> list[Value]:
    """Tell for each distance by which the word may be moved, and one more, whether rest plus random number carries.

    Of a negative word, the rest is that of the magnitude: the inverted bits, and the missing one, which is carried in
    below all of them. If that carries through the whole rest, it is the increment of the kept bits.
    """
    word, size, carries = total.magnitude, formats.random_bits, []
    for moves in range((1 << len(total.shift)) + 1):
        ends = [len(word) - fmt.precision - moves for fmt in formats.accumulators]
        length = max(size, *ends)
        below_kept = choose(index, [Cat(C(0, length - end), word[:end]) for end in ends])
        inverted = below_kept ^ total.negative.replicate(length)
        added = Cat(total.negative, inverted) + Cat(total.negative, C(0, length - size), random)
        carries.append(named(m, f"carries_{moves}", added[-1]))
    return carries


def kept_finite(m: Module, formats: StepFormats, index: Value, normal: Bundle, rounded: Bundle) -> Bundle:
    """Replace a rounded result beyond the largest finite value by that value, where the mode wants it.

    Parameters
    ----------
    normal : Bundle
        What `other_modes` returns.
    rounded : Bundle
        What `hdl.cores.round_step.round_sum` returns in the mode ``nearest_even``.
    """
    # A carry out of the largest exponent makes an odd field.
    is_beyond = rounded.too_large | (rounded.is_largest & rounded.field[0])
    to_largest = named(m, "to_largest", is_beyond & normal.stays_finite)
    largest = choose(index, [C(fmt.max_finite_field, len(rounded.field)) for fmt in formats.accumulators])
    ones = C((1 << len(rounded.fraction)) - 1, len(rounded.fraction))
    low, high = ones[: formats.low_fraction_bits], Cat(ones[formats.low_fraction_bits :], largest)
    word = Mux(normal.is_low, Cat(low, C(0, len(high)))[: len(rounded.word)], high[: len(rounded.word)])
    return rounded.but(
        field=named(m, "kept_field", Mux(to_largest, largest, rounded.field)),
        fraction=named(m, "kept_fraction", rounded.fraction | to_largest.replicate(len(rounded.fraction))),
        word=named(m, "kept_word", Mux(to_largest, word, rounded.word)),
        too_large=rounded.too_large & ~normal.stays_finite,
        following=normal.rises,
        to_largest=to_largest,
    )
