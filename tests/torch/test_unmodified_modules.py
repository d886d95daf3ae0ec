"""Modules of PyTorch inside a precision context, against the same layers written with golden.torch's own functions."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import golden
import golden.torch as cstorch

from .oracle import array, assert_codes, assert_same_tensors, normal

HALF = "cbfloat16"


def bits_of(model, x, *, half=HALF, level=1):
    """Result and gradients of a model in a context."""
    model.zero_grad()
    with cstorch.precision(half, level):
        result = model(x)
        result = result[0] if isinstance(result, tuple) else result
        result.float().square().mean().backward()
    return [result, *(parameter.grad for parameter in model.parameters())]


def assert_same(got, wanted):
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert_same_tensors(one, other)


class Explicit(torch.nn.Module):
    """A model whose products are the explicit ones of golden.torch, sharing parameters with the unmodified one."""

    def __init__(self, model, forward):
        super().__init__()
        self.model, self.forward_of = model, forward

    def forward(self, x):
        return self.forward_of(self.model, x)


def attend(attention, x):
    """Self-attention as nn.MultiheadAttention computes it, product by product."""
    batch, length, width = x.shape
    heads = attention.num_heads
    packed = cstorch.linear(x.transpose(0, 1), attention.in_proj_weight, attention.in_proj_bias)
    q, k, v = (
        part.reshape(length, batch * heads, width // heads).transpose(0, 1).reshape(batch, heads, length, -1)
        for part in packed.chunk(3, -1)
    )
    mixed = cstorch.scaled_dot_product_attention(q, k, v)
    rows = mixed.permute(2, 0, 1, 3).reshape(length * batch, width)
    result = cstorch.linear(rows, attention.out_proj.weight, attention.out_proj.bias)
    return result.view(length, batch, width).transpose(0, 1)


def encoder_layer(layer, x):
    x = layer.norm1(x + attend(layer.self_attn, x))
    hidden = F.relu(cstorch.linear(x, layer.linear1.weight, layer.linear1.bias))
    return layer.norm2(x + cstorch.linear(hidden, layer.linear2.weight, layer.linear2.bias))


MODELS = {
    "linear": (
        lambda: torch.nn.Linear(12, 7),
        lambda m, x: cstorch.linear(x, m.weight, m.bias),
        (3, 5, 12),
    ),
    "conv1d": (
        lambda: torch.nn.Conv1d(4, 6, 3, padding=1),
        lambda m, x: cstorch.conv1d(x, m.weight, m.bias, padding=1),
        (2, 4, 9),
    ),
    "conv2d": (
        lambda: torch.nn.Conv2d(4, 6, 3, stride=2, padding="valid", groups=2),
        lambda m, x: cstorch.conv2d(x, m.weight, m.bias, stride=2, groups=2),
        (2, 4, 7, 7),
    ),
    "conv2d_reflect": (
        lambda: torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
        lambda m, x: cstorch.conv2d(F.pad(x, [1] * 4, mode="reflect"), m.weight, m.bias),
        (1, 2, 5, 5),
    ),
    "encoder_layer": (
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        encoder_layer,
        (2, 5, 8),
    ),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_precision_runs_the_products_of_unmodified_modules_exactly(name, level, training):
    build, forward, shape = MODELS[name]
    torch.manual_seed(1)
    model = build().train(training)
    x = normal(*shape, seed=2)
    assert_same(bits_of(model, x, level=level), bits_of(Explicit(model, forward), x, level=level))
    with torch.no_grad(), cstorch.precision(HALF, level):  # where PyTorch would take its fast path
        inside = model(x)
    assert_same_tensors(inside, bits_of(model, x, level=level)[0])
    assert (inside != model(x)).any()  # and PyTorch's own products would be noticed


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_precision_runs_multihead_attention_exactly(training, need_weights):
    torch.manual_seed(3)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x = normal(2, 5, 8, seed=4)
    with torch.no_grad(), cstorch.precision("bfloat16", level=1):
        got, weights = attention(x, x, x, need_weights=need_weights)
        wanted = attend(attention, x)
    if not need_weights:
        assert weights is None
        assert_same_tensors(got, wanted)
    else:  # scaled before the product, not after: other roundings, the same exact products
        with torch.no_grad(), cstorch.precision("bfloat16", level=1):
            packed = cstorch.linear(x.transpose(0, 1), attention.in_proj_weight, attention.in_proj_bias)
            q, k, v = (part.reshape(5, 4, 4).transpose(0, 1) for part in packed.chunk(3, -1))
            weights = torch.softmax(cstorch.bmm(q * math.sqrt(1.0 / 4), k.mT).float(), -1).bfloat16()
            mixed = cstorch.bmm(weights, v).transpose(0, 1).reshape(10, 8)
            rows = cstorch.linear(mixed, attention.out_proj.weight, attention.out_proj.bias)
        assert_same_tensors(got, rows.view(5, 2, 8).transpose(0, 1))


def test_precision_runs_a_whole_transformer_without_products_of_pytorch():
    calls = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(func.name())
            return func(*args, **(kwargs or {}))

    torch.manual_seed(5)
    model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    source, target = normal(2, 5, 8, seed=6), normal(2, 4, 8, seed=7)
    for training in (True, False):
        model.train(training)
        with Watch(), cstorch.precision(HALF):
            model(source, target).square().mean().backward()
    products = "mm bmm addmm baddbmm linear convolution matmul native_multi_head scaled_dot transformer"
    assert not {name for name in calls if name.removeprefix("aten::").lstrip("_").startswith(tuple(products.split()))}
    assert calls.count("cbfloat::matrix_product") > 40
    with Watch():
        model(source, target)
    assert {"aten::addmm", "aten::bmm"} & set(calls)  # the watch would have seen them


@pytest.mark.parametrize("reentrant", [True, False])
def test_precision_holds_in_a_checkpoint_whose_backward_runs_inside(reentrant):
    layer = torch.nn.Sequential(torch.nn.Linear(20, 9), torch.nn.ReLU(), torch.nn.Linear(9, 4))
    x = normal(6, 20, seed=8, grad=True)
    wanted = bits_of(layer, x)
    wanted.append(x.grad.clone())
    x.grad = None
    got = bits_of(Explicit(layer, lambda model, x: checkpoint(model, x, use_reentrant=reentrant)), x)
    assert_same([*got, x.grad], wanted)


@pytest.mark.parametrize(
    ("half", "level"), [("cbfloat16", 0), ("cbfloat16", 1), ("cbfloat16", 2), ("bfloat16", 1), ("bfloat16", 2)]
)
@pytest.mark.parametrize("by", ["context", "pol of a pass", "pol"])
def test_multihead_attention_runs_the_softmax_of_its_level(half, level, by):
    torch.manual_seed(8)
    layer, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), normal(2, 7, 8, seed=9, scale=4.0)
    scope = cstorch.pol(fwd_level=level, bwd_level=0) if by == "pol of a pass" else cstorch.pol(level=level)
    is_16_bit = level == 2 or (level == 1 and half == "cbfloat16")
    with torch.no_grad(), cstorch.precision(half, level if by == "context" else (level + 1) % 3):
        if by == "context":
            weights = layer(x, x, x, average_attn_weights=False)[1]
        else:
            weights = scope(layer)(x, x, x, average_attn_weights=False)[1]
        with scope:
            packed = cstorch.linear(x.transpose(0, 1), layer.in_proj_weight, layer.in_proj_bias)
            q, k = (part.reshape(7, 4, 4).transpose(0, 1) for part in packed.chunk(3, -1)[:2])
            scores = cstorch.bmm(q * math.sqrt(1.0 / 4), k.mT)
    codes = golden.encode(array(scores), half)
    in_fp32 = golden.encode(array(torch.softmax(scores.float(), -1)), half)
    in_16_bits = golden.softmax(codes, half)
    assert (in_16_bits != in_fp32).any()
    assert_codes(weights.reshape(4, 7, 7), in_16_bits if is_16_bit else in_fp32, half)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_pol_on_attention_decides_the_level_of_its_softmax_and_of_its_products(level):
    x = normal(2, 6, 8, seed=10, scale=4.0, grad=True)
    results = []
    for context, scope in ((level, None), ((level + 1) % 3, cstorch.pol(level=level))):
        function = F.scaled_dot_product_attention if scope is None else scope(F.scaled_dot_product_attention)
        with cstorch.precision(HALF, context):
            result = function(x, x, x)
        results.append([result, *torch.autograd.grad(result.sum(), x)])
    assert_same(*results)


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="this PyTorch does not have it")
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_linear_cross_entropy_in_chunks_is_a_linear_layer_and_a_loss(reduction):
    x, weight, bias = (normal(*shape, seed=seed).requires_grad_() for seed, shape in enumerate([(6, 5), (7, 5), (7,)]))
    labels = torch.arange(6)
    options = torch.nn.LinearCrossEntropyOptions()
    with cstorch.precision(HALF, 2) as context:
        got = F.linear_cross_entropy(x, weight, labels, linear_bias=bias, reduction=reduction, options=options)
        wanted = F.cross_entropy(cstorch.linear(x, weight, bias), labels, reduction=reduction)
        assert_same_tensors(got, wanted)
        gradients = [torch.autograd.grad(each.sum(), (x, weight, bias)) for each in (got, wanted)]
    assert_same(*gradients)
    assert not context.unseen_products
    plain = F.linear_cross_entropy(x, weight, labels, linear_bias=bias, reduction=reduction, options=options)
    assert (plain != got).any()
