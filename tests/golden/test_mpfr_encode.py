"""Encode and convert against MPFR, set to each format's precision and exponent range, subnormals included."""

from fractions import Fraction

import numpy as np
import pytest

from golden import FP32, FloatFormat, convert, encode, quantize, reference
from golden.formats import WIDE_FORMATS

from .judges import Mpfr, assert_same_bits, boundary_codes, codes_of, values_around, values_of

ALL = pytest.mark.parametrize("fmt", WIDE_FORMATS, ids=str)
NARROW = [fmt for fmt in WIDE_FORMATS if fmt != FP32]


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
    rng = np.random.default_rng(3)
    values = np.ldexp(rng.uniform(-2, 2, 2000), rng.integers(fmt.emin - fmt.fraction_bits - 3, fmt.emax + 3, 2000))
    wanted, _ = judge(values, fmt)
    assert_same_bits([reference.encode(Fraction(value), fmt) for value in values.tolist()], wanted, values)


def test_judge_rounds_once_below_the_smallest_normal():
    # MPFR first rounds to 10 bits and then to the subnormal digit; its ternary value must keep that one rounding.
    fmt = FloatFormat("cbfloat16_again", 6, 9)
    just_above_tie = 3 * 2.0**-40 + 2.0**-80
    assert Mpfr(fmt).apply("plus", just_above_tie)[0] == 2 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40 + 2.0**-80)[0] == 3 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40)[0] == 2 * 2.0**-39
    assert Mpfr(fmt).apply("plus", 5 * 2.0**-40 - 2.0**-80)[0] == 2 * 2.0**-39
