"""The names of the rounding modes (NUMERICS section 9)."""

from __future__ import annotations

from enum import Enum

__all__ = ["DEFAULT_RANDOM_BITS", "OVERFLOWS", "Rounding", "as_overflow", "as_rounding", "check_random_bits"]

#: Bits of the random number of a stochastic rounding unless told otherwise (NUMERICS section 10).
DEFAULT_RANDOM_BITS = 16

#: What a result beyond the largest finite value becomes (NUMERICS section 8): infinity, or what the format has in its
#: place; the largest finite value.
OVERFLOWS = ("special", "saturate")


class Rounding(Enum):
    """A rounding mode: how to choose between two neighbours. Values are codes; 0 to 4 are those of RISC-V's ``frm``.

    Every function that takes a mode also takes its name in lower case, such as ``"nearest_even"``.
    """

    #: To the nearest neighbour; a tie goes to the even code.
    NEAREST_EVEN = 0
    #: To the neighbour of smaller magnitude.
    TOWARD_ZERO = 1
    #: Toward -infinity.
    DOWN = 2
    #: Toward +infinity.
    UP = 3
    #: To the nearest neighbour; a tie goes to the larger magnitude.
    NEAREST_AWAY = 4
    #: To the neighbour whose last bit is 1, unless the result is exact.
    TO_ODD = 5
    #: Up in magnitude with the probability of the distance from below, by random bits (NUMERICS section 10).
    STOCHASTIC = 6

    def __str__(self) -> str:
        return self.name.lower()


_BY_NAME = {str(mode): mode for mode in Rounding}


def as_rounding(given: Rounding | str, argument: str) -> Rounding:
    """Accept a mode or the name of one; name the argument and what is allowed otherwise."""
    if isinstance(given, Rounding):
        return given
    if not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be a Rounding or the name of one")
    if given not in _BY_NAME:
        raise ValueError(f"{argument}: got {given!r}, must be a Rounding or one of {', '.join(_BY_NAME)}")
    return _BY_NAME[given]


def as_overflow(given: str, argument: str) -> str:
    """Accept one of `OVERFLOWS`; name the argument and what is allowed otherwise."""
    if not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be {' or '.join(map(repr, OVERFLOWS))}")
    if given not in OVERFLOWS:
        raise ValueError(f"{argument}: got {given!r}, must be {' or '.join(map(repr, OVERFLOWS))}")
    return given


def check_random_bits(rounding: Rounding, random: int | None, random_bits: int) -> None:
    """Name what is wrong with the random number of a rounding."""
    if rounding is not Rounding.STOCHASTIC:
        if random is not None:
            raise ValueError(f"random: got {random!r}, must be None: only rounding='stochastic' takes random bits")
        return
    for argument, given in (("random", random), ("random_bits", random_bits)):
        if not isinstance(given, int) or isinstance(given, bool):
            raise TypeError(f"{argument}: got {given!r}, must be an int for rounding='stochastic'")
    if random_bits < 1:
        raise ValueError(f"random_bits: got {random_bits}, must be at least 1")
    if random is not None and not 0 <= random < 1 << random_bits:
        raise ValueError(f"random: got {random}, must be 0 to {(1 << random_bits) - 1}, which fits {random_bits} bits")
