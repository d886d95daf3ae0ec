"""Fused steps against MPFR's fma, rounded once in the precision and exponent range of the accumulator."""

import numpy as np
import pytest

from golden import FP32, multiply_accumulate, reference
from golden.formats import WIDE_FORMATS

from .judges import Mpfr, assert_same_bits, boundary_codes, code_dtype, codes_of, random_codes, values_of

PAIRS = [(fmt, accumulator) for fmt in WIDE_FORMATS if fmt != FP32 for accumulator in (fmt, FP32)]
STEPS = pytest.mark.parametrize(("operand", "accumulator"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])


def without_nan(codes, fmt):
    return np.where(np.isnan(values_of(codes, fmt)), fmt.one, codes).astype(codes.dtype)


def assert_agrees(a, b, acc, operand, accumulator):
    a, b, acc = without_nan(a, operand), without_nan(b, operand), without_nan(acc, accumulator)
    exact = values_of(a, operand), values_of(b, operand), values_of(acc, accumulator)
    values, wanted_flags = Mpfr(accumulator).apply_all("fma", *exact)
    got, flags = multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, return_flags=True)
    assert_same_bits(got, codes_of(values, accumulator), a, b, acc)
    assert_same_bits(flags, wanted_flags, a, b, acc)
    return a, b, acc, got, flags


def draw(codes, count, seed):
    return codes[np.random.default_rng(seed).integers(0, len(codes), count)]


def cancelling(a, b, operand, accumulator, seed):
    """Accumulators within a few units of the last place of -a*b: sums whose leading bits cancel."""
    values, _ = Mpfr(accumulator).apply_all("mul", values_of(a, operand), values_of(b, operand))
    near = codes_of(-values, accumulator)
    moved = near + np.random.default_rng(seed).integers(-2, 3, len(near))
    moved = np.clip(moved, 0, 2**accumulator.width - 1)
    return np.where(values == 0, near, moved).astype(code_dtype(accumulator))


@STEPS
def test_step_of_random_codes_is_mpfrs_fma(operand, accumulator):
    a, b, acc = random_codes(operand, 20_000, 1), random_codes(operand, 20_000, 2), random_codes(accumulator, 20_000, 3)
    assert_agrees(a, b, acc, operand, accumulator)


@STEPS
def test_step_of_boundary_codes_is_mpfrs_fma_and_the_references(operand, accumulator):
    factors, sums = boundary_codes(operand), boundary_codes(accumulator, near=(operand,))
    *operands, got, flags = assert_agrees(
        draw(factors, 20_000, 4), draw(factors, 20_000, 5), draw(sums, 20_000, 6), operand, accumulator
    )
    for a, b, acc, code, raised in zip(*(x[:2000].tolist() for x in (*operands, got, flags)), strict=True):
        step = reference.multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator)
        assert step == (code, raised), (hex(a), hex(b), hex(acc))


@STEPS
def test_step_with_cancellation_is_mpfrs_fma(operand, accumulator):
    a, b = (without_nan(random_codes(operand, 10_000, seed), operand) for seed in (7, 8))
    finite = np.isfinite(values_of(a, operand)) & np.isfinite(values_of(b, operand))
    a, b = a[finite], b[finite]
    assert_agrees(a, b, cancelling(a, b, operand, accumulator, 9), operand, accumulator)


@STEPS
def test_step_with_tiny_accumulator_beside_a_midpoint_is_mpfrs_fma(operand, accumulator):
    # Products with many significant bits and an accumulator far below them decide which way a tie goes.
    rng = np.random.default_rng(10)
    ones = [operand.one + bits for bits in rng.integers(0, 2**operand.fraction_bits, (2, 10_000))]
    a, b = (each.astype(np.uint16) for each in ones)
    tiny = rng.integers(1, accumulator.min_normal + 4, 10_000) + rng.integers(0, 2, 10_000) * accumulator.sign_mask
    assert_agrees(a, b, tiny.astype(code_dtype(accumulator)), operand, accumulator)
