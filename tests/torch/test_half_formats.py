"""Half types beyond the three of PyTorch and Cerebras: cb16 and any format of 16 bits, carried by float32."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden import CB16, CBFLOAT16, FP16, FloatFormat, Reduction, kernels
from golden.lines import format_text
from golden.torch.settings.reductions import format_of

from ..golden.judges import assert_same_bits
from .oracle import assert_same_tensors, normal

FORMATS = [CB16, FloatFormat("e4m11", 4, 11), FloatFormat("seven and eight", 7, 8, bias=100), FloatFormat("fp16", 6, 9)]
OF_AMD = FloatFormat("float8_e4m3b11fnuz", 4, 3, 11, specials="fnuz")
EACH = pytest.mark.parametrize("fmt", FORMATS, ids=str)


def exact(a, b, fmt, level, initial=None):
    outer = Reduction.for_level(level, fmt).outer
    x, y = (golden.encode(each.detach().numpy(), fmt) for each in (a, b))
    start = None if initial is None else golden.encode(golden.quantize(initial.detach().numpy(), fmt), outer)
    return golden.decode(golden.matmul(x, y, operand=fmt, level=level, chunk=4, initial=start, out=fmt), fmt)


def assert_values(got, wanted):
    assert got.dtype == torch.float32
    assert_same_bits(got.detach().numpy().view(np.uint32), np.ascontiguousarray(wanted).view(np.uint32))


@EACH
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("path", ["auto", "numpy"])
def test_half_type_of_any_format_has_exact_products_and_gradients(fmt, level, path):
    scale = 2.0 ** ((fmt.emin + fmt.emax) // 4)
    x, weight = normal(5, 9, seed=1, scale=scale, grad=True), normal(4, 9, seed=2, scale=scale, grad=True)
    bias, upstream = normal(4, seed=3, scale=scale), normal(5, 4, seed=4)
    with kernels.use(path), cstorch.precision(fmt, level, chunk=4):
        result = F.linear(x, weight, bias)
        result.backward(upstream)
        deep = F.conv1d(x[None], normal(5, 1, 3, seed=5, scale=scale), groups=5)
        kernel = normal(5, 1, 3, seed=5, scale=scale)[2]
    assert_values(result, exact(x, weight.T, fmt, level, bias))
    assert_values(x.grad, exact(upstream, weight, fmt, level))
    assert_values(weight.grad, exact(upstream.T, x, fmt, level))
    assert_values(deep[0, 2:3], exact(kernel, x[2].detach().unfold(0, 3, 1).T, fmt, level))


@EACH
@pytest.mark.parametrize("level", [1, 2])
def test_attention_of_another_format_has_its_softmax_in_16_bits_at_level_2_alone(fmt, level):
    q, k, v = (normal(1, 6, 8, seed=seed, scale=2.0 ** ((fmt.emin + fmt.emax) // 4)) for seed in (6, 7, 8))
    with cstorch.precision(fmt, level, chunk=4):
        got = F.scaled_dot_product_attention(q, k, v, scale=1.0)
    scores = exact(q[0], k[0].T, fmt, level)
    if level == 2:
        weights = golden.decode(golden.softmax(golden.encode(scores, fmt), fmt), fmt)
    else:
        weights = golden.quantize(torch.softmax(torch.from_numpy(scores), -1).numpy(), fmt)
    assert_values(got[0], exact(torch.from_numpy(weights), v[0], fmt, level))


def test_set_half_dtype_takes_names_and_formats():
    assert cstorch.set_half_dtype("cb16") is torch.float32
    assert cstorch.get_half_dtype_str() == "cb16"
    assert cstorch.set_half_dtype(FP16) is torch.float16
    assert cstorch.set_half_dtype(CBFLOAT16, proxy=torch.float16) is torch.float16
    assert cstorch.set_half_dtype(FORMATS[1]) is torch.float32
    assert cstorch.get_half_dtype_str() == "e4m11"
    assert not cstorch.is_cbfloat16_tensor(torch.ones(2))
    x = normal(3, 4, seed=9)
    assert_values(cstorch.matmul(x, x.T), exact(x, x.T, FORMATS[1], 1))
    with cstorch.MixedPrecision(fp16_type="cb16", loss_scaling_factor="dynamic").autocast():
        assert cstorch.get_half_dtype_str() == "cb16"
        assert_same_tensors(torch.full((1, 1), 2.0**20) @ torch.full((1, 1), 2.0), torch.full((1, 1), torch.inf))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((FloatFormat("e4m7", 4, 7),), r"^value: got FloatFormat\(.*\), must be .* a FloatFormat of 16 bits"),
        ((FloatFormat("no infinity", 6, 9, specials="fn"),), r"a FloatFormat of 16 bits with infinities"),
        (("cb16", torch.float16), r"^proxy: got torch.float16 for cb16, must be torch.float32"),
        ((FP16, torch.float32), r"^proxy: got torch.float32 for float16, .* must be None"),
    ],
)
def test_set_half_dtype_of_another_width_or_proxy_names_it(given, message):
    with pytest.raises(ValueError, match=message):
        cstorch.set_half_dtype(*given)


@pytest.mark.parametrize("fmt", [*golden.FORMATS, *FORMATS, FloatFormat("a b c", 5, 10, bias=-3), OF_AMD], ids=str)
def test_text_of_a_format_names_it_again(fmt):
    assert format_of(format_text(fmt)) == fmt
