"""The names of the rounding modes (NUMERICS section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from golden.nearest import complete, did_you_mean

__all__ = [
    "DEFAULT_RANDOM_BITS",
    "MODE_BITS",
    "MOST_RANDOM_BITS",
    "NO_MODES",
    "OVERFLOWS",
    "STAYS_FINITE",
    "SUBNORMALS",
    "Randomness",
    "ReductionRounding",
    "Rounding",
    "as_overflow",
    "as_rounding",
    "as_subnormals",
    "check_call",
    "check_random_bits",
    "check_random_width",
    "check_seed",
]

#: Default width of the random number of a stochastic rounding (NUMERICS section 10).
DEFAULT_RANDOM_BITS = 16

#: How to treat a result beyond the largest finite value (NUMERICS section 8). ``special`` gives infinity, or the code
#: that the format has in its place; ``saturate`` gives the largest finite value.
OVERFLOWS = ("special", "saturate")

#: What becomes of subnormal operands and results (NUMERICS section 12): they stay, or become the zeros of their sign.
SUBNORMALS = ("keep", "flush")

#: The most random bits that the generator of NUMERICS section 10 gives for a rounding.
MOST_RANDOM_BITS = 32


class Rounding(Enum):
    """A rounding mode: how to choose between two neighbours. Values are codes; 0 to 4 are as in RISC-V's ``frm``.

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


#: Bits of a field that holds any mode, and its codes that are of none.
MODE_BITS = (len(Rounding) - 1).bit_length()
NO_MODES = tuple(sorted({*range(1 << MODE_BITS)} - {mode.value for mode in Rounding}))

#: Whether a mode keeps a result beyond the largest finite value at that value: if positive, if negative.
STAYS_FINITE = complete(
    "golden.rounding.STAYS_FINITE",
    {
        Rounding.NEAREST_EVEN: (False, False),
        Rounding.TOWARD_ZERO: (True, True),
        Rounding.DOWN: (True, False),
        Rounding.UP: (False, True),
        Rounding.NEAREST_AWAY: (False, False),
        Rounding.TO_ODD: (True, True),
        Rounding.STOCHASTIC: (False, False),
    },
    Rounding,
)

_BY_NAME = {str(mode): mode for mode in Rounding}


def as_rounding(given: Rounding | str, argument: str) -> Rounding:
    """Accept a mode or its name; the error names the argument and the allowed values."""
    if isinstance(given, Rounding):
        return given
    if not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be a Rounding or the name of one")
    if given not in _BY_NAME:
        meant = did_you_mean(given, _BY_NAME)
        raise ValueError(f"{argument}: got {given!r}, must be a Rounding or one of {', '.join(_BY_NAME)}{meant}")
    return _BY_NAME[given]


def as_overflow(given: str, argument: str) -> str:
    """Accept one of `OVERFLOWS`; the error names the argument and the allowed values."""
    return _as_one_of(OVERFLOWS, given, argument)


def as_subnormals(given: str, argument: str) -> str:
    """Accept one of `SUBNORMALS`; the error names the argument and the allowed values."""
    return _as_one_of(SUBNORMALS, given, argument)


def _as_one_of(allowed: tuple[str, ...], given: str, argument: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be {' or '.join(map(repr, allowed))}")
    if given not in allowed:
        raise ValueError(f"{argument}: got {given!r}, must be {' or '.join(map(repr, allowed))}")
    return given


def check_random_bits(rounding: Rounding, random: int | None, random_bits: int) -> None:
    """Check the random number of a rounding."""
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


def _check_int(given: object, argument: str, most: int, meaning: str, *, lowest: int = 0) -> None:
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{argument}: got {given!r}, must be an int from {lowest} to {most}, {meaning}")
    if not lowest <= given <= most:
        raise ValueError(f"{argument}: got {given}, must be {lowest} to {most}, {meaning}")


def check_seed(seed: object) -> None:
    """Check the seed of stochastic roundings."""
    _check_int(seed, "seed", 2**64 - 1, "the key of the random bits")


def check_call(call: object) -> None:
    """Check the number of a call that rounds stochastically."""
    _check_int(call, "call", 2**32 - 1, "a number that tells calls of one seed apart")


def check_random_width(random_bits: object) -> None:
    """Check the number of bits of a random word."""
    _check_int(random_bits, "random_bits", MOST_RANDOM_BITS, "how many bits of a random word are taken", lowest=1)


@dataclass(frozen=True)
class Randomness:
    """The random bits of stochastic roundings; every rounding takes the bits of its place (NUMERICS section 10).

    Parameters
    ----------
    random_bits : int
        How many bits a stochastic rounding has, 1 to 32.
    seed : int
        Key of the random bits, 0 to 2**64 - 1.
    call : int
        A number that tells calls of one seed apart, 0 to 2**32 - 1.

    Raises
    ------
    TypeError, ValueError
        If one is of another type or out of range, naming it.
    """

    random_bits: int = DEFAULT_RANDOM_BITS
    seed: int = 0
    call: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_call(self.call)
        check_random_width(self.random_bits)


class ReductionRounding:
    """The modes and random bits of a half type in pickles that were made before `Randomness`."""
