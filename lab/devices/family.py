"""Random members of the family `golden.Accumulator`, as devices whose rule is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

import golden
from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, FP32, Accumulator, FloatFormat, FusedSum, Rounding
from lab.devices.device import Device

__all__ = ["drawn", "member"]

_OPERANDS = {16: (BF16, FP16, CBFLOAT16), 8: (FLOAT8_E4M3FN, FLOAT8_E5M2)}
_MOST_PRODUCTS, _MOST_STAGES, _MOST_BLOCKS = 64, 3, 16
_LOSSY = (Rounding.TOWARD_ZERO, Rounding.TO_ODD)
_CUTS = (Rounding.TOWARD_ZERO, Rounding.DOWN, Rounding.TO_ODD)


def _maybe(random: np.random.Generator, low: int, high: int) -> int | None:
    """Return None or a number from `low` to `high`, with equal chances."""
    return None if random.random() < 0.5 else int(random.integers(low, high + 1))


def _sum(random: np.random.Generator, terms: int, *, is_join: bool) -> FusedSum:
    """Return a sum of `terms` terms; its other parameters are drawn at random."""
    kinds = ["cut", "chain"] + (["exact"] if terms <= 2 else [])
    kind = kinds[random.integers(len(kinds))]
    modes = [Rounding.NEAREST_EVEN, *_LOSSY] + ([None] if kind == "cut" and not is_join else [])
    rounding = modes[random.integers(len(modes))]
    result = FP32
    if rounding in _LOSSY and (bits := _maybe(random, 1, 22)) is not None:
        result = FloatFormat(f"e8m{bits}", 8, bits)
    return FusedSum(
        terms,
        int(random.integers(1, 41)) if kind == "cut" else None,
        _CUTS[random.integers(len(_CUTS))],
        rounding,
        result,
        chain=kind == "chain",
        interleaved=bool(random.random() < 0.5),
    )


def drawn(random: np.random.Generator, operand_bits: int, total: FloatFormat = FP32) -> Accumulator:
    """Return a member of the family, with every parameter drawn from its whole range.

    Parameters
    ----------
    random : Generator
    operand_bits : int
    total : FloatFormat
        float32 or float16; a member with float16 neither flushes nor promotes.
    """
    block = left = int(random.integers(1, _MOST_PRODUCTS + 1))
    stages = []
    for _ in range(random.integers(_MOST_STAGES + 1)):
        divisors = [each for each in range(1, left + 1) if left % each == 0]
        stages.append(_sum(random, divisors[random.integers(len(divisors))], is_join=False))
        left //= stages[-1].terms
    depth, promote = _maybe(random, 1, _MOST_BLOCKS), _maybe(random, 1, _MOST_BLOCKS)
    (of_total,) = random.spawn(1)  # its draws do not disturb the draws of the other parameters
    join = _sum(random, left + 1, is_join=True)
    is_float32 = total == FP32
    return Accumulator(
        operand_bits,
        block,
        join if is_float32 else replace(join, result=total),
        stages=tuple(stages),
        order=tuple(random.permutation(block).tolist()) if random.random() < 0.5 else (),
        total_fraction_bits=_maybe(random, 1, 40),
        total_reach=_maybe(random, 1, 40),
        zero_exponent=_maybe(random, -1000, 256),
        zero_total_exponent=FP32.emin if of_total.random() < 0.5 else int(of_total.integers(-1000, 257)),
        products_overflow=bool(random.random() < 0.5),
        flush=("none", "signed", "positive")[random.integers(3) if is_float32 else 0],
        depth=None if depth is None else depth * block,
        promote_every=promote * block if promote is not None and is_float32 else None,
        nan=total.nan if random.random() < 0.5 else total.inf + int(random.integers(1, 1 << total.fraction_bits)),
    )


def member(number: int, total: FloatFormat = FP32) -> Device:
    """Return the device with this number and total, which alone determine its rule and the format of its operands."""
    random = np.random.default_rng([0xFA31, number])
    bits = (8, 16)[random.integers(2)]
    rule = drawn(random, bits, total)
    formats: tuple[FloatFormat, ...] = _OPERANDS[bits]
    operand = formats[random.integers(len(formats))]
    return Device(partial(golden.matmul, operand=operand, reduction=rule), operand, True, rule)
