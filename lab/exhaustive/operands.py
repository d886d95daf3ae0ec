"""Operands of a fused step: all of them, or a sample that meets the edge cases more often than chance would."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import golden
from golden import FloatFormat
from golden.arrays.checks import code_dtype

__all__ = ["Operands", "all_operands", "biased_operands", "drawn_operands", "factors"]

#: Makes arrays of ``a``, ``b`` and ``acc`` for the inputs of a check from the first number up to the second.
Operands: TypeAlias = Callable[[int, int], Sequence[NDArray]]


def factors(rng: np.random.Generator, fmt: FloatFormat, count: int) -> np.ndarray:
    """Codes: patterned fractions; exponent fields at the ends of the range, around 1.0, or anywhere."""
    bits, top = fmt.fraction_bits, fmt.exponent_field_max
    ones = (1 << bits) - 1
    pattern = rng.integers(0, 6, count)
    one_bit, run = 1 << rng.integers(0, bits, count), ones >> rng.integers(0, bits, count)
    anything = rng.integers(0, 1 << bits, count)
    fraction = np.select([pattern == k for k in range(4)], [0, ones, one_bit, run], anything)
    edge = rng.choice([0, 1, top - 1, top], count)
    near_one = np.clip(fmt.bias + rng.integers(-3, 4, count), 0, top)
    draw = rng.random(count)
    field = np.select([draw < 0.2, draw < 0.4], [edge, near_one], rng.integers(0, top, count))
    code = (rng.integers(0, 2, count) << (fmt.width - 1)) | (field << bits) | fraction
    return np.where(pattern == 5, rng.integers(0, 1 << fmt.width, count), code).astype(code_dtype(fmt))


def drawn_operands(operand: FloatFormat, accumulator: FloatFormat, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """``a``, ``b`` and ``acc``: a third nearly cancels the product, a third is up to 2^50 above or below it."""
    rng = np.random.default_rng(seed)
    a, b = factors(rng, operand, count), factors(rng, operand, count)
    with np.errstate(all="ignore"):
        product = -golden.decode(a, operand).astype(float) * golden.decode(b, operand).astype(float)
        distant = product * 2.0 ** rng.integers(-50, 51, count)
    near, far = (
        golden.encode(np.nan_to_num(x), accumulator).astype(np.int64) + rng.integers(-3, 4, count)
        for x in (product, distant)
    )
    draw = rng.random(count)
    anything = rng.integers(0, 1 << accumulator.width, count)
    acc = np.select([draw < 0.35, draw < 0.7, draw < 0.75], [near, far, 0 * near], anything) % (1 << accumulator.width)
    flipped = rng.random(count) < 0.3
    acc = np.where(flipped, acc ^ accumulator.sign_mask, acc)
    return a, b, acc.astype(code_dtype(accumulator))


def all_operands(operand: FloatFormat, accumulator: FloatFormat) -> Operands:
    """Return a function that makes the triples (a, b, acc) in a range, from the list of all triples."""

    def operands(start: int, stop: int) -> Sequence[NDArray]:
        index = np.arange(start, stop, dtype=np.uint32)
        factors = index >> np.uint32(accumulator.width)
        a, b = factors >> np.uint32(operand.width), factors & np.uint32((1 << operand.width) - 1)
        acc = index & np.uint32((1 << accumulator.width) - 1)
        return a.astype(np.uint16), b.astype(np.uint16), acc.astype(np.uint16)

    return operands


def biased_operands(operand: FloatFormat, accumulator: FloatFormat) -> Operands:
    """Return a function that draws the triples in a range of a sample, with `drawn_operands`."""
    # The place in the sample is the seed, so that a difference can be repeated.
    return lambda start, stop: drawn_operands(operand, accumulator, stop - start, start)
