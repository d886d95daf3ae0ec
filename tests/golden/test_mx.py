"""Microscaling against gfloat's blocks, ml_dtypes' scales and elements, and exact integers."""

import math

import gfloat
import gfloat.formats
import ml_dtypes
import numpy as np
import pytest

from golden import (
    BF16,
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Flag,
    Reduction,
    Rounding,
    accumulators,
    decode,
    exact_mx,
    kernels,
    mx,
    reference,
)
from golden.exact import Class, Value

from .hosts import GFLOAT_MODES, host
from .judges import assert_same_bits

OF_GFLOAT = {
    FLOAT8_E4M3FN: gfloat.formats.format_info_mxfp8_e4m3,
    FLOAT8_E5M2: gfloat.formats.format_info_mxfp8_e5m2,
    FLOAT6_E2M3FN: gfloat.formats.format_info_mxfp6_e2m3,
    FLOAT6_E3M2FN: gfloat.formats.format_info_mxfp6_e3m2,
    FLOAT4_E2M1FN: gfloat.formats.format_info_mxfp4_e2m1,
}
EACH = pytest.mark.parametrize("element", OF_GFLOAT, ids=str)
PLANS = (
    Reduction(FP32, None, FP32),
    Reduction(CBFLOAT16, 32, FP32),
    Reduction(CBFLOAT16, 8, CBFLOAT16),
    Reduction(FP16, 16, BF16),
)


def blocks_of_values(seed):
    """Float32 blocks of every size: close to each other and far apart, zeros, subnormals, the largest numbers."""
    rng = np.random.default_rng(seed)
    blocks = rng.normal(size=(60, 32)) * 2.0 ** rng.integers(-30, 30, (60, 1))
    blocks[:20] *= 2.0 ** rng.integers(-8, 8, (20, 32))
    blocks[20] = 0
    blocks[21, 1:] = 0
    blocks[22] = 2.0**127 * rng.uniform(-1.9, 1.9, 32)
    blocks[23] = 2.0**-149 * rng.integers(-9, 9, 32)
    blocks[24] = np.ldexp(rng.integers(-4, 5, 32), -130)
    blocks[25] = -0.0
    blocks[26, :3] = 2.0**5, np.nextafter(np.float32(2.0**6), 0), -(2.0**5)
    return blocks.astype(np.float32)


def any_blocks(element, shape, seed, *, scales=(100, 150)):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << element.width, shape).astype(np.uint8)
    codes = np.where(element.is_finite(codes) | (rng.random(shape) < 0.01), codes, np.uint8(1)).astype(np.uint8)
    return rng.integers(*scales, (*shape[:-1], shape[-1] // 32)).astype(np.uint8), codes


def in_blocks(scales, codes):
    """One row of scales and codes as the exact model takes it."""
    return [(int(scale), block.tolist()) for scale, block in zip(scales, np.split(codes, len(scales)), strict=True)]


@pytest.mark.parametrize("mode", GFLOAT_MODES, ids=str)
@EACH
def test_quantize_and_dequantize_are_gfloats_block(element, mode):
    values = blocks_of_values(1)
    scales, codes = mx.quantize(values, element, rounding=mode)
    got = mx.dequantize(scales, codes, element)
    for block, values_there in zip(values, got, strict=True):
        wanted = gfloat.quantize_block(
            OF_GFLOAT[element], block.astype(np.float64), gfloat.compute_scale_amax, GFLOAT_MODES[mode]
        )
        np.testing.assert_array_equal(values_there.astype(np.float64), wanted)
        assert (np.signbit(values_there) == np.signbit(wanted)).all()


@EACH
def test_quantize_is_the_exact_models_in_every_deterministic_mode(element):
    values = blocks_of_values(2)
    values[3, 4], values[4, 0], values[5, 31] = np.nan, np.inf, -np.inf
    for mode in ("nearest_even", "to_odd", "down", "nearest_away"):
        scales, codes = mx.quantize(values, element, rounding=mode)
        for block, scale, there in zip(values.view(np.uint32).tolist(), scales[:, 0], codes, strict=True):
            exact = [reference.decode(code, FP32) for code in block]
            assert exact_mx.quantize(exact, element, rounding=mode) == (scale, there.tolist())
        assert scales[3:6, 0].tolist() == [mx.SCALE_NAN] * 3
        assert not codes[3:6].any()


@EACH
def test_dequantize_is_the_product_of_ml_dtypes_scale_and_element(element):
    scales, codes = any_blocks(element, (300, 64), 3, scales=(0, 256))
    x = codes.view(host(element)).astype(np.float64)
    scale = scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = (x * np.repeat(scale, 32, axis=-1)).astype(np.float32)
    wanted = np.where(np.isnan(wanted), np.float32(np.nan), wanted)
    got = mx.dequantize(scales, codes, element)
    assert_same_bits(got.view(np.uint32), wanted.view(np.uint32), codes)
    for row in range(0, 300, 37):
        first = exact_mx.dequantize(int(scales[row, 0]), codes[row, :32].tolist(), element)
        for value, number in zip(first, x[row, :32] * scale[row, 0], strict=True):
            assert value.is_nan == np.isnan(number)
            assert value.kind is not Class.FINITE or float(value.as_fraction()) == number


@pytest.mark.parametrize("plan", PLANS, ids=str)
@EACH
def test_dot_is_the_exact_models_code_and_flags(element, plan):
    a, b = any_blocks(element, (7, 96), 4), any_blocks(element, (7, 96), 5)
    a[0][1, 1], a[0][2], b[0][2] = mx.SCALE_NAN, 250, 253
    initial = np.array([0, plan.outer.sign_mask, plan.outer.one, 0, 1, plan.outer.inf, 0], np.uint32)
    for out in (None, BF16, FLOAT8_E4M3FN):
        got, flags = mx.dot(a, b, element=element, reduction=plan, initial=initial, out=out, return_flags=True)
        for row in range(7):
            pair = (in_blocks(scales[row], codes[row]) for scales, codes in (a, b))
            wanted = exact_mx.dot(*pair, element=element, reduction=plan, initial=int(initial[row]), out=out)
            assert (int(got[row]), int(flags[row])) == wanted, row
        for path in kernels.paths():
            with kernels.use(path):
                assert_same_bits(mx.dot(a, b, element=element, reduction=plan, initial=initial, out=out), got)


def test_dot_of_small_integers_is_the_sum_at_every_level():
    rng = np.random.default_rng(6)
    x, y = rng.integers(-4, 5, (2, 3, 1, 128)).astype(np.float32)
    a, b = mx.quantize(x, FLOAT6_E2M3FN), mx.quantize(np.swapaxes(y, 0, 1), FLOAT8_E5M2)
    wanted = (x * np.swapaxes(y, 0, 1)).sum(axis=-1)
    for level in (0, 1, 2):
        got = mx.dot(a, b, element=("float6_e2m3fn", "float8_e5m2"), level=level, out="float32")
        np.testing.assert_array_equal(decode(got, "float32"), wanted)


def test_dot_scales_a_partial_sum_by_one_fused_step():
    a = np.uint8([127 - 10]), np.full(32, 0x38, np.uint8)  # ones
    b = np.uint8([127]), np.full(32, 0x39, np.uint8)  # 1.125
    code = mx.dot(a, b, element=FLOAT8_E4M3FN, reduction=Reduction(FP16, 32, FP32))
    assert float(decode(code, FP32)) == 36 * 2.0**-10
    # 2^-16 * 2^-16 * 32 = 2^-27 is not a value of float16, and the scale 2^27 comes too late for its chain.
    tiny = np.uint8([127 + 20]), np.full(32, 1, np.uint8)
    assert mx.dot(tiny, tiny, element=FLOAT8_E5M2, reduction=Reduction(FP16, 32, FP32)) == 0
    code = mx.dot(tiny, tiny, element=FLOAT8_E5M2, reduction=Reduction(BF16, 32, FP32))
    assert float(decode(code, FP32)) == 32 * 2.0**-32 * 2.0**40
    # The sum of 448 * 448 does not fit float16 either, for any scale.
    top = np.uint8([127 - 20]), np.full(32, 0x7E, np.uint8)
    code, flags = mx.dot(top, top, element=FLOAT8_E4M3FN, reduction=Reduction(FP16, 32, FP32), return_flags=True)
    assert (float(decode(code, FP32)), int(flags)) == (np.inf, int(Flag.OVERFLOW | Flag.INEXACT))


def test_blocks_of_one_number_scale_each_by_itself():
    values = np.array([1.5, -3e20, 2.0**-100, 0.0], np.float32)
    scales, codes = mx.quantize(values, FLOAT8_E4M3FN, block=1)
    assert scales.shape == codes.shape == (4,)
    for place in range(4):
        alone = mx.quantize(values[place : place + 1], FLOAT8_E4M3FN, block=1)
        assert (alone[0].item(), alone[1].item()) == (scales[place], codes[place])
    assert mx.dequantize(scales, codes, FLOAT8_E4M3FN)[0] == 1.5


def test_blocks_of_another_length_and_any_axes():
    values = np.random.default_rng(7).normal(size=(2, 3, 48)).astype(np.float32)
    scales, codes = mx.quantize(values, FLOAT4_E2M1FN, block=16)
    assert (scales.shape, codes.shape, scales.dtype, codes.dtype) == ((2, 3, 3), (2, 3, 48), np.uint8, np.uint8)
    one = mx.quantize(values[1, 2], "float4_e2m1fn", block=16)
    np.testing.assert_array_equal(one[0], scales[1, 2])
    np.testing.assert_array_equal(one[1], codes[1, 2])
    assert mx.dot((scales[:, :1], codes[:, :1]), (scales, codes), element=FLOAT4_E2M1FN).shape == (2, 3)
    assert mx.dequantize(scales, codes, FLOAT4_E2M1FN).shape == values.shape
    empty = mx.quantize(np.zeros((2, 0)), FLOAT4_E2M1FN)
    assert mx.dequantize(*empty, FLOAT4_E2M1FN).shape == (2, 0)
    assert mx.dot(empty, empty, element=FLOAT4_E2M1FN, initial=np.uint32(7)).tolist() == [7, 7]


def test_quantize_stochastic_rounds_scaled_values_by_the_words():
    values = np.full(32, 1.3, np.float32)
    random = np.arange(32, dtype=np.uint8) * 8
    _, codes = mx.quantize(values, FLOAT4_E2M1FN, rounding="stochastic", random=random, random_bits=8)
    # 1.3 / 2^-2 = 5.2 lies between 4 and 6, three fifths above.
    assert (codes == 7).sum() == (0.6 * 256 // 1 + random >= 256).sum()
    assert set(codes.tolist()) == {6, 7}


def test_double_precision_beyond_float32_is_clamped():
    scales, codes = mx.quantize(np.full(32, 1e300), FLOAT8_E4M3FN)
    assert (scales.tolist(), set(codes.tolist())) == ([254], {0x7E})
    scales, codes = mx.quantize(np.full(32, 5e-324), FLOAT8_E4M3FN, rounding="up")
    assert (scales.tolist(), set(codes.tolist())) == ([0], {1})


def as_value(number):
    """The exact value of a finite double."""
    fraction, exponent = math.frexp(abs(number))
    return Value(Class.FINITE, int(math.copysign(1, number) < 0), int(fraction * 2**53), exponent - 53)


@EACH
def test_quantize_of_doubles_far_below_their_block_keeps_their_signs_in_every_mode(element):
    for largest in (1.0, -1e300, 5e-324):
        block = [largest, -1e-300, 1e-300, -5e-324, 5e-324, -0.0, 0.0, -(2.0**-800), 2.0**-801, -(2.0**-801)]
        for mode in set(Rounding) - {Rounding.STOCHASTIC}:
            scales, codes = mx.quantize(block, element, block=len(block), rounding=mode)
            wanted = exact_mx.quantize([as_value(number) for number in block], element, rounding=mode)
            assert (scales[0], codes.tolist()) == wanted, (largest, mode)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: mx.quantize(np.zeros(33), FLOAT8_E5M2),
            ValueError,
            r"values: got shape \(33,\), .* of block=32",
        ),
        (
            lambda: mx.quantize(1.0, FLOAT8_E5M2),
            ValueError,
            r"values: got shape \(\), must have a multiple of block=32",
        ),
        (lambda: mx.quantize(np.zeros(32), FLOAT8_E5M2, block=0), ValueError, "block: got 0, must be at least 1"),
        (lambda: mx.quantize(np.zeros(32), FLOAT8_E5M2, block=8.0), TypeError, "block: got 8.0, must be an int"),
        (lambda: mx.quantize(np.zeros(32), "e9m9"), ValueError, "element: got 'e9m9', must be a FloatFormat or one"),
        (
            lambda: mx.dequantize(np.zeros(1, np.int64), np.zeros(32, np.uint8), FLOAT8_E5M2),
            TypeError,
            "scales: got an array of int64, must be uint8 codes of float8_e8m0fnu",
        ),
        (
            lambda: mx.dequantize(np.zeros(3, np.uint8), np.zeros(32, np.uint8), FLOAT8_E5M2),
            ValueError,
            r"scales, codes: got shapes \(3,\) and \(32,\), must be \(..., K / block\) and",
        ),
        (
            lambda: mx.dot(np.zeros(32), (np.zeros(1, np.uint8), np.zeros(32, np.uint8)), element=FLOAT8_E5M2),
            TypeError,
            "(?s)a: got array.*, must be a tuple of scales and codes",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_dot_of_blocks_that_do_not_fit_names_them():
    one = np.zeros(1, np.uint8), np.zeros(32, np.uint8)
    two = np.zeros(2, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(ValueError, match="a, b: got 1 blocks of 32 and 2 of 32, must be equal"):
        mx.dot(one, two, element=FLOAT8_E5M2)
    for chunk in (None, 5, 64):
        with pytest.raises(ValueError, match=f"reduction: got a chunk of {chunk}, must divide the block of 32"):
            mx.dot(one, one, element=FLOAT8_E5M2, reduction=Reduction(FP16, chunk, FP32))
    with pytest.raises(TypeError, match="reduction: got 'fp16', must be a Reduction or None"):
        mx.dot(one, one, element=FLOAT8_E5M2, reduction="fp16")
    with pytest.raises(ValueError, match="element: got 3 formats, must be one, or two"):
        mx.dot(one, one, element=(FLOAT8_E5M2,) * 3)
    with pytest.raises(ValueError, match=r"initial: got shape \(2,\), must broadcast to the result's shape \(\)"):
        mx.dot(one, one, element=FLOAT8_E5M2, initial=np.zeros(2, np.uint32))


def test_exact_quantize_of_a_value_that_is_no_number_gives_the_scale_nan():
    assert exact_mx.quantize([Value(Class.QUIET_NAN), Value(Class.FINITE, 0, 1)], FLOAT8_E5M2) == (255, [0, 0])


def test_quantize_of_a_signalling_nan_gives_the_scale_nan_and_no_warning():
    for bits in (0x7F800001, 0xFFBFFFFF):
        scales, codes = mx.quantize(np.uint32([bits, 0x3F800000]).view(np.float32), "float8_e4m3fn", block=2)
        assert (scales.tolist(), codes.tolist()) == ([255], [0, 0])


@pytest.mark.parametrize(
    "other",
    [
        {"rounding": "up"},
        {"out": FP16},
        {"operand": FLOAT8_E5M2},
        {"accumulator": accumulators["amd_cdna3_fp8"]},
    ],
    ids=lambda other: next(iter(other)),
)
def test_dot_of_blocks_with_a_reduction_that_says_more_raises_and_does_not_ignore_it(other):
    one = mx.quantize([1.0] * 32, FLOAT8_E5M2)
    formats = {} if "accumulator" in other else {"inner": FP16, "chunk": 32, "outer": FP32}
    with pytest.raises(ValueError, match=r"reduction: got .*must have inner, chunk and outer alone"):
        mx.dot(one, one, element=FLOAT8_E5M2, reduction=Reduction(**formats, **other))
