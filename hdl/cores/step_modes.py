"""A step's rounding in its modes, and the additional logic of modes other than ``nearest_even``.

Below the kept bits of the normalised word is the rest, in units of an ulp, with a sticky bit in its lowest places. A
negative word is inverted and one less::

    [ kept | round_bit | following | ... sticky ]
           [         rest         |  sticky  ]      of a stochastic rounding: as many bits as the random number
               [         rest         | sticky ]    one place lower

A random number is added to the rest before the word is normalised, once for each possible place of the rest. These
additions run in parallel with the shift.
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
        The result of `hdl.cores.modes.chosen_modes`.
    negative : Value
        The word is negative: its kept bits and round bit are inverted.
    round_bit, **below_kept : Value
        As in `hdl.cores.rounding.increment`.
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
    """Add the values for rounding in other modes to a normalised sum.

    Parameters
    ----------
    random : Value or None
        The random number, if ``stochastic`` is among the modes.
    total : Bundle
        The result of `hdl.cores.round_step.join_paths`. Its sign is the result's, unless the result is an exact zero.
    normal : Bundle
        The result of `hdl.cores.round_step.normalise_sum` in the mode ``nearest_even``.
    cancels : Value
        The sum is an exact zero of addends with different signs.

    Returns
    -------
    Bundle
        `normal` with ``round_up`` and ``sign`` of the mode; ``rises``: a result that is one place longer would round up
        from all ones; ``stays_finite``: a result beyond the largest finite value would become that value.
    """
    negative, sign = normal.negative, total.sign
    # Bits of the magnitude: below the kept bits, a negative word holds them inverted and one less.
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
        # If the missing one carries as far as the round bit, all bits below it are 0.
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
    """Return, for each possible shift of the word and one more, whether rest plus random number carries.

    For a negative word, the rest is the magnitude's: the inverted bits, with the missing one as carry-in. If it carries
    through the whole rest, it increments the kept bits.
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
    """Replace a rounded result beyond the largest finite value by that value, if the mode requires it.

    Parameters
    ----------
    normal : Bundle
        The result of `other_modes`.
    rounded : Bundle
        The result of `hdl.cores.round_step.round_sum` in the mode ``nearest_even``.
    """
    # A carry out of the largest exponent results in an odd field.
    is_beyond = rounded.too_large | (rounded.is_largest & rounded.field[0])
    to_largest = named(m, "to_largest", is_beyond & normal.stays_finite)
    largest = choose(index, [C(fmt.max_finite_field, len(rounded.field)) for fmt in formats.accumulators])
    return rounded.but(
        field=named(m, "kept_field", Mux(to_largest, largest, rounded.field)),
        fraction=named(m, "kept_fraction", rounded.fraction | to_largest.replicate(len(rounded.fraction))),
        too_large=rounded.too_large & ~normal.stays_finite,
        following=normal.rises,
        to_largest=to_largest,
    )
