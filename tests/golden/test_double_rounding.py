"""Steps that go wrong when the sum is rounded twice: in fp32 first, or in float64 first."""

from fractions import Fraction

import numpy as np
import pytest

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FP16,
    FP32,
    convert,
    decode,
    encode,
    format_named,
    multiply_accumulate,
    reference,
)

from .judges import fraction_of

# format, a, b, acc, the right result, the result of an fp32 step followed by a conversion
THROUGH_FLOAT32 = [
    (FP16, 0x3EB1, 0x26F3, 0x3FBC, 0x3FEB, 0x3FEA),
    (FP16, 0x3E2C, 0x1F74, 0x3C72, 0x3C7D, 0x3C7E),
    (BF16, 0x3FF0, 0x3FF8, 0x009E, 0x4069, 0x4068),
    (CBFLOAT16, 0x3F7F, 0x2381, 0x2F47, 0x2F5F, 0x2F60),
    (CBFLOAT16, 0x3F1C, 0x2BDC, 0x3E47, 0x3E49, 0x3E48),
    (CB16, 0x5521, 0x3D84, 0x4CF3, 0x4CF9, 0x4CF8),
]

# format, a, b, acc, the right result, the result of a float64 sum rounded once more: a * b lies exactly on a midpoint,
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
