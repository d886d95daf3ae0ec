"""DLFloat16, and formats without subnormals (NUMERICS section 13): against IBM's rule, MPFR and the exact reference."""

from fractions import Fraction

import gmpy2
import numpy as np
import pytest

import golden
from golden import (
    CBFLOAT16,
    DLFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Flag,
    FloatFormat,
    Reduction,
    Rounding,
    convert,
    decode,
    encode,
    reference,
)
from golden.exact import Class

from .judges import all_codes, assert_same_bits, boundary_codes

AWAY = Rounding.NEAREST_AWAY
ZEROS = FloatFormat("e5m4_zeros", 5, 4, subnormals=False)
LOW = FloatFormat("e4m2_low", 4, 2, bias=24, specials="merged", subnormals=False, normal_zero_field=True)
FINITE = FloatFormat("e3m2_finite", 3, 2, specials="finite", subnormals=False)
FN = FloatFormat("e4m3_fn_low", 4, 3, specials="fn", subnormals=False, normal_zero_field=True)
SMALL = (ZEROS, LOW, FINITE, FN)
EACH = pytest.mark.parametrize("fmt", SMALL, ids=str)


def ibm_value(code):
    """Value of a code by the formula of Agrawal et al., ARITH 2019: (-1)^s 2^(e - 31) (1 + f / 512)."""
    sign, field, fraction = code >> 15, code >> 9 & 63, code & 511
    if field == fraction == 0:
        return Fraction(0)
    return (-1) ** sign * Fraction(2) ** (field - 31) * (1 + Fraction(fraction, 512))


def ibm_code(bits):
    """Code of float32 bits by the rule of IBM's conversion of NNP-data-type-1 in onnx-mlir, except for a NaN's sign.

    It adds half a last place, and cuts the rest off. Numbers above the largest get the code of all ones. Numbers whose
    exponent is then below -31 become zero, and so does 2^-31, because its code would be the code of zero.
    """
    sign, magnitude = bits >> 31 << 15, bits.astype(np.int64) & 0x7FFFFFFF
    moved = (magnitude + (1 << 13) >> 14) - (127 - 31 << 9)
    code = np.where(moved > 0, moved, 0)
    code = np.where(magnitude > 0x4FFF9FFF, 0x7FFF, code)
    return code | np.where(magnitude > 0x7F800000, 0, sign)


def test_dlfloat16_has_the_limits_that_ibm_publishes():
    # DLF16_MAX_AS_FP32 of zDNN and NINF of its tests; the smallest number of the paper.
    assert float(decode(DLFLOAT16.max_finite, DLFLOAT16)) == 8573157376.0
    assert DLFLOAT16.max_finite == 0x7FFE
    assert (DLFLOAT16.nan, DLFLOAT16.overflow(1)) == (0x7FFF, 0xFFFF)
    assert float(decode(DLFLOAT16.min_normal, DLFLOAT16)) == 2.0**-31 + 2.0**-40 == DLFLOAT16.smallest_normal
    assert DLFLOAT16.bias == 31
    assert DLFLOAT16.emin == -31


def test_dlfloat16_every_code_has_the_value_of_the_formula():
    codes = all_codes(DLFLOAT16)
    values = decode(codes, DLFLOAT16)
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        if code & 0x7FFF == 0x7FFF:
            assert np.isnan(value)
            assert reference.decode(code, DLFLOAT16).kind is Class.SIGNALLING_NAN
        else:
            assert Fraction(value) == ibm_value(code) == reference.decode(code, DLFLOAT16).as_fraction()
    assert np.signbit(values[0x8000])


def float32_codes():
    rng = np.random.default_rng(13)
    near = boundary_codes(FP32, near=(DLFLOAT16,)).astype(np.int64)
    points = np.concatenate([all_codes(DLFLOAT16)[:0x7FFF].astype(np.int64) << 14]) + (96 << 23)
    midpoints = np.concatenate([points + offset for offset in (-1, 0, 1, 0x1FFF, 0x2000, 0x2001)])
    codes = np.concatenate([near, midpoints, midpoints | 1 << 31, rng.integers(0, 1 << 32, 300_000)])
    return codes.astype(np.uint32)


def test_convert_float32_to_dlfloat16_is_ibms_rule():
    codes = float32_codes()
    assert_same_bits(convert(codes, FP32, DLFLOAT16, rounding=AWAY), ibm_code(codes), codes)
    assert_same_bits(encode(codes.view(np.float32), DLFLOAT16, rounding=AWAY), ibm_code(codes), codes)


def test_convert_float32_to_dlfloat16_in_another_mode_is_not_ibms_rule():
    codes = float32_codes()
    assert (convert(codes, FP32, DLFLOAT16) != ibm_code(codes)).any()


def test_convert_float32_to_dlfloat16_to_nearest_even_is_mpfrs_rounding():
    context = gmpy2.context(precision=10, round=gmpy2.RoundToNearest, emin=-(10**6), emax=10**6)
    values = float32_codes()[::16].view(np.float32)
    values = values[np.isfinite(values)]
    for value, code in zip(values.tolist(), encode(values, DLFLOAT16).tolist(), strict=True):
        rounded = float(context.plus(gmpy2.mpfr(value, 53)))
        if abs(rounded) > 8573157376.0:
            assert code & 0x7FFF == 0x7FFF
        elif abs(rounded) < 2.0**-31 + 2.0**-40:
            assert code & 0x7FFF == 0
        else:
            assert ibm_value(code) == Fraction(rounded)
        assert code >> 15 == np.signbit(value)


@pytest.mark.parametrize("mode", [mode for mode in Rounding if mode is not Rounding.STOCHASTIC], ids=str)
def test_dlfloat16_every_number_survives_the_way_through_float32(mode):
    codes = all_codes(DLFLOAT16)[:0x7FFF]
    assert_same_bits(convert(convert(codes, DLFLOAT16, FP32), FP32, DLFLOAT16, rounding=mode), codes, codes)


@pytest.mark.turns
@pytest.mark.parametrize("destination", [FP32, FP16], ids=str)
def test_convert_every_dlfloat16_code_is_the_references(destination):
    codes = all_codes(DLFLOAT16)
    wanted = [reference.convert(code, DLFLOAT16, destination) for code in codes.tolist()]
    got, flags = convert(codes, DLFLOAT16, destination, return_flags=True)
    assert_same_bits(got, np.array([code for code, _ in wanted]), codes)
    assert_same_bits(flags, np.array([int(raised) for _, raised in wanted]), codes)


def test_dlfloat16_of_infinity_and_nan_is_one_code_with_flags():
    given = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32)
    codes, flags = convert(given, FP32, DLFLOAT16, return_flags=True)
    assert codes.tolist() == [0x7FFF, 0xFFFF, 0x7FFF, 0x7FFF, 0x7FFF]
    overflow = int(Flag.OVERFLOW | Flag.INEXACT)
    assert flags.tolist() == [overflow, overflow, int(Flag.INVALID), int(Flag.INVALID), int(Flag.INVALID)]
    back, flags = convert(codes, DLFLOAT16, FP32, return_flags=True)
    assert set(back.tolist()) == {0x7FC00000}
    assert set(flags.tolist()) == {int(Flag.INVALID)}


@pytest.mark.parametrize("mode", list(Rounding), ids=str)
@pytest.mark.parametrize("overflow", ["special", "saturate"])
@EACH
def test_convert_into_small_formats_without_subnormals_is_the_references(fmt, overflow, mode):
    for source in (FLOAT8_E5M2, FLOAT8_E4M3FN, *SMALL, FP16):
        codes = all_codes(source)[:: 1 if source.width <= 10 else 17]
        random = np.random.default_rng(3).integers(0, 8, len(codes), np.uint32)
        chance = mode is Rounding.STOCHASTIC
        options = {"rounding": mode, "overflow": overflow, "random_bits": 3}
        got, flags = convert(codes, source, fmt, return_flags=True, random=random if chance else None, **options)
        for code, word, bits, raised in zip(*(each.tolist() for each in (codes, random, got, flags)), strict=True):
            wanted = reference.convert(code, source, fmt, random=word if chance else None, **options)
            assert (bits, raised) == (wanted[0], int(wanted[1])), (source, hex(code))


def test_format_without_subnormals_reads_and_writes_zeros_of_either_sign():
    assert decode(np.arange(16, dtype=np.uint16), ZEROS).tolist() == [0.0] * 16
    assert encode([2.0**-14, 2.0**-14 * 0.96875, -(2.0**-15)], ZEROS).tolist() == [0x10, 0x00, 0x200]
    # Rounded with an unbounded exponent, this is the smallest normal number.
    assert encode(2.0**-14 * (1 - 2.0**-6), ZEROS) == 0x10
    assert (ZEROS.min_subnormal, ZEROS.min_normal) == (16, 16)


def test_format_holds_only_what_it_has_numbers_for():
    assert FP32.holds(DLFLOAT16)
    assert not DLFLOAT16.holds(CBFLOAT16)
    assert not CBFLOAT16.holds(DLFLOAT16)
    assert not FloatFormat("e5m2_zeros", 5, 2, subnormals=False).holds(FLOAT8_E5M2)
    assert FloatFormat("e6m3_zeros", 6, 3, subnormals=False).holds(FLOAT8_E5M2)
    # 2^-31 is a power of two that DLFloat16 has no code for.
    lone = FloatFormat("e2m1_lone", 2, 1, bias=32, subnormals=False)
    assert lone.smallest_normal == 2.0**-31
    assert not DLFLOAT16.holds(lone)


@pytest.mark.parametrize("operand", [DLFLOAT16, ZEROS, LOW], ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_dot_of_operands_without_subnormals_is_the_references(operand, level):
    rng = np.random.default_rng(level)
    a, b = rng.integers(0, 1 << operand.width, (2, 60, 9)).astype(np.uint16)
    reduction = Reduction.for_level(level, operand, chunk=4, inner=CBFLOAT16)
    options = {"operand": operand, "reduction": reduction, "out": DLFLOAT16}
    codes, flags = golden.dot(a, b, return_flags=True, **options)
    assert_same_bits(golden.dot(a, b, **options), codes, a)
    for x, y, code, raised in zip(a.tolist(), b.tolist(), codes.tolist(), flags.tolist(), strict=True):
        wanted = reference.dot(x, y, **options)
        assert (code, raised) == (wanted[0], int(wanted[1]))


def test_sum_in_a_format_without_subnormals_is_the_references_on_every_back_end():
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 1 << 15, (2, 200, 12)).astype(np.uint16) % (20 << 4)
    reduction = Reduction(ZEROS, 4, ZEROS)
    wanted = [
        reference.dot(x, y, operand=ZEROS, reduction=reduction)[0] for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert_same_bits(golden.dot(a, b, operand=ZEROS, reduction=reduction), np.array(wanted), a)
    acc = rng.integers(0, 1 << 9, 200).astype(np.uint16)
    got = golden.multiply_accumulate(a[:, 0], b[:, 0], acc, operand=ZEROS, accumulator=ZEROS)
    steps = zip(a[:, 0].tolist(), b[:, 0].tolist(), acc.tolist(), strict=True)
    exact = [reference.multiply_accumulate(*each, operand=ZEROS, accumulator=ZEROS)[0] for each in steps]
    assert_same_bits(got, np.array(exact), acc)


def test_levels_of_dlfloat16_sum_in_cbfloat16():
    assert Reduction.for_level(2, DLFLOAT16) == Reduction(CBFLOAT16, 32, CBFLOAT16)
    with pytest.raises(ValueError, match=r"inner: got dlfloat16.*specials 'ieee'"):
        Reduction(DLFLOAT16, 32, FP32)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_reduction_with_a_format_without_subnormals_has_a_text(fmt):
    reduction = Reduction(CBFLOAT16, 32, FP32, operand=fmt)
    assert Reduction.parse(str(reduction)) == reduction
    assert (":normal" if fmt.normal_zero_field else ":zeros") in str(reduction)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"subnormals": 0}, TypeError, "subnormals: got 0, must be True or False"),
        ({"normal_zero_field": "yes"}, TypeError, "normal_zero_field: got 'yes'"),
        ({"normal_zero_field": True}, ValueError, "normal_zero_field: got True.*give subnormals=False"),
        ({"subnormals": False, "specials": "fnuz"}, ValueError, "subnormals: got False.*no -0"),
    ],
)
def test_format_with_a_wrong_property_is_named(wrong, error, text):
    with pytest.raises(error, match=text):
        FloatFormat("wrong", 4, 3, **wrong)
