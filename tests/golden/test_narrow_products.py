"""Products of operands of 8 bits and fewer, accumulated in wider formats, against the reference and exact integers."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from golden import (
    BF16,
    CB16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    Reduction,
    convert,
    decode,
    dot,
    encode,
    kernels,
    matmul,
    matmul_values,
    multiply_accumulate,
    quantize,
    reference,
)
from golden.formats import NARROW_FORMATS

from .answers import once
from .hosts import host
from .judges import Mpfr, assert_same_bits, boundary_codes, codes_of

ACCUMULATORS = (FP32, FP16, BF16, CBFLOAT16, CB16)
#: A bias that neither float16 nor bfloat16 reaches.
FAR_BELOW = FloatFormat("float8_far_below", 4, 3, bias=146, specials="fn")
OPERANDS = (*NARROW_FORMATS, FloatFormat("float8_e3m4", 3, 4), FAR_BELOW)
EACH = pytest.mark.parametrize("operand", OPERANDS, ids=str)
PATHS = pytest.mark.parametrize("path", kernels.paths())


def any_codes(fmt, shape, seed):
    return np.random.default_rng(seed).integers(0, 1 << fmt.width, shape).astype(np.uint8)


def numbers(fmt, shape, seed):
    """Codes, few of which are infinities or NaNs."""
    codes = any_codes(fmt, shape, seed)
    rare = np.random.default_rng(seed + 1).random(shape) < 0.99
    return np.where(rare & ~fmt.is_finite(codes), codes & 3, codes).astype(np.uint8)


@EACH
def test_step_of_narrow_operands_has_the_references_code_and_flags(operand):
    for number, accumulator in enumerate(ACCUMULATORS):
        a, b = any_codes(operand, 300, number), any_codes(operand, 300, 50 + number)
        acc = np.random.default_rng(number).choice(boundary_codes(accumulator, near=(operand,)), 300)
        # Sums that cancel: the accumulator is the negated product.
        product = multiply_accumulate(a, b, np.zeros(300, acc.dtype), operand=operand, accumulator=accumulator)
        acc[::3] = (product ^ np.asarray(accumulator.sign_mask, acc.dtype))[::3]
        got, flags = multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator, return_flags=True)
        steps = zip(a.tolist(), b.tolist(), acc.tolist(), strict=True)
        wanted = [reference.multiply_accumulate(*step, operand=operand, accumulator=accumulator) for step in steps]
        assert_same_bits(got, np.array([code for code, _ in wanted]), a, b, acc)
        assert_same_bits(flags, np.array([int(raised) for _, raised in wanted]), a, b, acc)
        for path in kernels.paths():
            with kernels.use(path):
                assert_same_bits(multiply_accumulate(a, b, acc, operand=operand, accumulator=accumulator), got, a, b)


@pytest.mark.parametrize("operand", NARROW_FORMATS, ids=str)
def test_product_of_every_pair_of_codes_is_mpfrs_of_ml_dtypes_values(operand):
    codes = np.arange(1 << operand.width, dtype=np.uint8)
    a, b = (grid.ravel() for grid in np.meshgrid(codes, codes))
    with np.errstate(invalid="ignore"):
        x, y = (each.view(host(operand)).astype(np.float64) for each in (a, b))
        exact = x * y  # two factors of at most 4 bits
    zero = np.zeros(len(a), np.uint16)
    got = multiply_accumulate(a, b, zero, operand=operand, accumulator=CBFLOAT16)
    distinct, place = np.unique(exact, return_inverse=True)
    rounded, _ = Mpfr(CBFLOAT16).apply_all("plus", distinct)
    wanted = codes_of(rounded, CBFLOAT16)[place]
    # The accumulator is +0: a product of -0 leaves it.
    assert_same_bits(got, np.where(exact == 0, 0, wanted), a, b)


@PATHS
@EACH
def test_matmul_of_narrow_operands_at_every_level_is_the_references(path, operand):
    a, b = numbers(operand, (3, 40), 60), numbers(operand, (40, 4), 61)
    plans = [Reduction.for_level(level, operand, chunk=7) for level in (0, 1, 2)]
    plans += [Reduction.for_level(level, operand, inner=inner) for level, inner in ((1, FP16), (2, BF16), (2, CB16))]
    for plan in plans:
        wanted = np.array(once(reference.matmul, a.tolist(), b.tolist(), operand=operand, reduction=plan), np.uint32)
        with kernels.use(path):
            assert_same_bits(matmul(a, b, operand=operand, reduction=plan), wanted)
            assert_same_bits(dot(a[:, np.newaxis], b.T, operand=operand, reduction=plan), wanted)
            for out in (operand, FLOAT4_E2M1FN, BF16):
                last = convert(wanted, plan.outer, out)
                assert_same_bits(matmul(a, b, operand=operand, reduction=plan, out=out), last)
                got, flags = dot(a[0], b[:, 0], operand=operand, reduction=plan, out=out, return_flags=True)
                pair = once(reference.dot, a[0].tolist(), b[:, 0].tolist(), operand=operand, reduction=plan, out=out)
                assert (int(got), int(flags)) == pair


@PATHS
@EACH
def test_matmul_values_of_narrow_operands_is_quantize_matmul_and_decode(path, operand):
    rng = np.random.default_rng(62)
    a, b = (rng.normal(size=shape).astype(np.float32) * 2.0**operand.emin * 8 for shape in ((4, 70), (70, 5)))
    a[0, :3] = np.inf, np.nan, 1e9
    for level in (0, 1, 2):
        for out in (None, operand, FP16):
            codes = matmul(encode(a, operand), encode(b, operand), operand=operand, level=level, out=out)
            wanted = decode(codes, out or Reduction.for_level(level, operand).outer)
            with kernels.use(path):
                got = matmul_values(a, b, operand=operand, level=level, out=out)
                assert_same_bits(got.view(np.uint32), wanted.view(np.uint32))


def test_dot_in_float32_of_small_integers_is_the_exact_sum():
    rng = np.random.default_rng(63)
    for operand in (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E4M3FNUZ, FLOAT4_E2M1FN):
        values = rng.integers(-3, 4, (2, 500)).astype(np.float32)
        a, b = encode(values, operand)
        assert float(decode(dot(a, b, operand=operand, level=0), FP32)) == float((values[0] * values[1]).sum())


def test_dot_at_level_one_is_a_chain_of_cbfloat16_in_chunks_joined_in_float32():
    a, b = numbers(FLOAT8_E4M3FN, 70, 64) & 0x77, numbers(FLOAT8_E4M3FN, 70, 66) & 0xF7
    x, y = (each.view(ml_dtypes.float8_e4m3fn).astype(float) for each in (a, b))
    total = Fraction(0)
    for start in range(0, 70, 32):
        partial = Fraction(0)
        for factor, other in zip(x[start : start + 32], y[start : start + 32], strict=True):
            exact = Fraction(factor) * Fraction(other) + partial
            partial = reference.quantize(exact, CBFLOAT16).as_fraction()
        total = reference.quantize(total + partial, FP32).as_fraction()
    assert Fraction(float(decode(dot(a, b, operand=FLOAT8_E4M3FN), FP32))) == total


def test_level_of_narrow_operands_sums_in_cbfloat16_unless_told_otherwise():
    for operand in OPERANDS:
        assert Reduction.for_level(0, operand) == Reduction(FP32, None, FP32)
        assert Reduction.for_level(1, operand) == Reduction(CBFLOAT16, 32, FP32)
        assert Reduction.for_level(2, operand, chunk=5) == Reduction(CBFLOAT16, 5, CBFLOAT16)
        assert Reduction.for_level(2, operand, inner=FP16) == Reduction(FP16, 32, FP16)
    assert Reduction.for_level(1, BF16, inner=CBFLOAT16) == Reduction(CBFLOAT16, 32, FP32)
    with pytest.raises(TypeError, match="inner: got 'float16', must be a FloatFormat"):
        Reduction.for_level(1, FLOAT8_E5M2, inner="float16")
    with pytest.raises(ValueError, match=r"inner: got float8_e4m3fn \(specials 'fn'\), must have specials 'ieee'"):
        Reduction.for_level(2, FLOAT8_E5M2, inner=FLOAT8_E4M3FN)


def test_matmul_of_narrow_codes_of_any_unsigned_dtype_and_stride_is_the_same():
    a, b = numbers(FLOAT8_E4M3FN, (6, 20), 67), numbers(FLOAT8_E4M3FN, (20, 9), 68)
    wanted = matmul(a, b, operand=FLOAT8_E4M3FN)
    sparse = np.zeros((12, 40), np.uint8)
    sparse[::2, ::2] = a
    assert_same_bits(matmul(sparse[::2, ::2], np.asfortranarray(b), operand=FLOAT8_E4M3FN), wanted)
    assert_same_bits(matmul(a.astype(np.uint32), b.astype(np.uint16), operand=FLOAT8_E4M3FN), wanted)
    values = quantize(decode(a, FLOAT8_E4M3FN), FLOAT8_E4M3FN)
    got = matmul_values(values, decode(b, FLOAT8_E4M3FN), operand=FLOAT8_E4M3FN)
    assert_same_bits(got.view(np.uint32), decode(wanted, FP32).view(np.uint32))


def test_two_narrow_products_added_exactly_and_rounded_once_give_other_bits_than_two_steps():
    # docs/extending-lanes.md: why a lane cannot take two products of 8-bit codes in one step.
    rng, count = np.random.default_rng(1), 200_000
    codes = [encode(rng.normal(size=count).astype(np.float32), FLOAT8_E4M3FN) for _ in range(4)]
    acc = encode((rng.normal(size=count) * np.sqrt(32)).astype(np.float32), CBFLOAT16)
    values = [decode(each, FLOAT8_E4M3FN).astype(np.float64) for each in codes]
    steps = acc
    for a, b in (codes[:2], codes[2:]):
        steps = multiply_accumulate(a, b, steps, operand=FLOAT8_E4M3FN, accumulator=CBFLOAT16)
    # Float64 holds each of these sums exactly.
    total = values[0] * values[1] + values[2] * values[3] + decode(acc, CBFLOAT16).astype(np.float64)
    once = encode(total, CBFLOAT16)
    differ = np.flatnonzero(once != steps)
    assert len(differ) == 22_887
    first = differ[0]
    assert [each[first] for each in codes] == [0x2B, 0xAC, 0x2D, 0xBB]
    assert (acc[first], steps[first], once[first]) == (0xC2A7, 0xC300, 0xC2FF)
