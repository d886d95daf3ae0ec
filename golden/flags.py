"""Exception flags, in the bit order of RISC-V ``fflags`` (NUMERICS section 2)."""

from __future__ import annotations

from enum import IntFlag

__all__ = ["Flag"]


class Flag(IntFlag):
    """The exceptions that an operation raised.

    Bit 3, divide by zero, is unused. Tininess is detected after rounding; underflow is raised only when the result
    is tiny and inexact.
    """

    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    INVALID = 16
