"""A step's rounding in its modes, and the additional logic of modes other than ``nearest_even``.

Below the kept bits of the normalised word is the rest, in units of an ulp, with a sticky bit in its lowest places. A
negative word is inverted and one less::

    [ kept | round_bit | following | ... sticky ]
           [            rest              | S ]    of a stochastic rounding: one bit more than the random number

The random number is added to the rest by the addition that rounds. The missing one of a negative word is its carry-in.
Between the rest and the kept bits is one place more, which passes the carry on in stochastic rounding. In the other
modes both its bits are the increment, so that they carry if it is 1.
"""

from __future__ import annotations

from typing import Any

from amaranth import C, Cat, Module, Mux, Signal, Value

from golden.rounding import Rounding
from hdl.cores.bundle import Bundle
from hdl.cores.modes import chosen_modes
from hdl.cores.operand import GROUP
from hdl.cores.rounding import Bit, increment, increment_of_negative, of_chosen, select, stays_finite
from hdl.cores.step_formats import StepFormats
from hdl.cores.words import choose, named

__all__ = ["add_random", "increments", "kept_finite", "other_modes", "round_up"]


def round_up(chosen: dict[Rounding, Bit], negative: Bit, *, round_bit: Bit, **below_kept: Bit) -> Bit:
    """Return the increment of the kept bits of a sum in every mode but ``stochastic``.

    Parameters
    ----------
    chosen : dict of Rounding to Value or int
        The result of `hdl.cores.modes.chosen_modes`.
    negative : Value
        The word is negative: its kept bits and round bit are inverted.
    round_bit, **below_kept : Value or int
        As in `hdl.cores.rounding.increment`.
    """
    decided = _decided(chosen)
    return select(
        negative,
        of_chosen(decided, lambda mode: increment_of_negative(mode, inverted_round_bit=round_bit, **below_kept)),
        of_chosen(decided, lambda mode: increment(mode, round_bit=round_bit, **below_kept)),
    )


def increments(formats: StepFormats, controls: Any, negative: Value, sign: Value) -> Value:
    """Return the increment for each value of lowest bit, sticky bit and round bit, the first one least significant.

    A unit with a choice of modes finds these eight bits a rank before it knows the three.
    """
    chosen = chosen_modes(formats.roundings, controls)
    bits = [
        round_up(chosen, negative, round_bit=at >> 2, sticky=at >> 1 & 1, lowest=at & 1, sign=sign) for at in range(8)
    ]
    return Cat(C(bit, 1) if isinstance(bit, int) else bit for bit in bits)


def _decided(chosen: dict[Rounding, Bit]) -> dict[Rounding, Bit]:
    """Return the modes that need no random number."""
    return {mode: is_chosen for mode, is_chosen in chosen.items() if mode != Rounding.STOCHASTIC}


def other_modes(
    m: Module, formats: StepFormats, index: Value, controls: Any, total: Bundle, normal: Bundle, moved: Value
) -> Bundle:
    """Add the values for rounding in other modes to a normalised sum.

    Parameters
    ----------
    controls : View
        With the fields of `formats.controls`, if there are any.
    total : Bundle
        The result of `hdl.cores.round_step.join_paths`. Its sign is the result's, unless the result is an exact zero.
    normal : Bundle
        The result of `hdl.cores.round_step.normalise_sum` in the mode ``nearest_even``, and ``cancels``: the sum is an
        exact zero of addends with different signs.
    moved : Value
        The word behind its last shift.

    Returns
    -------
    Bundle
        `normal` with the ``sign`` of the mode; ``stays_finite``: a result beyond the largest finite value would become
        that value. With stochastic rounding also ``rest`` and ``carry``, to be added to the random number, and
        ``passes_on``: the place between the rest and the kept bits passes a carry on.
    """
    chosen = chosen_modes(formats.roundings, controls)
    zero_sign = normal.cancels & chosen[Rounding.DOWN] if Rounding.DOWN in chosen else C(0, 1)

    normal = normal.without("cancels").but(
        stays_finite=named(m, "stays_finite", C(0, 1) | of_chosen(chosen, lambda mode: stays_finite(mode, total.sign))),
        sign=normal.sign | zero_sign,
    )
    if not formats.is_stochastic:
        return normal
    # The widest format has two places left below the rest, in which a shift may leave a one.
    ends = [len(moved) - fmt.precision for fmt in formats.accumulators]
    rest = choose(index, [moved[end - formats.random_bits - 1 : end] for end in ends])
    lost = choose(index, [_any_lost(total, end - formats.random_bits - 1) for end in ends])
    return normal.but(
        passes_on=named(m, "passes_on", normal.round_up | chosen[Rounding.STOCHASTIC]),
        rest=named(m, "rest", rest),
        carry=named(m, "carry_of_negative", total.negative & ~lost),
    )


def _any_of(total: Bundle, end: int) -> Value:
    """Return whether the sum has a one below a place."""
    first = end // GROUP
    return Cat(total.ones[:first], total.magnitude[GROUP * first : end]).any()


def _any_lost(total: Bundle, end: int) -> Value:
    """Return whether the sum, once shifted, has a one below a place."""
    # A shift by three or fewer places leaves those below `low` there.
    low = max(end - (GROUP - 1), 0)
    others = Cat(total.magnitude[place] & (total.shift < end - place) for place in range(low, end))
    return _any_of(total, low) | others.any()


def add_random(m: Module, formats: StepFormats, controls: Any, normal: Bundle, addend: Value) -> tuple[Value, Value]:
    """Add the random number below the kept bits, and another addend to them.

    Returns
    -------
    tuple of Value
        The kept bits of the sum; whether a result that is one place longer would be rounded up.
    """
    size, random = formats.random_bits, controls.random
    total = Signal(2 + size + len(normal.magnitude), name="rounded_and_rest")
    m.d.comb += total.eq(
        Cat(normal.rest, normal.passes_on, normal.magnitude)
        + Cat(C(0, 1), random, normal.round_up, addend)
        + normal.carry
    )
    longer = Signal(size + 1, name="longer_rest")
    m.d.comb += longer.eq(normal.rest[:size] + random + normal.carry)
    return total[2 + size :], longer[-1]


def kept_finite(
    m: Module, formats: StepFormats, index: Value, controls: Any, normal: Bundle, rounded: Bundle
) -> Bundle:
    """Replace a rounded result beyond the largest finite value by that value, if the mode requires it.

    Parameters
    ----------
    controls : View
        With the fields of `formats.controls`, if there are any.
    normal : Bundle
        The result of `other_modes`.
    rounded : Bundle
        The result of `hdl.cores.round_step.round_sum` in the mode ``nearest_even``; with stochastic rounding also
        ``longer_carries``, from `add_random`.
    """
    # The exponent before rounding decides, because a mode that stays finite never rounds the largest one up. The carry
    # of a negative difference does not reach it: that difference is smaller than the accumulator.
    to_largest = named(m, "to_largest", rounded.too_large & normal.stays_finite)
    largest = choose(index, [C(fmt.max_finite_field, len(rounded.field)) for fmt in formats.accumulators])
    kept = rounded.but(
        field=named(m, "kept_field", Mux(to_largest, largest, rounded.field)),
        fraction=named(m, "kept_fraction", rounded.fraction | to_largest.replicate(len(rounded.fraction))),
        too_large=rounded.too_large & ~normal.stays_finite,
        to_largest=to_largest,
    )
    # Flushing rounds with an unbounded exponent, and so tells whether a result is tiny by itself.
    return (
        kept if formats.flushes else kept.but(following=named(m, "rises", _rises(formats, controls, normal, rounded)))
    )


def _rises(formats: StepFormats, controls: Any, normal: Bundle, rounded: Bundle) -> Bit:
    """Return whether a result that is one place longer would round up from all ones."""
    chosen = chosen_modes(formats.roundings, controls)
    # Bits of the magnitude: below the kept bits, a negative word holds them inverted and one less.
    is_carried = normal.negative & ~normal.sticky
    rises = (normal.round_bit ^ is_carried) & of_chosen(
        _decided(chosen),
        lambda mode: increment(mode, round_bit=rounded.following, sticky=normal.below, lowest=1, sign=normal.sign),
    )
    if not formats.is_stochastic:
        return rises
    # If the missing one carries as far as the round bit, all bits below it are 0.
    return rises | (chosen[Rounding.STOCHASTIC] & normal.round_bit & ~is_carried & rounded.longer_carries)
