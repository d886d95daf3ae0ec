"""Coverage: operand class x result class x rounding case, counted on the cases that were simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import FloatFormat, decode
from sim.stimulus.operands import Codes

__all__ = ["ROUNDING_CASES", "classes", "count_bins", "rounding_cases"]

#: Position of the exact value between two neighbours of the destination, or the reason why it has none.
ROUNDING_CASES = ("exact", "below_half", "tie", "above_half", "overflow", "not_finite")


def classes(codes: Codes, fmt: FloatFormat) -> NDArray[np.str_]:
    """Return the class of every code: zero, subnormal, normal, infinity, nan or signalling."""
    given = np.asarray(codes, np.uint64)
    magnitude = given & np.uint64(fmt.sign_mask - 1)
    return np.select(
        [fmt.is_signalling(given), fmt.is_nan(given), fmt.is_inf(given), magnitude == 0, magnitude < fmt.min_normal],
        ["signalling", "nan", "infinity", "zero", "subnormal"],
        "normal",
    )


def rounding_cases(high: NDArray[np.float64], low: Any, result: Codes, fmt: FloatFormat) -> NDArray[np.str_]:
    """Return the rounding case of results whose exact value is ``high + low``, |low| at most half an ulp of high."""
    with np.errstate(all="ignore"):
        rounded = decode(np.asarray(result).astype(np.uint32 if fmt.width > 16 else np.uint16), fmt).astype(np.float64)
        exponent = np.frexp(np.where(np.isfinite(high), high, 1.0))[1] - 1
        ulp = np.ldexp(1.0, np.maximum(exponent, fmt.emin) - fmt.fraction_bits)
        below = np.floor(high / ulp) * ulp
        # If `high` is a value of the destination, `low` may move the exact value below it.
        below = np.where((below == high) & (np.asarray(low) < 0), below - ulp, below)
        side = (high - (below + ulp / 2)) + low
    # "Below half" is relative to zero, so that it is the same for both signs.
    side = np.where(high < 0, -side, side)
    return np.select(
        [
            ~np.isfinite(high) | np.isnan(rounded),
            np.isinf(rounded),
            (rounded == high) & (np.asarray(low) == 0),
            side == 0,
            side < 0,
        ],
        ["not_finite", "overflow", "exact", "tie", "below_half"],
        "above_half",
    )


def count_bins(*columns: Iterable[Any]) -> Counter[str]:
    """Count the combinations that occur, named ``first/second/...``."""
    rows = [np.asarray(column).astype(str) for column in columns]
    joined = rows[0]
    for row in rows[1:]:
        joined = np.char.add(np.char.add(joined, "/"), row)
    names, counts = np.unique(joined, return_counts=True)
    return Counter(dict(zip(map(str, names), map(int, counts), strict=True)))
