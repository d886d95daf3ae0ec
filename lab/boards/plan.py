"""The plan of a round of the self-test, from which both the hardware and the golden model's expectation are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from golden.formats import CBFLOAT16, FloatFormat
from golden.reduction import LEVELS

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """The products of a round, and how their results become one signature.

    A round is `windows` windows. A window is one reduction of `length` products in each of `lanes` pairs of registers,
    one product of each in turn. The next window starts only when all results of the last one have come, so results
    overtake each other only within a window.

    Product number n of the round takes its operands from a linear-feedback shift register of 32 bits: ``a`` is its low
    half, ``b`` the high one. It starts at `SEED`. From one product to the next it makes 32 Galois steps to the left by
    `POLYNOMIAL`, the primitive one of CRC-32. The two low bits of the window's number shape the exponent field E and
    the fraction F of each operand; the sign bit stays:

    == ==========================================================================================
    0  E = bias - 8 + (E mod 16): numbers around 1.0
    1  E = bias - 1 + (E mod 2), F keeps its two top bits: sums that cancel, also to zero
    2  E = E mod 4 in ``a``, bias - 8 + (E mod 8) in ``b``: subnormal operands, products and sums
    3  F keeps its two top bits: zeros, infinities, NaNs and overflows among everything else
    == ==========================================================================================

    Lane i of window w runs at precision level ``(i + w) mod 3``. It uses register 2 i, or 2 i + 1 if the level is 2 and
    bit 2 of w is set. So each lane has every combination of a level and a kind of operand.

    A result becomes 8 bytes: the bits (4, least significant first), the flags, a byte of register and error, and the
    number of the window (2, least significant first). The register has the low 6 bits of its byte. The signature is the
    sum of the CRC-32 of all results, modulo 2**32. It does not depend on the order; the number of the window ties
    each result to its window.

    Parameters
    ----------
    windows : int
        Windows in a round, 1 to 65536.
    length : int
        Products in a reduction, 1 to 1024.
    chunk : int
        Products in a chunk, 1 to 65535.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    windows: int = 1 << 14
    length: int = 12
    #: Two whole chunks and a part of one.
    chunk: int = 5

    POLYNOMIAL: ClassVar[int] = 0x04C11DB7
    SEED: ClassVar[int] = 0x2545F491
    OPERAND: ClassVar[FloatFormat] = CBFLOAT16
    LEVELS: ClassVar[tuple[int, ...]] = LEVELS
    REGISTERS: ClassVar[int] = 16
    WINDOW_BITS: ClassVar[int] = 16
    #: The most products in a reduction.
    LONGEST: ClassVar[int] = 1024

    def __post_init__(self) -> None:
        for name, most in (("windows", 1 << self.WINDOW_BITS), ("length", self.LONGEST), ("chunk", (1 << 16) - 1)):
            given = getattr(self, name)
            if not 1 <= given <= most:
                raise ValueError(f"{name}: got {given}, must be from 1 to {most}")

    @property
    def lanes(self) -> int:
        """Reductions that run at the same time, each in another pair of registers."""
        return self.REGISTERS // 2

    @property
    def results(self) -> int:
        """Reductions in a round."""
        return self.windows * self.lanes
