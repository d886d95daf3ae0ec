"""Tables of conversions: what every code of a source of at most 16 bits becomes, looked up instead of computed.

Narrow destinations have a table for float32, too. Its index is the upper 16 bits, the last of them set if any lower bit
is: the number rounded to odd at 8 bits of precision. Rounding that to fewer than 7 bits gives the same result as
rounding the number itself.
The tables are made by the rounding that they stand for. A stochastic rounding has none: it needs every digit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
from golden.arrays.pieces import pieces
from golden.arrays.rounding import (
    Flags,
    RoundingChoice,
    codes_to_float64,
    float64_to_codes,
    round_float64,
    rounding_flags,
)
from golden.flags import Flag
from golden.formats import BF16, FP32, FloatFormat
from golden.rounding import Rounding

__all__ = ["Table", "converted", "look_up", "table_of"]


class Table(NamedTuple):
    """The results for each index: code, its value as float32, and flags."""

    codes: NDArray[Any]
    values: NDArray[np.float32]
    flags: Flags


def converted(
    codes: NDArray[Any], source: FloatFormat, destination: FloatFormat, choice: RoundingChoice
) -> tuple[NDArray[Any], Flags]:
    """Convert by computing: codes and flags."""
    with np.errstate(all="ignore"):
        values = codes_to_float64(codes, source, flushes=choice.flushes)
        rounded = round_float64(values, destination, choice)
        flags = rounding_flags(values, rounded, destination, choice)
    signalling = source.is_signalling(codes).astype(np.uint8) * np.uint8(Flag.INVALID)
    return float64_to_codes(rounded, destination), flags | signalling


@lru_cache(maxsize=128)
def _table(source: FloatFormat, destination: FloatFormat, rounding: Rounding, saturates: bool, flushes: bool) -> Table:
    if source == FP32:
        given = np.arange(1 << 16, dtype=np.uint32) << 16
    else:
        given = np.arange(1 << source.width, dtype=np.uint32).astype(code_dtype(source))
    codes, flags = converted(given, source, destination, RoundingChoice(rounding, saturates, flushes=flushes))
    with np.errstate(all="ignore"):
        values = codes_to_float64(codes, destination).astype(np.float32)
    table = Table(codes, np.where(np.isnan(values), np.float32(np.nan), values), flags)
    for array in table:
        array.flags.writeable = False
    return table


def table_of(source: FloatFormat, destination: FloatFormat, choice: RoundingChoice, count: int) -> Table | None:
    """Return the table of a conversion, or None if there is none or `count` numbers are too few to make it for.

    Parameters
    ----------
    source : FloatFormat
        Of at most 16 bits, or float32.
    destination : FloatFormat
    choice : RoundingChoice
    count : int
        How many numbers are converted.
    """
    if choice.rounding is Rounding.STOCHASTIC:
        return None
    if source == FP32:
        # Of 8 bits of precision, the last of which gathers those below, a rounding needs its own and one more.
        lowest = destination.emin - destination.fraction_bits
        serves = destination.fraction_bits + 2 <= BF16.fraction_bits and lowest - 2 >= BF16.emin - BF16.fraction_bits
        # A float32 code that is subnormal counts as 0, a value does not: alike where either is too small.
        serves = serves and not (choice.flushes and destination.emin <= FP32.emin)
    else:
        serves = source.width <= 16
    if not serves or (source.width > 8 and count < 1 << 12):
        return None
    return _table(source, destination, choice.rounding, choice.saturates, choice.flushes)


def _index(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the upper 16 bits, and in their last one whether any of the lower ones is set, too."""
    index = bits & np.uint32(0xFFFF)
    index += np.uint32(0xFFFF)
    index |= bits
    index >>= np.uint32(16)
    return index


def look_up(entries: NDArray[Any], given: NDArray[Any], result: NDArray[Any]) -> None:
    """Fill `result`, contiguous, with the entries of a table for codes, or for float32 numbers or their codes."""
    flat, into = given.reshape(-1), result.reshape(-1)
    wide = flat.itemsize == 4
    for piece in pieces(flat.size):
        index = _index(flat[piece].view(np.uint32)) if wide else flat[piece]
        # No index is beyond the table; "clip" spares the copy that the search for one would need.
        np.take(entries, index, out=into[piece], mode="clip")
