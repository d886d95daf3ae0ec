"""Blocks by every recipe and element that `golden.mx` has, to nearest and by random bits, against it as bits."""

import numpy as np
import pytest
import torch

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FloatFormat, Randomness, Rounding
from golden.arrays.randomness import random_words
from golden.mx import NVFP4, RECIPES
from golden.torch import mx
from golden.torch.settings.blocks import Blocks

from .oracle import array, assert_same_tensors, normal
from .test_mx import assert_values

# The compiler makes an instance of torch.autograd.Function, against the advice of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")

ELEMENTS = ("float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
#: Each recipe with each element that it is for.
EVERY = [
    (name, element)
    for name, recipe in RECIPES.items()
    for element in ((NVFP4.name,) if recipe.format else map(str, recipe.elements or ELEMENTS))
]
TENSOR, WEIGHT, GRADIENT = 1, 2, 3
#: The step of a last conversion.
STEP = 2**32 - 1


def words(shape, random, branch):
    """The random bits of the values of a tensor, by NUMERICS section 13."""
    call = (random.call * 2654435761 + branch) % 2**32
    return random_words(shape, Randomness(random.random_bits, random.seed, call))(STEP)


def rounded(x, element, axis=-1, random=None, branch=TENSOR, **options):
    """Blocks by golden.mx along an axis of any length."""
    block = options.pop("block", 16 if element in (NVFP4, "nvfp4") else 32)
    length = x.shape[axis]

    def filled(given):
        moved = np.moveaxis(given, axis, -1)
        return np.pad(moved, [(0, 0)] * (x.ndim - 1) + [(0, -length % block)])

    if random is not None:
        options |= {"rounding": "stochastic", "random_bits": random.random_bits}
        options["random"] = filled(words(x.shape, random, branch))
    scales, codes, *scale = golden.mx.quantize(filled(x), element, block=block, **options)
    values = golden.mx.dequantize(scales, codes, element, tensor_scale=scale[0] if scale else None)
    return np.moveaxis(values[..., :length], -1, axis)


def test_every_recipe_of_golden_mx_is_here_with_its_elements():
    assert {name for name, _ in EVERY} == set(RECIPES)
    assert len(EVERY) == 5 + 5 + 2 + 3 + 3 + 1 + 1 + 1


@pytest.mark.parametrize(("scale", "element"), EVERY)
def test_tensor_and_gradient_are_those_of_the_recipe_along_any_axis(scale, element):
    x, upstream = normal(5, 40, 3, seed=1, scale=3.0, grad=True), normal(5, 40, 3, seed=2, scale=1e-4)
    how = {"gradient_element": element, "scale": scale, "gradient_scale": scale}
    for axis in (1, -1):
        x.grad = None
        result = mx.fake_quantize(x, element, axis=axis, **how)
        result.backward(upstream)
        assert_values(result, rounded(array(x), element, axis, scale=scale))
        assert_values(x.grad, rounded(array(upstream), element, axis, scale=scale))
    narrow = x.detach().to(torch.bfloat16)
    wanted = golden.encode(rounded(array(narrow), element, scale=scale), "bfloat16")
    found = mx.fake_quantize(narrow, element, scale=scale)
    assert found.view(torch.int16).numpy().view(np.uint16).tolist() == wanted.tolist()


@pytest.mark.parametrize(("scale", "element"), EVERY)
def test_linear_and_its_gradients_are_products_of_operands_by_the_recipe(scale, element):
    x, weight, bias = normal(6, 40, seed=5, grad=True), normal(9, 40, seed=6, grad=True), normal(9, seed=7)
    upstream = normal(6, 9, seed=8)
    how = {"element": element, "gradient_element": element, "scale": scale, "gradient_scale": scale}
    with cstorch.precision("cbfloat16", level=1):
        result = mx.linear(x, weight, bias, **how)
    result.backward(upstream)
    options = {"operand": CBFLOAT16, "level": 1, "out": CBFLOAT16}
    left, right = (rounded(array(each), element, scale=scale) for each in (x, weight))
    start = golden.quantize(array(bias), CBFLOAT16)
    back = rounded(array(upstream), element, scale=scale)
    assert_values(result, golden.matmul_values(left, right.T, initial=start, **options))
    assert_values(x.grad, golden.matmul_values(back, right, **options))
    assert_values(weight.grad, golden.matmul_values(back.T, left, **options))


@pytest.mark.parametrize("mode", [mode for mode in Rounding if mode is not Rounding.STOCHASTIC], ids=str)
def test_elements_are_rounded_in_the_mode(mode):
    x, upstream = normal(3, 40, seed=9, grad=True), normal(3, 40, seed=10)
    result = mx.fake_quantize(x, "nvfp4", gradient_element=FLOAT4_E2M1FN, rounding=mode, gradient_rounding=str(mode))
    result.backward(upstream)
    assert_values(result, rounded(array(x), "nvfp4", rounding=mode))
    assert_values(x.grad, rounded(array(upstream), FLOAT4_E2M1FN, rounding=mode))


@pytest.mark.parametrize("element", ["nvfp4", "float4_e2m1fn", "float8_e5m2"])
def test_stochastic_rounding_has_the_bits_of_its_place_in_each_tensor(element):
    random = Randomness(12, 2**40 + 7, 3)
    how = {"gradient_element": element, "rounding": "stochastic", "gradient_rounding": "stochastic", "random": random}
    x, upstream = normal(4, 40, 3, seed=11, grad=True), normal(4, 40, 3, seed=12)
    for axis in (1, -1):
        x.grad = None
        result = mx.fake_quantize(x, element, axis=axis, **how)
        result.backward(upstream)
        assert_values(result, rounded(array(x), element, axis, random))
        assert_values(x.grad, rounded(array(upstream), element, axis, random, GRADIENT))
    # Operands and gradient of a layer that are the same tensor have different bits.
    same = normal(9, 40, seed=13)
    one, other, upstream = same.clone().requires_grad_(), same.clone().requires_grad_(), normal(9, 9, seed=14)
    with cstorch.precision("cbfloat16", level=0):
        result = mx.linear(one, other, element=element, **how)
    result.backward(upstream)
    left, right = (rounded(array(same), element, -1, random, branch) for branch in (TENSOR, WEIGHT))
    back = rounded(array(upstream), element, -1, random, GRADIENT)
    options = {"operand": CBFLOAT16, "level": 0, "out": CBFLOAT16}
    assert (left != right).any()
    assert_values(result, golden.matmul_values(left, right.T, **options))
    assert_values(one.grad, golden.matmul_values(back, right, **options))
    assert_values(other.grad, golden.matmul_values(back.T, left, **options))


@pytest.mark.parametrize(("element", "scale"), [("nvfp4", None), ("float4_e2m1fn", "round_up")])
def test_stochastic_gradient_repeats_differs_by_seed_and_is_right_on_average(element, scale):
    upstream = normal(1, 16, seed=15).expand(4096, 16)

    def gradient(seed):
        x = torch.zeros(4096, 16, requires_grad=True)
        how = {"gradient_scale": scale, "gradient_rounding": "stochastic", "random": Randomness(seed=seed)}
        mx.fake_quantize(x, None, gradient_element=element, **how).backward(upstream)
        return x.grad

    found = gradient(1)
    assert_same_tensors(gradient(1), found)
    assert (gradient(2) != found).any()
    deviation = found.double().std(dim=0)
    assert (deviation > 0).sum() > 12  # all but those that are exact
    assert ((found.double().mean(dim=0) - upstream[0].double()).abs() <= 5 * deviation / 64 + 1e-6).all()
    nearest = torch.from_numpy(rounded(array(upstream), element, scale=scale))
    assert ((nearest[0] - upstream[0]).abs() > 5 * deviation / 64 + 1e-6).any()


def test_stochastic_blocks_in_a_precision_that_draws_take_its_next_number():
    x, weight = normal(3, 32, seed=16), normal(5, 32, seed=17)
    with cstorch.precision("cbfloat16", level=2, rounding="stochastic", seed=4):
        first = mx.fake_quantize(x, "nvfp4", rounding="stochastic")
        second = mx.linear(x, weight, element="nvfp4", rounding="stochastic")
        third = mx.linear(x, weight, element="nvfp4")
    assert_values(first, rounded(array(x), "nvfp4", -1, Randomness(seed=4)))
    options = {"operand": CBFLOAT16, "level": 2, "out": CBFLOAT16, "rounding": "stochastic"}
    number = Randomness(seed=4 + 2**32)
    left, right = rounded(array(x), "nvfp4", -1, number), rounded(array(weight), "nvfp4", -1, number, WEIGHT)
    assert_values(second, golden.matmul_values(left, right.T, seed=4 + 2 * 2**32, **options))
    left, right = (rounded(array(each), "nvfp4") for each in (x, weight))
    assert_values(third, golden.matmul_values(left, right.T, seed=4 + 3 * 2**32, **options))


@pytest.mark.parametrize(("scale", "element"), EVERY)
def test_block_with_a_nan_or_an_infinity_is_nan_in_every_recipe_forward_and_backward(scale, element):
    how = {"gradient_element": element, "scale": scale, "gradient_scale": scale}
    for odd in (float("nan"), float("inf"), -float("inf")):
        x = normal(2, 64, seed=18)
        x[1, 33] = odd
        x.requires_grad_()
        result = mx.fake_quantize(x, element, **how)
        result.backward(x.detach())
        for found in (result, x.grad):
            bits = found.detach().view(torch.int32)
            assert set(bits[1, 32:48].tolist()) == {0x7FC00000}
            whole = element == "nvfp4" and np.isnan(odd) and scale != "triton_nvfp4"  # it has a part in every scale
            assert bool(found[0].isnan().all()) == whole
            assert found[0].isfinite().all() != whole


@pytest.mark.parametrize(
    "given",
    [
        Blocks("float8_e4m3fn"),
        Blocks(NVFP4, rounding="stochastic", random=Randomness(8, 2**63, 5)),
        Blocks("float4_e2m1fn", 2**70, "triton_mx_up", Rounding.TO_ODD),
        Blocks(FloatFormat("my own", 3, 2, 3, "ieee"), 7, rounding="stochastic"),
    ],
    ids=str,
)
def test_line_of_blocks_reads_back(given):
    text = str(given)
    assert Blocks.parse(text) == given
    assert hash(Blocks.parse(text)) == hash(given)
    assert "\n" not in text
    assert text.endswith(("random_bits=8 seed=9223372036854775808 call=5", "random_bits=16 seed=0 call=0")) == (
        given.rounding is Rounding.STOCHASTIC
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (7, TypeError, "text: got 7, must be a string"),
        ("block=8", ValueError, "text: got 'block=8', must have the word element="),
        ("element=nvfp4 size=8", ValueError, "text: got the key 'size', must be one of element, block, scale"),
        ("element=nvfp4 block=x", ValueError, r"text: got block=x \(invalid literal"),
        (
            "element=nvfp4 random_bits=16 seed=0 call=0",
            ValueError,
            "text: got 'element=nvfp4 random_bits=.*, must have rounding=stochastic where it has random bits",
        ),
    ],
)
def test_line_that_is_none_of_blocks_is_an_error(text, error, message):
    with pytest.raises(error, match=message):
        Blocks.parse(text)


BAD = [
    ({"element": "nvfp4", "block": 32}, ValueError, "block: got 32, must be 16 for nvfp4, or left out"),
    ({"element": None, "gradient_element": "nvfp4", "block": 32}, ValueError, "block: got 32, must be 16 for nvfp4"),
    (
        {"element": "nvfp4", "scale": "ocp_floor"},
        ValueError,
        "scale: got 'ocp_floor', must be one of nvidia_nvfp4, transformer_engine_nvfp4, triton_nvfp4 for nvfp4",
    ),
    (
        {"element": "float8_e5m2", "gradient_element": "float8_e5m2", "gradient_scale": "round_upp"},
        ValueError,
        r"^gradient_scale: got 'round_upp', must be one of .* for blocks of float8_e5m2; did you mean round_up\?",
    ),
    (
        {"element": "float6_e3m2fn", "scale": "triton_mx_up"},
        ValueError,
        "scale: got 'triton_mx_up', must be one of ocp",
    ),
    ({"element": "nvfp4", "rounding": "odd"}, ValueError, "^rounding: got 'odd', must be a Rounding or one of"),
    ({"element": "nvfp4", "gradient_rounding": 1}, TypeError, "^gradient_rounding: got 1, must be a Rounding"),
    ({"element": None, "scale": "round_up"}, ValueError, "^scale: got 'round_up' without element, must be left out"),
    (
        {"element": "nvfp4", "gradient_rounding": "up"},
        ValueError,
        "^gradient_rounding: got 'up' without gradient_element, must be left out: nothing is rounded in this way",
    ),
    ({"element": "nvfp4", "random": Randomness()}, ValueError, "^random: got .*, must be None: only a rounding 'stoch"),
    ({"element": "nvfp4", "rounding": "stochastic", "random": 3}, TypeError, "^random: got 3, must be a golden.Random"),
    (
        {"element": "nvfp4", "rounding": "stochastic"},
        ValueError,
        "^random: got None for a rounding 'stochastic', must be a golden.Randomness, another one in every call; in a ",
    ),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_recipe_mode_or_random_bits_is_named(options, error, message):
    with pytest.raises(error, match=message), cstorch.precision("cbfloat16"):
        mx.fake_quantize(torch.ones(2, 32), **options)
    if options["element"] is not None:
        with pytest.raises(error, match=message):
            mx.linear(torch.ones(2, 32), torch.ones(2, 32), **options)


@pytest.mark.parametrize(
    "how",
    [
        {"element": NVFP4, "gradient_element": "nvfp4", "gradient_rounding": Rounding.TO_ODD},
        {"element": FLOAT8_E4M3FN, "scale": "triton_mx_up", "rounding": "up"},
    ],
    ids=["nvfp4", "float8_e4m3fn"],
)
def test_compiled_code_by_a_recipe_has_the_bits_of_eager_code(how):
    def run(x, weight):
        return mx.linear(mx.fake_quantize(x, **how), weight, **how)

    found = []
    for function in (run, torch.compile(run, backend="aot_eager", fullgraph=True)):
        x, weight = normal(6, 40, seed=19, grad=True), normal(5, 40, seed=20, grad=True)
        with cstorch.precision("cbfloat16"):
            result = function(x, weight)
        result.backward(normal(6, 5, seed=21))
        found.append((result, x.grad, weight.grad))
    for one, other in zip(*found, strict=True):
        assert_same_tensors(one, other)


def test_compiled_code_that_rounds_blocks_stochastically_is_refused():
    def run(x):
        return mx.fake_quantize(x, "nvfp4", rounding="stochastic", random=Randomness())

    layer = mx.Linear(32, 4, element="nvfp4", gradient_element="nvfp4", gradient_rounding="stochastic")
    for function in (run, layer):
        with pytest.raises(Exception, match=r"rounding: got 'stochastic' in code that torch.compile makes"):
            torch.compile(function, backend="eager", fullgraph=True)(torch.ones(3, 32))
    assert layer.get_extra_state() == {"calls": 0}
