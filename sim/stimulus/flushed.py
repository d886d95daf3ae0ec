"""Steps of units that flush subnormals (NUMERICS section 12): operands that count as zeros, results on either side."""

from __future__ import annotations

from collections import Counter

import numpy as np

from golden import Flag, FloatFormat, decode, encode, multiply_accumulate
from sim.stimulus.step_operands import Steps

__all__ = ["FLUSH", "count_flushed", "flushed_steps", "required_flushed"]

FLUSH = "flush"


def _reaches(operand: FloatFormat, accumulator: FloatFormat) -> bool:
    """Return whether sums of products of normal operands are small enough to be flushed."""
    return accumulator == operand or 2 * operand.emin < accumulator.emin


def flushed_steps(operand: FloatFormat, accumulator: FloatFormat) -> Steps:
    """Return steps ``a * b + c * d`` that meet every bin of `count_flushed`."""
    minus, one, normal = operand.sign_mask, operand.one, operand.min_normal
    rows = []
    for sign in (0, minus):
        other = sign ^ minus
        for subnormal in (1 | sign, normal - 1 | sign):
            # A subnormal as the first or second factor; as both; and as the factor of an accumulator.
            rows += [(0, one, subnormal, one), (sign, one, one, subnormal), (one, one, subnormal, subnormal)]
            rows += [(subnormal, one, one, one), (subnormal, one, 0, one), (0, one, operand.inf, subnormal)]
        if not _reaches(operand, accumulator):
            continue
        half = accumulator.emin // 2
        least = [int(encode(2.0**x, operand)) for x in (half, accumulator.emin - half)]
        # A product alone, a little below the smallest normal number and far below it, and that number itself.
        rows += [
            (0, one, least[0] - 1 | sign, least[1]),
            (0, one, least[0] - (1 << operand.fraction_bits + 1) | sign, least[1]),
        ]
        rows += [(0, one, least[0] | sign, least[1]), (least[0] | sign, least[1], least[0] | other, least[1])]
        # The smallest normal number less 2, 1, 3/4, 1/2 and 1/4 of the distance below it: a half is a tie.
        place = accumulator.emin - accumulator.precision
        for quarters in (8, 4, 3, 2, 1):
            down = (place - 2) // 2
            if place - 2 - down < operand.emin or down + 3 < operand.emin:
                continue
            a, b = (int(encode(x, operand)) for x in (quarters * 2.0**down, 2.0 ** (place - 2 - down)))
            rows.append((least[0] | sign, least[1], a | other, b))
    return Steps(*(np.array(column, np.uint64) for column in zip(*rows, strict=True)))


def count_flushed(operand: FloatFormat, accumulator: FloatFormat, level: int, steps: Steps) -> Counter[str]:
    """Count the effects of flushing on subnormal operands and results, by sign, with rounding to nearest even."""
    a, b = steps.a.astype(np.uint16), steps.b.astype(np.uint16)
    acc = steps.accumulators(operand, accumulator, FLUSH)
    result, flags = multiply_accumulate(
        a, b, acc, operand=operand, accumulator=accumulator, subnormals=FLUSH, return_flags=True
    )
    bins: Counter[str] = Counter()

    def count(name: str, met: np.ndarray, negative: np.ndarray) -> None:
        for sign, of_sign in (("+", ~negative), ("-", negative)):
            bins[f"{operand}/level_{level}/flush/{name}{sign}"] = int(np.count_nonzero(met & of_sign))

    for name, codes in (("a", a), ("b", b)):
        magnitude = codes & np.uint16(operand.sign_mask - 1)
        count(f"operand_{name}", (magnitude > 0) & (magnitude < operand.min_normal), codes >= operand.sign_mask)
    negative = result >= accumulator.sign_mask
    magnitude = result & np.asarray(accumulator.sign_mask - 1, result.dtype)
    count("result", (flags & Flag.UNDERFLOW != 0) & (magnitude == 0), negative)
    with np.errstate(all="ignore"):
        x, y = (decode(each, operand).astype(np.float64) for each in (a, b))
        exact = x * y + decode(acc, accumulator).astype(np.float64)
    is_below = (np.abs(exact) < 2.0**accumulator.emin) & (exact != 0)
    count("rounds_up_to_normal", is_below & (magnitude == accumulator.min_normal), negative)
    count("almost_normal", is_below & (magnitude == 0) & (np.abs(exact) >= 2.0 ** (accumulator.emin - 1)), negative)
    return +bins


def required_flushed(operand: FloatFormat, accumulator: FloatFormat, level: int) -> set[str]:
    """Return the bins of `count_flushed` that must not be empty."""
    names = ["operand_a", "operand_b"]
    if _reaches(operand, accumulator):
        names += ["result", "rounds_up_to_normal", "almost_normal"]
    return {f"{operand}/level_{level}/flush/{name}{sign}" for name in names for sign in "+-"}
