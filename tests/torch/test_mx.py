"""Microscaled operands of exact products, against `golden.mx` and `golden.matmul_values`; and that a model learns."""

import numpy as np
import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden import CBFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2
from golden.torch import mx

from ..golden.judges import assert_same_bits
from .oracle import array, normal


def blocks_of(x, element, axis=-1):
    """Blocks by golden.mx of an array whose axis is a multiple of 32."""
    moved = np.moveaxis(x, axis, -1)
    values = golden.mx.dequantize(*golden.mx.quantize(moved, element), element)
    return np.moveaxis(values, -1, axis)


def assert_values(tensor, wanted):
    assert_same_bits(array(tensor).view(np.uint32), np.ascontiguousarray(wanted, np.float32).view(np.uint32))


@pytest.mark.parametrize("element", [FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN], ids=str)
def test_fake_quantize_is_quantize_and_dequantize_along_any_axis(element):
    x = normal(64, 3, 32, seed=1)
    assert_values(mx.fake_quantize(x, element), blocks_of(array(x), element))
    assert_values(mx.fake_quantize(x, element.name, axis=0), blocks_of(array(x), element, 0))
    short = normal(5, 40, seed=2)
    filled = np.zeros((5, 64), np.float32)
    filled[:, :40] = array(short)
    assert_values(mx.fake_quantize(short, element), blocks_of(filled, element)[:, :40])
    wide = mx.fake_quantize(x.to(torch.bfloat16), element)
    assert wide.dtype == torch.bfloat16
    assert_values(wide, blocks_of(array(x.to(torch.bfloat16)), element))


def test_fake_quantize_passes_the_gradient_or_rounds_it():
    x, gradient = normal(4, 64, seed=3, grad=True), normal(4, 64, seed=4)
    mx.fake_quantize(x, FLOAT8_E4M3FN).backward(gradient)
    assert_values(x.grad, array(gradient))
    x.grad = None
    mx.fake_quantize(x, None, gradient_element=FLOAT8_E5M2).backward(gradient)
    assert_values(x.grad, blocks_of(array(gradient), FLOAT8_E5M2))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_linear_and_its_gradients_are_exact_products_of_rounded_operands(level):
    x, weight, bias = normal(6, 64, seed=5, grad=True), normal(32, 64, seed=6, grad=True), normal(32, seed=7, grad=True)
    gradient = normal(6, 32, seed=8)
    with cstorch.precision("cbfloat16", level=level):
        result = mx.linear(x, weight, bias, element=FLOAT4_E2M1FN, gradient_element=FLOAT8_E5M2)
    result.backward(gradient)
    options = {"operand": CBFLOAT16, "level": level, "out": CBFLOAT16}
    left, right = (blocks_of(array(each), FLOAT4_E2M1FN) for each in (x, weight))
    start = golden.quantize(array(bias), CBFLOAT16)
    assert_values(result, golden.matmul_values(left, right.T, initial=start, **options))
    back = blocks_of(array(gradient), FLOAT8_E5M2)
    assert_values(x.grad, golden.matmul_values(back, right, **options))
    assert_values(weight.grad, golden.matmul_values(back.T, left, **options))


def test_model_of_microscaled_layers_learns():
    torch.manual_seed(9)
    first, second = nn.Linear(32, 64), nn.Linear(64, 32)
    x = torch.randn(128, 32)
    target = torch.tanh(x @ torch.randn(32, 32) / 6)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 0.01)
    scaler, losses = cstorch.amp.GradScaler("dynamic"), []
    for _ in range(40):
        with cstorch.precision("cbfloat16", level=1):
            hidden = torch.relu(mx.linear(x, first.weight, first.bias, gradient_element="float8_e5m2"))
            result = mx.linear(hidden, second.weight, second.bias, gradient_element="float8_e5m2")
            loss = ((result.float() - target) ** 2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"element": "e9m9"}, ValueError, "element: got 'e9m9', must be a FloatFormat or one of"),
        ({"element": None, "gradient_element": 8}, TypeError, "gradient_element: got 8, must be a FloatFormat"),
        (
            {"element": "float8_e5m2", "axis": 2},
            ValueError,
            r"axis: got 2, must be -2 to 1 for a tensor of shape",
        ),
        ({"element": "float8_e5m2", "axis": 1.0}, TypeError, "axis: got 1.0, must be an int"),
        ({"element": "float8_e5m2", "block": 0}, ValueError, "block: got 0, must be at least 1"),
        ({"element": "float8_e5m2", "block": "32"}, TypeError, "block: got '32', must be an int"),
    ],
)
def test_bad_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        mx.fake_quantize(torch.ones(2, 2), **options)
    with pytest.raises(TypeError, match=r"x: got a tensor of torch\.float64, must be torch\.float32"):
        mx.fake_quantize(torch.ones(2, 2, dtype=torch.float64), "float8_e5m2")
    with pytest.raises(TypeError, match="element: got None, must be a FloatFormat or the name of one"):
        mx.linear(torch.ones(2, 2), torch.ones(2, 2), element=None)


@pytest.mark.parametrize(
    ("dtype", "nan"), [(torch.float32, 0x7FC00000), (torch.bfloat16, 0x7FC0), (torch.float16, 0x7E00)]
)
def test_fake_quantize_of_a_block_with_a_nan_or_an_infinity_has_the_canonical_nan(dtype, nan):
    for odd in (float("nan"), -float("nan"), float("inf"), -float("inf")):
        x = torch.tensor([1.0, odd, -2.0] + 30 * [3.0]).to(dtype)
        found = mx.fake_quantize(x, FLOAT8_E4M3FN)
        assert set(found[:32].view(torch.int32 if dtype == torch.float32 else torch.int16).tolist()) == {nan}
        assert found[32] == 3
