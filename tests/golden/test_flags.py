"""Named cases in both implementations: specials, signs of zero, flags, and sums that double rounding spoils."""

from fractions import Fraction

import numpy as np
import pytest

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FP16,
    FP32,
    Flag,
    FloatFormat,
    convert,
    decode,
    encode,
    format_named,
    multiply_accumulate,
    reference,
)
from golden.formats import SIXTEEN_BIT_FORMATS, WIDE_FORMATS

from .judges import fraction_of

NONE, INEXACT, INVALID = Flag(0), Flag.INEXACT, Flag.INVALID
UNDERFLOW, OVERFLOW = Flag.UNDERFLOW | Flag.INEXACT, Flag.OVERFLOW | Flag.INEXACT
ALL = pytest.mark.parametrize("fmt", WIDE_FORMATS, ids=str)


def step(a, b, acc, fmt):
    """One step in both implementations, which must agree."""
    code, flags = multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt, return_flags=True)
    assert (int(code), int(flags)) == reference.multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)
    assert int(multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)) == int(code)
    return int(code), Flag(int(flags))


def conversion(code, source, destination):
    got, flags = convert(code, source, destination, return_flags=True)
    assert (int(got), int(flags)) == reference.convert(code, source, destination)
    return int(got), Flag(int(flags))


def minus(code, fmt):
    return code | fmt.sign_mask


def test_flag_bits_are_those_of_riscv_fflags():
    assert [int(flag) for flag in (Flag.INEXACT, Flag.UNDERFLOW, Flag.OVERFLOW, Flag.INVALID)] == [1, 2, 4, 16]


@ALL
def test_step_infinity_times_zero_is_invalid_even_beside_a_quiet_nan(fmt):
    for zero in (0, minus(0, fmt)):
        for infinity in (fmt.inf, minus(fmt.inf, fmt)):
            for acc in (0, fmt.one, fmt.inf, minus(fmt.inf, fmt), fmt.nan):
                assert step(zero, infinity, acc, fmt) == (fmt.nan, INVALID)
                assert step(infinity, zero, acc, fmt) == (fmt.nan, INVALID)


@ALL
def test_step_infinity_minus_infinity_is_invalid_and_plus_is_not(fmt):
    one, inf, minus_one, minus_inf = fmt.one, fmt.inf, minus(fmt.one, fmt), minus(fmt.inf, fmt)
    assert step(inf, one, minus_inf, fmt) == (fmt.nan, INVALID)
    assert step(minus_one, inf, inf, fmt) == (fmt.nan, INVALID)
    assert step(minus_inf, minus_inf, minus_inf, fmt) == (fmt.nan, INVALID)
    assert step(inf, one, inf, fmt) == (inf, NONE)
    assert step(minus_one, inf, minus_inf, fmt) == (minus_inf, NONE)
    assert step(one, one, minus_inf, fmt) == (minus_inf, NONE)
    assert step(inf, minus_one, one, fmt) == (minus_inf, NONE)


@ALL
def test_step_finite_factors_whose_product_overflows_beside_infinity_is_that_infinity(fmt):
    # The product is exact: however large, it is not an infinity, and inf - it is valid.
    big = fmt.max_finite
    assert step(big, big, minus(fmt.inf, fmt), fmt) == (minus(fmt.inf, fmt), NONE)


@ALL
def test_step_signalling_nan_is_invalid_and_quiet_nan_is_not(fmt):
    one = fmt.one
    for signalling in (fmt.inf + 1, fmt.nan - 1, minus(fmt.inf + 1, fmt)):
        for operands in ((signalling, one, one), (one, signalling, one), (one, one, signalling)):
            assert step(*operands, fmt) == (fmt.nan, INVALID)
        assert step(signalling, fmt.nan, fmt.nan, fmt) == (fmt.nan, INVALID)
    for quiet in (fmt.nan, fmt.nan + 1, minus(fmt.nan, fmt), fmt.sign_mask - 1):
        for operands in ((quiet, one, one), (one, quiet, one), (one, one, quiet), (quiet, 0, fmt.inf)):
            assert step(*operands, fmt) == (fmt.nan, NONE)


@ALL
def test_convert_signalling_nan_is_invalid_and_every_nan_canonical(fmt):
    for destination in WIDE_FORMATS:
        assert conversion(fmt.inf + 1, fmt, destination) == (destination.nan, INVALID)
        assert conversion(minus(fmt.nan - 1, fmt), fmt, destination) == (destination.nan, INVALID)
        assert conversion(minus(fmt.nan + 1, fmt), fmt, destination) == (destination.nan, NONE)
        assert conversion(minus(fmt.inf, fmt), fmt, destination) == (minus(destination.inf, destination), NONE)
        assert conversion(minus(0, fmt), fmt, destination) == (minus(0, destination), NONE)


@ALL
def test_decode_every_kind_of_nan_is_the_canonical_float32(fmt):
    codes = [fmt.inf + 1, fmt.nan, fmt.nan + 1, minus(fmt.inf + 1, fmt), minus(fmt.nan, fmt)]
    assert set(decode(codes, fmt).view(np.uint32).tolist()) == {0x7FC00000}


@ALL
def test_step_exact_zero_sum_is_plus_unless_both_are_minus(fmt):
    one, minus_one, minus_zero = fmt.one, minus(fmt.one, fmt), minus(0, fmt)
    assert step(one, one, minus_one, fmt) == (0, NONE)
    assert step(minus_one, one, one, fmt) == (0, NONE)
    assert step(0, one, 0, fmt) == (0, NONE)
    assert step(minus_zero, one, 0, fmt) == (0, NONE)
    assert step(0, one, minus_zero, fmt) == (0, NONE)
    assert step(minus_zero, one, minus_zero, fmt) == (minus_zero, NONE)
    assert step(0, minus_one, minus_zero, fmt) == (minus_zero, NONE)
    assert step(minus_zero, minus_one, minus_zero, fmt) == (0, NONE)


@ALL
def test_step_product_below_half_the_smallest_subnormal_keeps_its_sign(fmt):
    tiny = fmt.min_subnormal
    assert step(tiny, tiny, 0, fmt) == (0, UNDERFLOW)
    assert step(minus(tiny, fmt), tiny, 0, fmt) == (minus(0, fmt), UNDERFLOW)
    assert step(minus(tiny, fmt), tiny, minus(0, fmt), fmt) == (minus(0, fmt), UNDERFLOW)


@ALL
def test_step_overflow_is_infinity_with_the_sign_from_half_an_ulp_on(fmt):
    big, one = fmt.max_finite, fmt.one
    half_ulp = (fmt.emax - fmt.fraction_bits - 1 + fmt.bias) << fmt.fraction_bits
    assert step(big, one, half_ulp, fmt) == (fmt.inf, OVERFLOW)
    assert step(minus(big, fmt), one, minus(half_ulp, fmt), fmt) == (minus(fmt.inf, fmt), OVERFLOW)
    assert step(big, one, half_ulp - 1, fmt) == (big, INEXACT)
    assert step(big, big, minus(big, fmt), fmt) == (fmt.inf, OVERFLOW)
    assert step(big, one, 0, fmt) == (big, NONE)


@ALL
def test_step_subnormal_result_underflows_only_when_inexact(fmt):
    half, one = fmt.one - (1 << fmt.fraction_bits), fmt.one
    assert step(fmt.min_normal, half, 0, fmt) == (fmt.min_normal // 2, NONE)
    assert step(fmt.min_normal + 1, half, 0, fmt) == (fmt.min_normal // 2, UNDERFLOW)
    assert step(fmt.min_subnormal, one, fmt.min_subnormal, fmt) == (2, NONE)
    assert step(fmt.min_subnormal, half, 0, fmt) == (0, UNDERFLOW)
    assert step(3, half, 0, fmt) == (2, UNDERFLOW)


# The smallest normal of each format, as an fp32 code. That of cbfloat16, 2^-30, is reached from 2^-30 - 2^-40 on;
# rounded to 10 bits with a larger exponent range, from 2^-30 - 2^-41 on. Numbers between them are tiny, yet end normal.
SMALLEST_NORMAL = {FP16: 0x38800000, CBFLOAT16: 0x30800000, CB16: 0x2B000000}


@pytest.mark.parametrize("fmt", [FP16, CBFLOAT16, CB16], ids=str)
def test_convert_rounding_up_to_smallest_normal_underflows_only_if_tiny_after_rounding(fmt):
    # fp32 has 24 digits: just below a power of two its codes are 2^-24 of it apart.
    min_normal = SMALLEST_NORMAL[fmt]
    assert conversion(min_normal, FP32, fmt) == (fmt.min_normal, NONE)
    quarter = 1 << (24 - fmt.precision - 1)  # of the ulp of the smallest normal, in fp32 codes
    assert conversion(min_normal - quarter, FP32, fmt) == (fmt.min_normal, INEXACT)
    assert conversion(min_normal - quarter - 1, FP32, fmt) == (fmt.min_normal, UNDERFLOW)
    assert conversion(min_normal - 2 * quarter, FP32, fmt) == (fmt.min_normal, UNDERFLOW)
    assert conversion(min_normal - 2 * quarter - 1, FP32, fmt) == (fmt.min_normal - 1, UNDERFLOW)
    assert conversion(min_normal - 4 * quarter, FP32, fmt) == (fmt.min_normal - 1, NONE)


def test_convert_cbfloat16_near_its_smallest_normal_has_these_codes_and_flags():
    assert conversion(0x307FE000, FP32, CBFLOAT16) == (0x0200, INEXACT)
    assert conversion(0x307FDFFF, FP32, CBFLOAT16) == (0x0200, UNDERFLOW)
    assert conversion(0x307FC000, FP32, CBFLOAT16) == (0x0200, UNDERFLOW)
    assert conversion(0x307FBFFF, FP32, CBFLOAT16) == (0x01FF, UNDERFLOW)


def test_convert_bfloat16_near_its_smallest_normal_has_these_codes_and_flags():
    # fp32 is subnormal here as well: 2^-149 apart, and exactly the tie and the codes beside it exist.
    assert conversion(0x007FC000, FP32, BF16) == (0x0080, INEXACT)
    assert conversion(0x007FBFFF, FP32, BF16) == (0x0080, UNDERFLOW)
    assert conversion(0x007F8000, FP32, BF16) == (0x0080, UNDERFLOW)
    assert conversion(0x007F7FFF, FP32, BF16) == (0x007F, UNDERFLOW)


def test_step_into_the_lowest_format_rounding_up_to_smallest_normal_is_not_tiny():
    # Its smallest normal is 2^-147: 15/16 of it is a tie between 7/8 and 1 with 3 digits, 29/32 goes to 7/8.
    lowest = FloatFormat("lowest", 3, 2, bias=148)
    scale = int(encode(2.0**-47, FP32))
    for factor, flags in ((15 / 16, INEXACT), (29 / 32, UNDERFLOW)):
        step = {
            "a": int(encode(factor * 2.0**-100, FP32)),
            "b": scale,
            "acc": 0,
            "operand": FP32,
            "accumulator": lowest,
        }
        assert multiply_accumulate(**step, return_flags=True) == (lowest.min_normal, flags)
        assert reference.multiply_accumulate(**step) == (lowest.min_normal, flags)


@pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
def test_convert_to_float32_is_exact_and_raises_nothing(fmt):
    codes = np.array([code for code in range(2**fmt.width) if code % fmt.sign_mask <= fmt.inf], np.uint16)
    converted, flags = convert(codes, fmt, FP32, return_flags=True)
    assert not flags.any()
    assert np.array_equal(convert(converted, FP32, fmt), codes)


# format, a, b, acc, the right result, the result of an fp32 step followed by a conversion
THROUGH_FLOAT32 = [
    (FP16, 0x3EB1, 0x26F3, 0x3FBC, 0x3FEB, 0x3FEA),
    (FP16, 0x3E2C, 0x1F74, 0x3C72, 0x3C7D, 0x3C7E),
    (BF16, 0x3FF0, 0x3FF8, 0x009E, 0x4069, 0x4068),
    (CBFLOAT16, 0x3F7F, 0x2381, 0x2F47, 0x2F5F, 0x2F60),
    (CBFLOAT16, 0x3F1C, 0x2BDC, 0x3E47, 0x3E49, 0x3E48),
    (CB16, 0x5521, 0x3D84, 0x4CF3, 0x4CF9, 0x4CF8),
]

# format, a, b, acc, the right result, the result of a float64 sum rounded again: a * b lies exactly on a midpoint,
# and acc, which decides, is more than 53 binary digits below it
THROUGH_FLOAT64 = [
    (BF16, 0x3FF0, 0x3FF8, 0x009E, 0x4069, 0x4068),
    (BF16, 0x3FA0, 0x3FFC, 0x80B5, 0x401D, 0x401E),
    (CBFLOAT16, 0x3F00, 0x6E1D, 0x803D, 0x6F2B, 0x6F2C),
    (CBFLOAT16, 0x3E08, 0x6EE0, 0x8052, 0x6EEB, 0x6EEC),
    (CB16, 0x5460, 0x7858, 0x0042, 0x78C9, 0x78C8),
    (CB16, 0x5480, 0x791E, 0x809D, 0x79E5, 0x79E6),
]


def ids(cases):
    return [f"{case[0]}-{case[1]:#x}-{case[2]:#x}-{case[3]:#x}" for case in cases]


def check_right_result_is_nearer(fmt, a, b, acc, right, wrong):
    exact = fraction_of(a, fmt) * fraction_of(b, fmt) + fraction_of(acc, fmt)
    assert abs(fraction_of(right, fmt) - exact) < abs(fraction_of(wrong, fmt) - exact)
    assert int(multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)) == right
    assert reference.multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)[0] == right


@pytest.mark.parametrize("case", THROUGH_FLOAT32, ids=ids(THROUGH_FLOAT32))
def test_step_differs_from_a_float32_step_then_rounded(case):
    fmt, a, b, acc, _, wrong = case
    check_right_result_is_nearer(*case)
    in_float32 = multiply_accumulate(a, b, convert(acc, fmt, FP32), operand=fmt, accumulator=FP32)
    assert int(convert(in_float32, FP32, fmt)) == wrong


@pytest.mark.parametrize("case", THROUGH_FLOAT64, ids=ids(THROUGH_FLOAT64))
def test_step_differs_from_a_float64_sum_then_rounded(case):
    fmt, a, b, acc, _, wrong = case
    check_right_result_is_nearer(*case)
    x, y, z = (float(decode(code, fmt)) for code in (a, b, acc))
    assert Fraction(x * y) == fraction_of(a, fmt) * fraction_of(b, fmt)
    assert int(encode(x * y + z, fmt)) == wrong


@pytest.mark.parametrize("name", ["bfloat16", "cbfloat16", "cb16"])
def test_step_with_a_product_on_a_midpoint_follows_the_sign_of_a_tiny_accumulator(name):
    # (1 + ulp) * 1.5 * 2^k = (1.5 + 1.5 ulp) * 2^k is a midpoint; k puts more than 53 digits between it and acc.
    fmt = format_named(name)
    k = min(fmt.emax - 1, 40)
    a, b = fmt.one + 1, fmt.one + (k << fmt.fraction_bits) + (1 << (fmt.fraction_bits - 1))
    below = b + 1
    for tiny in (1, 2, fmt.min_normal):
        assert k - fmt.emin + fmt.fraction_bits > 53
        assert int(multiply_accumulate(a, b, tiny, operand=fmt, accumulator=fmt)) == below + 1
        assert int(multiply_accumulate(a, b, tiny | fmt.sign_mask, operand=fmt, accumulator=fmt)) == below
    assert int(multiply_accumulate(a, b, 0, operand=fmt, accumulator=fmt)) == below + below % 2


def test_step_near_a_midpoint_in_an_array_is_the_references():
    # Many midpoints at once, with accumulators of every size below: the vector path rounds each of them once.
    rng = np.random.default_rng(13)
    fmt = CBFLOAT16
    a = (fmt.one + rng.integers(0, 512, 3000)).astype(np.uint16)
    b = (fmt.one + (24 << fmt.fraction_bits) + 2 ** rng.integers(0, 9, 3000)).astype(np.uint16)
    acc = (rng.integers(0, fmt.one, 3000) | rng.integers(0, 2, 3000) * fmt.sign_mask).astype(np.uint16)
    got = multiply_accumulate(a, b, acc, operand=fmt, accumulator=fmt)
    for *operands, code in zip(a.tolist(), b.tolist(), acc.tolist(), got.tolist(), strict=True):
        assert reference.multiply_accumulate(*operands, operand=fmt, accumulator=fmt)[0] == code, operands
