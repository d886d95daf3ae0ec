"""Steps for units with rounding modes or widened operands, and the overflow results of each mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from golden import FloatFormat, Rounding, encode, reference
from hdl.mac.parameters import WORD_WIDTH
from sim.stimulus.mac_coverage import accumulator_of
from sim.stimulus.operands import random_codes, specials
from sim.stimulus.step_operands import directed_steps

__all__ = ["beyond", "rises", "rows_of_steps", "rows_of_widened_steps"]


def rows_of_steps(operand: FloatFormat, level: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield steps ``a * b + c * d``: the steps of all units, and some of them negated."""
    steps = directed_steps(operand, accumulator_of(level, operand))
    columns = (part.astype(np.int64).tolist() for part in (steps.c, steps.d, steps.a, steps.b))
    yield from zip(*columns, strict=True)
    minus, one, smallest, largest = operand.sign_mask, operand.one, operand.min_subnormal, operand.max_finite
    yield 0, one, largest | minus, largest
    yield largest | minus, one, largest | minus, one
    if operand.width < WORD_WIDTH:
        # A fraction of one bit leaves too few numbers below the smallest normal one for the rows below.
        yield 0, one, smallest | minus, smallest
    # Three of the smallest numbers by three quarters: in every mode two or three of them.
    for sign in (0, minus):
        yield 0, one, 3 * smallest | sign, one - (1 << operand.fraction_bits - 1)
    for sign in (0, minus):
        # Three eighths of the spacing below the smallest normal number: only with a sticky bit does it round back up.
        down = operand.emin - operand.fraction_bits - 2
        a, b = (int(encode(x, operand)) for x in (1.5 * 2.0 ** (down // 2), 2.0 ** (down - down // 2)))
        yield operand.min_normal | sign, one, a | sign ^ minus, b
        # 2^emax less 3 times 2^emax: a power of two beyond the largest value, which looks smaller as a negative word.
        half = operand.emax // 2
        a, b = (int(encode(x, operand)) for x in (1.5 * 2.0**half, 2.0 ** (operand.emax + 1 - half)))
        yield operand.max_finite_field << operand.fraction_bits | sign, one, a | sign ^ minus, b


def rows_of_widened_steps(operand: FloatFormat, rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Return steps of operands that are widened: all pairs of specials, and random ones."""
    values = specials(operand).tolist()
    rows = [(0, operand.one, a, b) for a in values for b in values]
    minus = operand.sign_mask
    rows += [(operand.one, operand.one, operand.one | minus, operand.one)]
    drawn = np.stack([random_codes(operand, 200, rng) for _ in range(4)]).astype(np.int64)
    return rows + [tuple(row) for row in drawn.T.tolist()]


def beyond(fmt: FloatFormat, mode: Rounding, sign: int) -> str:
    """Return the name of the rounded result beyond the largest finite value: ``largest`` or ``infinity``."""
    random: dict[str, Any] = {"random": 0} if mode is Rounding.STOCHASTIC else {}
    value = reference.Value(reference.Class.FINITE, sign, 1, fmt.emax + 1)
    code, _ = reference.round_value(value, fmt, rounding=mode, **random)
    return "largest" if fmt.is_finite(code) else "infinity"


def rises(fmt: FloatFormat, mode: Rounding) -> bool:
    """Return whether 1 plus a quarter of an ulp is rounded up, in a mode without random numbers."""
    value = reference.Value(reference.Class.FINITE, 0, (4 << fmt.fraction_bits) + 1, -fmt.fraction_bits - 2)
    code, _ = reference.round_value(value, fmt, rounding=mode)
    return code > fmt.one
