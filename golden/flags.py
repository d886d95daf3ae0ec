"""Exception flags, in the bit order of RISC-V ``fflags`` (NUMERICS section 2)."""

from __future__ import annotations

from enum import IntFlag

__all__ = ["EVENTS", "Flag"]


class Flag(IntFlag):
    """The exceptions that an operation raised.

    Bit 3, divide by zero, is unused. Tininess is detected after rounding; underflow is raised only when the result
    is tiny and inexact.
    """

    INEXACT = 1
    UNDERFLOW = 2
    OVERFLOW = 4
    INVALID = 16


#: Events that are counted in reductions, in the order of every table (NUMERICS section 11): each flag, and addends
#: that were lost.
EVENTS = (*(str(flag.name).lower() for flag in Flag), "swamped")
