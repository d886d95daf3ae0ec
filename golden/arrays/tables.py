"""Tables of conversions: what every code of a source of at most 16 bits becomes, looked up instead of computed.

A float32 has a table, too, where the destination is narrow: its upper 16 bits, the last of which is set if any bit
below is, are the number rounded to odd at 8 bits of precision, and a rounding to fewer than 7 bits does not tell that
from the number itself.
The tables are made by the rounding that they stand for. A stochastic rounding has none: it needs every digit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.arrays.checks import code_dtype
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

__all__ = ["Table", "converted", "float32_index", "table_of"]


class Table(NamedTuple):
    """What each index becomes: code, its value as float32, and flags."""

    codes: NDArray[Any]
    values: NDArray[np.float32]
    flags: Flags


def converted(
    codes: NDArray[Any], source: FloatFormat, destination: FloatFormat, choice: RoundingChoice, with_flags: bool
) -> tuple[NDArray[Any], Flags]:
    """Convert by computing: codes and, on request, flags."""
    with np.errstate(all="ignore"):
        values = codes_to_float64(codes, source)
        rounded = round_float64(values, destination, choice)
        result = float64_to_codes(rounded, destination)
        if not with_flags:
            return result, np.zeros((), np.uint8)
        flags = rounding_flags(values, rounded, destination, choice)
    return result, flags | source.is_signalling(codes).astype(np.uint8) * np.uint8(Flag.INVALID)


@lru_cache(maxsize=128)
def _table(source: FloatFormat, destination: FloatFormat, rounding: Rounding, saturates: bool) -> Table:
    if source == FP32:
        given = np.arange(1 << 16, dtype=np.uint32) << 16
    else:
        given = np.arange(1 << source.width, dtype=np.uint32).astype(code_dtype(source))
    codes, flags = converted(given, source, destination, RoundingChoice(rounding, saturates), True)
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
        Of at most 16 bits: the codes are the index. float32: `float32_index` is.
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
    else:
        serves = source.width <= 16
    if not serves or (source.width > 8 and count < 1 << 12):
        return None
    return _table(source, destination, choice.rounding, choice.saturates)


def float32_index(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the index of float32 numbers in the tables of float32."""
    bits = np.asarray(values).view(np.uint32)
    return (bits >> np.uint32(16)) | (bits & np.uint32(0xFFFF) != 0)
