"""Recipes of block scales and NVFP4, against the rules that their projects publish, computed here by other means.

ml_dtypes casts to E4M3, midpoints give the elements of E2M1, and powers of two come from the bits of float32. Nothing
here calls the rounding of golden.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FP32, Reduction, mx, reference
from golden.exact_rounding import decode
from golden.exact_steps import fused_step

from .judges import assert_same_bits

E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
MIDPOINTS = (E2M1[1:] + E2M1[:-1]) / 2
MAX = np.float32(np.finfo(np.float32).max)
HOSTS = {FLOAT8_E4M3FN: ml_dtypes.float8_e4m3fn, FLOAT8_E5M2: ml_dtypes.float8_e5m2}
LARGEST = {FLOAT8_E4M3FN: 448.0, FLOAT8_E5M2: 57344.0, FLOAT4_E2M1FN: 6.0}


def e2m1(values):
    """Codes of the nearest numbers, ties to even, saturating; 0 for a NaN."""
    magnitude = np.abs(np.nan_to_num(values.astype(np.float64), nan=0.0))
    below = (magnitude[..., None] > MIDPOINTS).sum(-1)
    at_least = (magnitude[..., None] >= MIDPOINTS).sum(-1)
    code = np.where((below != at_least) & (at_least % 2 == 0), at_least, below)
    return code | np.where(np.isnan(values), 0, np.signbit(values) * 8)


def float8(values, element):
    largest = np.float32(LARGEST[element])
    return np.clip(values, -largest, largest).astype(HOSTS[element]).view(np.uint8)


def tensors(block, seed):
    """Values whose blocks lie at every scale, and at midpoints of scales; zeros, and a block of subnormals."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(400, 4, block)) * 2.0 ** rng.integers(-40, 40, (400, 4, 1))
    values[:40] = rng.normal(size=(40, 4, block))
    values[40] = 0
    values[41, 1] = np.ldexp(rng.integers(1, 9, block), -147)
    values[42, 2] = np.where(np.arange(block) % 2, 6.0, 5.0)
    values[43] = rng.integers(1, 64, (4, block)) * 448 / 64
    values[44, 0, 3] = 3e38
    values[45, :, 0] = 7.0 * 2.0 ** np.arange(4)
    return values.astype(np.float32)


def transformer_engine_nvfp4(values, *, folded):
    """The published rule (quantization_ref_nvfp4.py; with ``folded=False``, arXiv 2509.25149), in float32."""
    one, six = np.float32(1), np.float32(6)
    with np.errstate(all="ignore"):
        encode = np.minimum(np.float32(2688) / np.abs(values).max(), MAX)
        encode = one if encode == 0 else encode
        decode_scale = one / encode
        largest = np.abs(values).max(-1, keepdims=True)
        scale = largest * (encode * (one / six)) if folded else largest / six * encode
        scale = np.clip(np.minimum(scale, MAX), -448, 448).astype(ml_dtypes.float8_e4m3fn)
        factor = np.minimum(one / (scale.astype(np.float32) * decode_scale), MAX)
        scaled = np.clip(values * factor, -six, six)
    return scale.view(np.uint8)[..., 0], e2m1(scaled), decode_scale


NVIDIA = {"nvidia_nvfp4": False, "transformer_engine_nvfp4": True}


@pytest.mark.parametrize("name", NVIDIA)
def test_nvfp4_recipe_is_the_published_rule(name):
    values = tensors(16, 1)
    for part in (*values, values[:40], values[46:60]):
        blocks = mx.quantize(part.reshape(-1, 16), mx.NVFP4, scale=name)
        scales, codes, tensor_scale = transformer_engine_nvfp4(part.reshape(-1, 1, 16), folded=NVIDIA[name])
        assert np.float32(blocks.tensor_scale).view(np.uint32) == np.float32(tensor_scale).view(np.uint32)
        assert_same_bits(blocks.scales, scales, part)
        assert_same_bits(blocks.codes, codes.reshape(-1, 16), part)


def test_nvfp4_recipes_of_one_formula_differ_in_bits():
    values = np.zeros((2, 16), np.float32)
    values[:, 0] = float.fromhex("0x1.06ap-8"), float.fromhex("0x1.8306bep+0")  # a tie of E4M3, but for roundings
    one, other = (mx.quantize(values, "nvfp4", scale=name) for name in NVIDIA)
    assert (one.scales[0, 0], other.scales[0, 0]) == (57, 58)
    assert one.tensor_scale == other.tensor_scale


def test_nvfp4_of_nan_infinity_and_zeros_is_the_recipes():
    values = np.ones((3, 16), np.float32)
    values[1, 5] = np.inf
    blocks = mx.quantize(values, "nvfp4")
    # 448 * 6 / infinity is 0: the tensor is not scaled, and the scale of its block is the largest.
    assert (blocks.tensor_scale, blocks.scales.tolist()) == (1.0, [[0x23], [0x7E], [0x23]])
    assert blocks.codes[1, 5] == 7
    values[1, 5] = np.nan
    blocks = mx.quantize(values, "nvfp4")
    assert np.isnan(blocks.tensor_scale)
    assert set(blocks.scales.ravel().tolist()) == {0x7F}
    assert not blocks.codes.any()
    blocks = mx.quantize(0 * np.ones((2, 16)), "nvfp4")
    assert not blocks.scales.any()
    assert not blocks.codes.any()
    assert float(blocks.tensor_scale) == float(np.float32(1) / MAX)


def triton(values, element, *, up):
    """downcast_to_mxfp_torch of triton_kernels: scales of E8M0 on the bits of a float32 quotient."""
    with np.errstate(all="ignore"):
        largest = np.abs(values).max(-1, keepdims=True)
        power = 2.0 ** np.floor(np.log2(LARGEST[element]))
        quotient = largest / np.float32(LARGEST[element] if up else power)
        bits = quotient.view(np.uint32)
        bits = (bits + np.uint32(0x7FFFFF) if up else bits) & np.uint32(0x7F800000)
        scale = bits.view(np.float32)
        scaled = values * np.where(scale == 0, np.float32(0), np.float32(1) / scale)
    codes = e2m1(scaled) if element == FLOAT4_E2M1FN else float8(scaled, element)
    if element == FLOAT4_E2M1FN:
        codes = np.where(np.isnan(scaled), 7 | np.signbit(values) * 8, codes)
    return (bits >> 23).astype(np.uint8)[..., 0], codes


@pytest.mark.parametrize("name", ["triton_mx_up", "triton_mx_floor"])
@pytest.mark.parametrize("element", LARGEST, ids=str)
def test_triton_recipe_is_the_published_rule(element, name):
    values = tensors(32, 3)
    values[50, 0, 3], values[51, 0, 4] = np.nan, np.inf
    scales, codes = mx.quantize(values, element, scale=name)
    wanted = triton(values, element, up=name.endswith("up"))
    assert_same_bits(scales[..., 0], wanted[0], values)
    if element != FLOAT4_E2M1FN:  # a NaN that 0 times infinity makes has the host's sign
        wanted = wanted[0], np.where(element.is_nan(wanted[1]), element.nan, wanted[1])
    assert_same_bits(codes, wanted[1], values)
    # The recipe rounds the bits of a NaN to a scale that is not a NaN.
    assert scales[50, 0, 0] == (0 if name.endswith("up") else 255)


def test_triton_nvfp4_recipe_is_the_published_rule():
    values = tensors(16, 4)
    values = values[np.abs(values).max((1, 2)) < 2600]
    blocks = mx.quantize(values, "nvfp4", scale="triton_nvfp4")
    scale = np.minimum(np.abs(values).max(-1, keepdims=True) / np.float32(6), 448).astype(ml_dtypes.float8_e4m3fn)
    kept = scale.astype(np.float32)
    with np.errstate(all="ignore"):
        scaled = values * np.where(kept == 0, np.float32(0), np.float32(1) / kept)
    assert blocks.tensor_scale == 1
    assert_same_bits(blocks.scales[..., 0], scale.view(np.uint8)[..., 0], values)
    assert_same_bits(blocks.codes, e2m1(scaled), values)
    given = mx.quantize(values, "nvfp4", scale="triton_nvfp4", tensor_scale=0.25)
    assert_same_bits(given.codes, mx.quantize(values * 4, "nvfp4", scale="triton_nvfp4").codes, values)


@pytest.mark.parametrize("element", HOSTS, ids=str)
def test_transformer_engine_mx_recipe_is_the_published_rule(element):
    values = tensors(32, 5)
    values[50, 0, 3], values[51, 0, 4] = np.nan, np.inf
    scales, codes = mx.quantize(values, element, scale="transformer_engine_mx")
    with np.errstate(all="ignore"):
        product = np.fmax.reduce(np.abs(values), axis=-1) * np.float32(1 / LARGEST[element])
    for at in np.ndindex(product.shape):
        quotient = float(product[at])
        if quotient == np.inf:
            code, factor = 0xFE, 0.0
        else:  # the least power of two that is not below it, from 2^-127 on
            code = next(code for code in range(255) if Fraction(2) ** (code - 127) >= Fraction(quotient))
            factor = 1.0 if code == 0 else 2.0 ** (127 - code)
        assert scales[(*at, 0)] == code
        with np.errstate(all="ignore"):
            wanted = float8(values[at] * np.float32(factor), element)
        nan = wanted & 0x7F > (0x7E if element == FLOAT8_E4M3FN else 0x7C)
        assert np.array_equal(codes[at], np.where(nan, element.nan, wanted))


@pytest.mark.parametrize("element", [FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2], ids=str)
def test_round_up_is_the_least_power_of_two_that_saturates_nothing(element):
    values = tensors(32, 6)
    scales, codes = mx.quantize(values, element, scale="round_up")
    for at in np.ndindex(scales.shape[:-1]):
        largest = Fraction(float(np.abs(values[at]).max()))
        code = next(c for c in range(255) if Fraction(2) ** (c - 127) * Fraction(LARGEST[element]) >= largest)
        assert scales[(*at, 0)] == code
    back = mx.dequantize(scales, codes, element)
    floor = mx.dequantize(*mx.quantize(values, element), element)
    assert not np.array_equal(back, floor)


def test_nvfp4_dequantize_rounds_the_product_of_three_once():
    values = tensors(16, 7)[:40]
    blocks = mx.quantize(values, "nvfp4")
    got = mx.dequantize(blocks.scales, blocks.codes, "nvfp4", tensor_scale=blocks.tensor_scale)
    element = np.where(blocks.codes > 7, -1, 1) * E2M1[blocks.codes & 7]
    scale = blocks.scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    wanted = (element * np.repeat(scale, 16, -1) * np.float64(blocks.tensor_scale)).astype(np.float32)
    assert_same_bits(got.view(np.uint32), wanted.view(np.uint32), blocks.codes)
    assert np.abs(got - values).max() < 0.26 * np.abs(values).max()


@pytest.mark.parametrize("plan", [Reduction(CBFLOAT16, 16, FP32), Reduction(BF16, 8, BF16), Reduction()], ids=str)
def test_nvfp4_dot_is_the_exact_models_steps(plan):
    rng = np.random.default_rng(8)
    a, b = (mx.quantize(rng.normal(size=(6, 48)), "nvfp4", scale=name) for name in NVIDIA)
    initial = np.array([0, 0x8000_0000 if plan.outer == FP32 else 0x8000, plan.outer.one, 0, 1, plan.outer.inf])
    initial = initial.astype(np.uint32 if plan.outer == FP32 else np.uint16)
    got, flags = mx.dot(a, b, element="nvfp4", reduction=plan, initial=initial, return_flags=True)
    assert_same_bits(mx.dot(a, b, element="nvfp4", reduction=plan, initial=initial), got)
    alpha = np.float32(a.tensor_scale) * np.float32(b.tensor_scale)
    for row in range(6):
        total, raised = 0, 0
        for first in range(0, 48, plan.chunk or 16):
            block = first // 16
            scales = [decode(int(each.scales[row, block]), FLOAT8_E4M3FN) for each in (a, b)]
            scale = scales[0].as_fraction() * scales[1].as_fraction()
            partial = 0
            for k in range(first, first + (plan.chunk or 16)):
                x, y = (decode(int(each.codes[row, k]), FLOAT4_E2M1FN) for each in (a, b))
                if plan.is_chain:
                    x = reference.Value(x.kind, x.sign, x.significand * scale, x.exponent)
                    total, flag = fused_step(x, y, decode(total, FP32), FP32)
                else:
                    partial, flag = fused_step(x, y, decode(partial, plan.inner), plan.inner)
                raised |= flag
            if not plan.is_chain:
                factor = reference.Value(x.kind, 0, scale, 0)
                total, flag = fused_step(decode(partial, plan.inner), factor, decode(total, plan.outer), plan.outer)
                raised |= flag
        factor = decode(int(alpha.view(np.uint32)), FP32)
        start = decode(int(initial[row]), plan.outer)
        total, flag = fused_step(decode(total, plan.outer), factor, start, plan.outer)
        assert (int(got[row]), int(flags[row])) == (total, int(raised | flag)), row


def test_stochastic_elements_of_nvfp4_have_the_deterministic_scales():
    values = np.random.default_rng(9).normal(size=(500, 16)).astype(np.float32)
    plain = mx.quantize(values, "nvfp4")
    words = np.random.default_rng(10).integers(0, 1 << 16, values.shape, np.uint32)
    chance = mx.quantize(values, "nvfp4", rounding="stochastic", random=words)
    assert np.array_equal(plain.scales, chance.scales)
    assert 0.2 < (plain.codes != chance.codes).mean() < 0.6
    mean = np.mean(
        [
            mx.dequantize(*mx.quantize(values[:4], "nvfp4", rounding="stochastic", random=each)[:2], "nvfp4")
            for each in np.random.default_rng(11).integers(0, 1 << 16, (2000, 4, 16), np.uint32)
        ],
        axis=0,
    )
    exact = values[:4] / float(mx.quantize(values[:4], "nvfp4").tensor_scale)
    scale = mx.quantize(values[:4], "nvfp4").scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    inside = np.abs(exact) <= 6 * scale
    assert (np.abs(mean - exact) < 0.12 * scale)[inside].all()


def test_recipes_say_whose_they_are():
    assert list(mx.RECIPES) == [recipe.name for recipe in mx.RECIPES.values()]
    assert all(recipe.source and recipe.rule and recipe.specials for recipe in mx.RECIPES.values())


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"element": "nvfp4", "block": 32}, ValueError, "block: got 32, must be 16 for nvfp4"),
        (
            {"element": "nvfp4", "scale": "ocp_floor"},
            ValueError,
            r"scale: got 'ocp_floor', must be one of nvidia_nvfp4",
        ),
        (
            {"element": "float8_e5m2", "scale": "nvidia_nvfp4"},
            ValueError,
            "scale: got 'nvidia_nvfp4', must be one of ocp",
        ),
        ({"element": "float6_e2m3fn", "scale": "triton_mx_up"}, ValueError, r"must be one of ocp_floor, round_up for"),
        ({"element": "nvfp4", "scale": 1}, TypeError, "scale: got 1, must be one of"),
        ({"element": "float8_e5m2", "tensor_scale": 1.0}, ValueError, "tensor_scale: got 1.0, must be None"),
        ({"element": "nvfp4", "tensor_scale": "1"}, TypeError, "tensor_scale: got '1'"),
        ({"element": "nvfp4", "tensor_scale": 0.1}, ValueError, r"tensor_scale: got 0.1, must be a positive number"),
        ({"element": "nvfp4", "tensor_scale": 1e39}, ValueError, r"tensor_scale: got 1e\+39, must be"),
        ({"element": "nvfp4", "tensor_scale": np.nan}, ValueError, r"tensor_scale: got nan, must be a positive number"),
        ({"element": "nvfp4", "tensor_scale": -1.0}, ValueError, r"tensor_scale: got -1.0, must be a positive number"),
    ],
)
def test_quantize_with_a_wrong_recipe_is_named(keywords, error, text):
    with pytest.raises(error, match=text):
        mx.quantize(np.ones((2, 32), np.float32), **keywords)


def test_dot_of_nvfp4_with_other_blocks_is_refused():
    blocks = mx.quantize(np.ones((2, 32)), "nvfp4")
    with pytest.raises(ValueError, match="element: got nvfp4 and float4_e2m1fn, must be nvfp4 for both or for none"):
        mx.dot(blocks, blocks, element=("nvfp4", "float4_e2m1fn"))
    with pytest.raises(ValueError, match="counts: got True, must be False for nvfp4"):
        mx.dot(blocks, blocks, element="nvfp4", counts=True)
    with pytest.raises(TypeError, match="a: got"):
        mx.dot(blocks, blocks, element="float4_e2m1fn")


def test_dot_and_dequantize_of_a_tensor_with_a_nan_are_nan():
    blocks = mx.quantize(np.array([np.nan] + [1.0] * 15), "nvfp4")
    assert np.isnan(blocks.tensor_scale)
    assert mx.dot(blocks, blocks, element="nvfp4") == FP32.nan
    values = mx.dequantize(blocks.scales, blocks.codes, "nvfp4", tensor_scale=blocks.tensor_scale)
    assert np.isnan(values).all()


@pytest.mark.parametrize("length", [5, 32])
def test_blocks_of_nvfp4_of_another_length_are_refused(length):
    scales, codes = np.uint8([0x38]), np.full(length, 2, np.uint8)
    message = f"codes: got blocks of {length}, must be blocks of 16 for nvfp4"
    with pytest.raises(ValueError, match=message):
        mx.dequantize(scales, codes, "nvfp4")
    with pytest.raises(ValueError, match=f"a: {message}"):
        mx.dot((scales, codes), (scales, codes), element="nvfp4")


def test_dot_of_no_blocks_of_nvfp4_is_the_initial_value():
    none = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
    for initial in (0x80000000, 0x7F800001):
        assert mx.dot(none, none, element="nvfp4", initial=np.uint32(initial)) == initial
