"""Coverage of the multiply-accumulate unit, and its required bins, derived from the formats alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from golden import FP32, Flag, FloatFormat, decode, multiply_accumulate
from sim.stimulus.coverage import classes, count_bins, rounding_cases
from sim.stimulus.step_operands import Steps

__all__ = ["CHUNKS", "accumulator_of", "chunk_lengths", "count_steps", "required_edges", "required_steps"]

#: The tested chunk lengths; 0 is one chunk of any length.
CHUNKS = (1, 2, 3, 32, 0)

_CLASSES = ("zero", "subnormal", "normal", "infinity", "nan", "signalling")


def accumulator_of(level: int, operand: FloatFormat) -> FloatFormat:
    """Return the format in which products are accumulated."""
    return FP32 if level == 0 else operand


def count_steps(operand: FloatFormat, level: int, steps: Steps, subnormals: str = "keep") -> Counter[str]:
    """Count the bins that the steps ``a * b + round(c * d)`` meet at a level."""
    accumulator = accumulator_of(level, operand)
    codes = (steps.a.astype(np.uint16), steps.b.astype(np.uint16))
    acc = steps.accumulators(operand, accumulator, subnormals)
    result, flags = multiply_accumulate(
        *codes, acc, operand=operand, accumulator=accumulator, subnormals=subnormals, return_flags=True
    )
    class_a, class_b = (classes(part, operand) for part in codes)
    class_acc, class_result = classes(acc, accumulator), classes(result, accumulator)
    with np.errstate(all="ignore"):
        a, b = (decode(part, operand).astype(np.float64) for part in codes)
        if subnormals == "flush":
            a, b = (np.where(np.abs(part) < 2.0**operand.emin, part * 0, part) for part in (a, b))
        c = decode(acc, accumulator).astype(np.float64)
        product, total = a * b, a * b + c
        # The part of the exact sum that float64 loses (Knuth's two-sum).
        from_c = total - product
        lost = (product - (total - from_c)) + (c - from_c)
        rounding = rounding_cases(total, np.where(np.isfinite(lost), lost, 0.0), result, accumulator)
        events: dict[str, Any] = {
            "infinity_minus_infinity": np.isinf(product) & np.isinf(c) & (product != c),
            "infinity_times_zero": np.isnan(product) & ~np.isnan(a) & ~np.isnan(b),
            "cancels_to_zero": (product == -c) & (product != 0) & np.isfinite(c),
            "sum_of_minus_zeros": (product == 0) & (c == 0) & np.signbit(product) & np.signbit(c),
        }
    head = f"{operand}/level_{level}"
    bins = count_bins(np.full(len(steps), f"{head}/operands"), class_a, class_b)
    bins += count_bins(np.full(len(steps), f"{head}/result"), class_result)
    bins += count_bins(np.full(len(steps), f"{head}/accumulator"), class_acc)
    bins += count_bins(np.full(len(steps), f"{head}/rounding"), rounding)
    bins += count_bins(np.full(len(steps), f"{head}/cross"), class_a, class_b, class_result, rounding)
    for flag in Flag:
        bins[f"{head}/flag/{flag.name}"] = int(np.count_nonzero(flags & flag))
    for name, met in events.items():
        bins[f"{head}/event/{name}"] = int(np.count_nonzero(met))
    return +bins


def required_steps(operand: FloatFormat, level: int, subnormals: str = "keep") -> set[str]:
    """Return the bins of `count_steps` that must not be empty."""
    accumulator = accumulator_of(level, operand)
    keeps = subnormals == "keep"
    lowest = 2 * (operand.emin - operand.fraction_bits)
    required = {f"operands/{a}/{b}" for a in _CLASSES for b in _CLASSES}
    required |= {f"result/{name}" for name in ("zero", "normal", "infinity", "nan")}
    required |= {f"accumulator/{name}" for name in ("zero", "normal", "infinity", "nan")}
    required |= {f"rounding/{name}" for name in ("exact", "below_half", "tie", "above_half", "not_finite")}
    required |= {f"event/{name}" for name in ("infinity_minus_infinity", "infinity_times_zero", "cancels_to_zero")}
    required |= {"flag/INEXACT", "flag/INVALID"}
    if keeps and lowest < accumulator.emin:
        required |= {"result/subnormal", "accumulator/subnormal"}
    if keeps and lowest < accumulator.emin - accumulator.fraction_bits:
        required |= {"flag/UNDERFLOW"}
    if 2 * operand.emax >= accumulator.emax:
        required |= {"flag/OVERFLOW", "rounding/overflow"}
    return {f"{operand}/level_{level}/{name}" for name in required}


def chunk_lengths(chunk: int) -> dict[str, int]:
    """Return the numbers of products that lie at the edges of chunks, by name."""
    if chunk == 0:
        return {"empty": 0, "one": 1, "two": 2, "default_chunk": 32, "above_default_chunk": 33, "many": 70}
    lengths = {
        "empty": 0,
        "one": 1,
        "below_chunk": chunk - 1,
        "chunk": chunk,
        "above_chunk": chunk + 1,
        "two_chunks": 2 * chunk,
        "three_chunks_and_one": 3 * chunk + 1,
    }
    return {name: length for name, length in lengths.items() if length or name == "empty"}


def required_edges(operand: FloatFormat, level: int, chunks: tuple[int, ...]) -> set[str]:
    """Return the bins of chunk edges that must not be empty."""
    return {f"{operand}/level_{level}/chunk_{chunk}/{name}" for chunk in chunks for name in chunk_lengths(chunk)}
