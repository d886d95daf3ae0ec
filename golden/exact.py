"""Exact values, with which `golden.reference` computes, and the arguments that stand for one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any

__all__ = ["Class", "Value", "as_sequence", "exact_number", "number_value", "power_of_two"]


class Class(Enum):
    """The class of a datum. A finite value whose significand is 0 is a zero."""

    FINITE = "finite"
    INFINITE = "infinite"
    QUIET_NAN = "quiet NaN"
    SIGNALLING_NAN = "signalling NaN"


@dataclass(frozen=True)
class Value:
    """A datum: ``(-1)**sign * significand * 2**exponent`` when finite.

    The significand is an exact non-negative integer of any size, or a Fraction where a quotient is rounded.
    """

    kind: Class
    sign: int = 0
    significand: int | Fraction = 0
    exponent: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Class):
            raise TypeError(f"kind: got {self.kind!r}, must be a member of Class")
        if not isinstance(self.sign, int) or not isinstance(self.exponent, int):
            raise TypeError(f"sign, exponent: got {self.sign!r} and {self.exponent!r}, must be ints")
        if self.sign not in (0, 1):
            raise ValueError(f"sign: got {self.sign}, must be 0 or 1")
        if not isinstance(self.significand, int | Fraction):
            raise TypeError(f"significand: got {self.significand!r}, must be an int or a Fraction")
        if self.significand < 0:
            raise ValueError(f"significand: got {self.significand}, must be 0 or more; `sign` makes it negative")

    @property
    def is_nan(self) -> bool:
        """Whether it is a NaN, quiet or signalling."""
        return self.kind in (Class.QUIET_NAN, Class.SIGNALLING_NAN)

    @property
    def is_zero(self) -> bool:
        """Whether it is a zero of either sign."""
        return self.kind is Class.FINITE and self.significand == 0

    def as_fraction(self) -> Fraction:
        """Return the exact value of a finite datum.

        Raises
        ------
        ValueError
            If it is infinite or NaN.
        """
        if self.kind is not Class.FINITE:
            raise ValueError(f"value: got {self.kind.value}, only a finite value is a fraction")
        return (-1) ** self.sign * self.significand * power_of_two(self.exponent)


@lru_cache(maxsize=1024)
def power_of_two(exponent: int) -> Fraction:
    """Return 2 to any whole power."""
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def exact_number(number: int | float | Fraction) -> Fraction:
    """Return the exact value of a finite number; any other is an error that names it."""
    if not isinstance(number, int | float | Fraction) or isinstance(number, bool):
        raise TypeError(f"number: got {number!r}, must be an int, a Fraction or a finite float")
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(f"number: got {number}, must be finite; round_value takes infinities and NaN")
    return Fraction(number)


def number_value(number: int | Fraction, zero_sign: int = 0) -> Value:
    """Return the exact value of a number; a zero has the sign given."""
    magnitude = -number if number < 0 else number
    return Value(Class.FINITE, int(number < 0) if number else zero_sign, magnitude, 0)


def as_sequence(given: Sequence[Any], argument: str) -> Sequence[Any]:
    """Accept a list or tuple; anything else is an error that names the argument."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise TypeError(f"{argument}: got {given!r}, must be a list or tuple; tolist() makes one of an array")
    return given
