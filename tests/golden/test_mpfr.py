"""The default rounding against MPFR, set to each format's precision and exponent range: encode, convert, fused steps.

Tiny formats are tried in full: there the exact sum of every step is a float64, which MPFR rounds.
"""

from fractions import Fraction

import numpy as np
import pytest

from golden import FP32, FloatFormat, convert, encode, multiply_accumulate, quantize, reference
from golden.formats import WIDE_FORMATS

from .judges import (
    INVALID,
    Mpfr,
    all_codes,
    assert_same_bits,
    boundary_codes,
    code_dtype,
    codes_of,
    random_codes,
    values_around,
    values_of,
)  # fmt: skip

ALL = pytest.mark.parametrize("fmt", WIDE_FORMATS, ids=str)
NARROW = [fmt for fmt in WIDE_FORMATS if fmt != FP32]
PAIRS = [(fmt, accumulator) for fmt in WIDE_FORMATS if fmt != FP32 for accumulator in (fmt, FP32)]
STEPS = pytest.mark.parametrize(("operand", "accumulator"), PAIRS, ids=[f"{x}-{y}" for x, y in PAIRS])


def judge(values, fmt):
    rounded, flags = Mpfr(fmt).apply_all("plus", values)
    return codes_of(rounded, fmt), flags


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_encode_values_midpoints_and_their_neighbours_is_mpfrs_rounding(fmt):
    values = values_around(fmt)
    values = np.where(np.arange(len(values)) % 3 == 0, -values, values)
    wanted, _ = judge(values, fmt)
    assert_same_bits(encode(values, fmt), wanted, values)
    assert_same_bits(
        quantize(values, fmt).astype(np.float64).view(np.int64), values_of(wanted, fmt).view(np.int64), values
    )


@ALL
def test_encode_float64_across_the_range_is_mpfrs_rounding(fmt):
    rng = np.random.default_rng(2)
    exponents = rng.integers(fmt.emin - fmt.fraction_bits - 3, fmt.emax + 3, 20_000)
    values = np.ldexp(rng.uniform(-2, 2, 20_000), exponents)
    extremes = np.array([2.0**-1074, -(2.0**-1022), 1.7976931348623157e308, -0.0, 0.0, np.inf, -np.inf, np.nan])
    values = np.concatenate([values, extremes])
    assert_same_bits(encode(values, fmt), judge(values, fmt)[0], values)


@ALL
def test_encode_float32_subnormals_and_midpoints_is_mpfrs_rounding(fmt):
    codes = boundary_codes(FP32, near=(fmt,))
    finite = values_of(codes, FP32)
    finite = finite[np.isfinite(finite)]
    # In between two float32 values: a float64 that fp32 has to round.
    values = np.concatenate([finite, finite * (1 + 2.0**-24), finite * (1 + 2.0**-25), finite * 1.5 * (1 + 2.0**-52)])
    assert_same_bits(encode(values, fmt), judge(values, fmt)[0], values)


@ALL
def test_convert_float32_boundaries_has_mpfrs_codes_and_flags(fmt):
    codes = boundary_codes(FP32, near=(fmt,))
    codes = codes[np.isfinite(values_of(codes, FP32))]
    wanted, wanted_flags = judge(values_of(codes, FP32), fmt)
    got, flags = convert(codes, FP32, fmt, return_flags=True)
    assert_same_bits(got, wanted, codes)
    assert_same_bits(flags, wanted_flags, codes)


@ALL
def test_reference_encode_rationals_is_mpfrs_rounding(fmt):
    # Quotients, which no float64 holds, and numbers that it holds.
    rng = np.random.default_rng(3)
    values = np.ldexp(rng.uniform(-2, 2, 4000), rng.integers(fmt.emin - fmt.fraction_bits - 3, fmt.emax + 3, 4000))
    divisors = np.where(np.arange(4000) % 2, rng.integers(1, 10**12, 4000) * 2.0**-39, 1)
    wanted = codes_of(Mpfr(fmt).apply_all("div", values, divisors)[0], fmt)
    quotients = [Fraction(x) / Fraction(y) for x, y in zip(values.tolist(), divisors.tolist(), strict=True)]
    assert_same_bits([reference.encode(each, fmt) for each in quotients], wanted, values, divisors)


def test_judge_rounds_once_below_the_smallest_normal():
    # MPFR first rounds to 10 bits and then to the subnormal digit; its ternary value must keep that one rounding.
    fmt = FloatFormat("cbfloat16_again", 6, 9)
    just_above_tie = 3 * 2.0**-40 + 2.0**-80
    assert Mpfr(fmt).apply("plus", just_above_tie)[0] == 2 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40 + 2.0**-80)[0] == 3 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40)[0] == 2 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40 - 2.0**-80)[0] == 2 * 2.0**-39


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


E3M2, E3M3, E4M3 = FloatFormat("e3m2", 3, 2), FloatFormat("e3m3", 3, 3), FloatFormat("e4m3", 4, 3)
TINY_PAIRS = [(E3M2, E3M2), (E3M3, E3M3), (E3M2, E4M3), (E4M3, E3M2)]


def every_combination(operand, accumulator):
    factors, sums = all_codes(operand), all_codes(accumulator)
    return (grid.ravel() for grid in np.meshgrid(factors, factors, sums, indexing="ij"))


def is_signalling(codes, fmt):
    return (codes % fmt.sign_mask > fmt.inf) & (codes % fmt.sign_mask < fmt.nan)


@pytest.mark.parametrize(("operand", "accumulator"), TINY_PAIRS, ids=[f"{x}-{y}" for x, y in TINY_PAIRS])
def test_step_of_every_combination_of_tiny_formats_is_mpfrs_rounding_of_the_exact_sum(operand, accumulator):
    a, b, acc = every_combination(operand, accumulator)
    x, y, z = values_of(a, operand), values_of(b, operand), values_of(acc, accumulator)
    with np.errstate(invalid="ignore"):
        product = x * y
        exact = product + z
    sums, at = np.unique(exact.view(np.int64), return_inverse=True)
    rounded, raised = Mpfr(accumulator).apply_all("plus", sums.view(np.float64))
    invalid = is_signalling(a, operand) | is_signalling(b, operand) | is_signalling(acc, accumulator)
    invalid |= np.isnan(product) & ~np.isnan(x) & ~np.isnan(y)
    invalid |= np.isnan(exact) & ~np.isnan(product) & ~np.isnan(z)
    got, flags = multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, return_flags=True)
    assert_same_bits(got, codes_of(rounded, accumulator)[at], a, b, acc)
    assert_same_bits(flags, raised[at] + invalid * INVALID, a, b, acc)


@pytest.mark.long
def test_step_of_every_combination_of_e3m2_is_the_references():
    a, b, acc = every_combination(E3M2, E3M2)
    got, flags = multiply_accumulate(a, b, acc, operand=E3M2, accumulator=E3M2, return_flags=True)
    for triple, code, raised in zip(np.stack([a, b, acc], 1).tolist(), got.tolist(), flags.tolist(), strict=True):
        assert reference.multiply_accumulate(*triple, operand=E3M2, accumulator=E3M2) == (code, raised), triple
