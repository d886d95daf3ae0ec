"""Specials, signs of zero and flags of NUMERICS section 2, as named cases in both implementations."""

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
    multiply_accumulate,
    reference,
)
from golden.formats import SIXTEEN_BIT_FORMATS, WIDE_FORMATS

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
