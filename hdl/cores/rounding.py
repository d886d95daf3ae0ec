"""Rounding: one decision table, and one rule for results that are too large, for every datapath.

The kept bits are the part of a significand that a datapath keeps. Two bits describe the rest below them::

    [ h . f f f f f f f f | round_bit | sticky ... ]
                        `-- lowest (kept bit)

Every rounding adds an increment of 0 or 1 to the kept bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amaranth import Mux

from golden.formats import FloatFormat
from golden.nearest import complete
from golden.rounding import Rounding

__all__ = [
    "DECISIONS",
    "STAYS_FINITE",
    "increment",
    "increment_of_negative",
    "of_chosen",
    "select",
    "stays_finite",
    "too_large",
]

#: The increment, by mode and by the bits below the kept bits. ``odd``: the lowest kept bit is 1; ``even``: it is 0;
#: ``minus``: the result is negative; ``plus``: it is positive.
DECISIONS: dict[Rounding, tuple[str, str, str, str]] = {
    #                        exact  below half  half    above half   an ulp
    # round_bit              0      0           1       1
    # sticky                 0      1           0       1
    Rounding.NEAREST_EVEN: ("0", "0", "odd", "1"),
    Rounding.TOWARD_ZERO: ("0", "0", "0", "0"),
    Rounding.DOWN: ("0", "minus", "minus", "minus"),
    Rounding.UP: ("0", "plus", "plus", "plus"),
    Rounding.NEAREST_AWAY: ("0", "0", "1", "1"),
    Rounding.TO_ODD: ("0", "even", "even", "even"),
}  # fmt: skip

#: Whether a result beyond the largest finite value becomes that value, if positive and if negative. Otherwise it
#: becomes the overflow code of the format, usually infinity.
STAYS_FINITE: dict[Rounding, tuple[bool, bool]] = {
    Rounding.NEAREST_EVEN: (False, False),
    Rounding.TOWARD_ZERO: (True, True),
    Rounding.DOWN: (True, False),
    Rounding.UP: (False, True),
    Rounding.NEAREST_AWAY: (False, False),
    Rounding.TO_ODD: (True, True),
    Rounding.STOCHASTIC: (False, False),
}

complete("hdl.cores.rounding.DECISIONS", [*DECISIONS, Rounding.STOCHASTIC], Rounding)
complete("hdl.cores.rounding.STAYS_FINITE", STAYS_FINITE, Rounding)

#: One bit: of hardware, or a Python int where a constant is rounded.
Bit = Any


def increment(mode: Rounding, *, round_bit: Bit, sticky: Bit, lowest: Bit, sign: Bit) -> Bit:
    """Return the increment of the kept bits of a magnitude.

    Parameters
    ----------
    mode : Rounding
        Any but ``stochastic``, which needs more than these bits.
    round_bit, sticky, lowest, sign : Value or int
        Each one bit. A bit that is a constant shortens the gates.
    """
    exact, below, half, above = _terms(mode, lowest, sign)
    return select(round_bit, select(sticky, above, half), select(sticky, below, exact))


def increment_of_negative(mode: Rounding, *, inverted_round_bit: Bit, sticky: Bit, lowest: Bit, sign: Bit) -> Bit:
    """Return the increment of the inverted kept bits of a negative word, which form its magnitude.

    ::

        word             [ K | round_bit | sticky ]     K + rest, where K is negative and rest is 0 to 1
        its magnitude    ~K + 1 - rest                  an exact one takes an increment; below and above half an ulp
                                                        change places

    Parameters
    ----------
    mode : Rounding
    inverted_round_bit, sticky : Value or int
        The bits below the kept bits of the word. The round bit is inverted, like the kept bits.
    lowest, sign : Value or int
        The lowest bit of the magnitude, which is the lowest inverted kept bit, and the sign of the result.
    """
    _, below, half, above = _terms(mode, lowest, sign)
    return select(inverted_round_bit, select(sticky, above, 1), select(sticky, below, half))


def _terms(mode: Rounding, lowest: Bit, sign: Bit) -> list[Bit]:
    terms = {"0": 0, "1": 1, "odd": lowest, "even": _inverse(lowest), "minus": sign, "plus": _inverse(sign)}
    return [terms[entry] for entry in DECISIONS[mode]]


def _inverse(bit: Bit) -> Bit:
    return 1 - bit if isinstance(bit, int) else ~bit


def select(condition: Bit, if_one: Bit, if_zero: Bit) -> Bit:
    """Select one of two bits by a third; constants among the bits save gates."""
    if isinstance(condition, int):
        return if_one if condition else if_zero
    if if_one is if_zero:
        return if_one
    if isinstance(if_zero, int):
        if isinstance(if_one, int):
            return condition if if_one else ~condition
        return ~condition | if_one if if_zero else condition & if_one
    if isinstance(if_one, int):
        return condition | if_zero if if_one else ~condition & if_zero
    return Mux(condition, if_one, if_zero)


def of_chosen(chosen: Mapping[Rounding, Bit], bit_of: Callable[[Rounding], Bit]) -> Bit:
    """Return the bit of the chosen mode: 0 if none is chosen.

    Parameters
    ----------
    chosen : mapping of Rounding to Value or int
        At most one of them is 1.
    bit_of : function
        Returns the bit of a mode.
    """
    found: Bit = 0
    for mode, is_chosen in chosen.items():
        found = select(select(is_chosen, bit_of(mode), 0), 1, found)
    return found


def stays_finite(mode: Rounding, sign: Bit) -> Bit:
    """Return whether a result beyond the largest finite value becomes that value."""
    positive, negative = STAYS_FINITE[mode]
    return select(sign, int(negative), int(positive))


def too_large(fmt: FloatFormat, mode: Rounding, sign: Bit) -> Any:
    """Return the code, without sign, of a result beyond the largest finite value: an int unless it depends on the sign.

    Only for formats with infinities.
    """
    codes = [fmt.max_finite if stays else fmt.overflow(0) for stays in STAYS_FINITE[mode]]
    if codes[0] == codes[1]:
        return codes[0]
    return select(sign, codes[1], codes[0]) if isinstance(sign, int) else Mux(sign, codes[1], codes[0])
