"""scaled_dot_product_attention: exact products around the softmax of NUMERICS section 6."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden import reference

from .oracle import NAMES, array, assert_codes, assert_same_tensors, codes, normal, product

LEVELS = pytest.mark.parametrize("level", [0, 1, 2])
HALVES = pytest.mark.parametrize("half", NAMES)


def softmax_by_contract(scores, half, level):
    """Codes: in 16 bits at level 2 and at level 1 with cbfloat16, on exact integers; else fp32, rounded once."""
    fmt = golden.format_named(half)
    if level == 2 or (level == 1 and half == "cbfloat16"):
        rows = codes(scores, half).reshape(-1, scores.shape[-1]).tolist()
        return np.array([reference.softmax(row, fmt) for row in rows]).reshape(scores.shape)
    return codes(torch.softmax(scores, -1), half)


def values(wanted, half):
    return torch.from_numpy(golden.decode(wanted.astype(np.uint16), half))


def attention_by_contract(q, k, v, half, level, scale, mask=0.0):
    scores = values(product(q, k.mT, half, level), half) * scale + mask
    return product(values(softmax_by_contract(scores, half, level), half), v, half, level)


@HALVES
@LEVELS
def test_attention_is_exact_products_around_the_softmax_of_the_contract(half, level):
    q, k, v = normal(2, 3, 4, 8, seed=1), normal(2, 3, 5, 8, seed=2), normal(2, 3, 5, 6, seed=3)
    with cstorch.precision(half, level):
        got = cstorch.scaled_dot_product_attention(q, k, v)
    assert_codes(got, attention_by_contract(q, k, v, half, level, 1 / math.sqrt(8)), half)


@LEVELS
def test_attention_takes_masks_and_scale(level):
    q, k, v = normal(2, 4, 8, seed=4), normal(2, 5, 8, seed=5), normal(2, 5, 6, seed=6)
    added = normal(4, 5, seed=7)
    allowed = torch.tensor([[1, 1, 0, 1, 0]] * 4, dtype=torch.bool)
    hidden = torch.zeros(4, 5).masked_fill(~allowed, -torch.inf)
    triangle = torch.zeros(4, 5).masked_fill(~torch.ones(4, 5, dtype=torch.bool).tril(), -torch.inf)
    with cstorch.precision("cbfloat16", level):
        for given, mask in (
            ({"attn_mask": added}, added),
            ({"attn_mask": allowed}, hidden),
            ({"attn_mask": hidden}, hidden),
            ({"is_causal": True}, triangle),
        ):
            got = cstorch.scaled_dot_product_attention(q, k, v, scale=0.3, **given)
            assert_codes(got, attention_by_contract(q, k, v, "cbfloat16", level, 0.3, mask), "cbfloat16")
            assert (got - F.scaled_dot_product_attention(q, k, v, scale=0.3, **given)).abs().max() < 0.05


@LEVELS
def test_attention_gradients_are_exact_products_around_an_fp32_softmax_gradient(level):
    q, k, v = (normal(3, 8, seed=seed, grad=True) for seed in (8, 9, 10))
    upstream = normal(3, 8, seed=11)
    with cstorch.precision("cbfloat16", level):
        cstorch.scaled_dot_product_attention(q, k, v, scale=0.5).backward(upstream)
    half = "cbfloat16"
    scores = values(product(q, k.mT, half, level), half) * 0.5
    p = values(softmax_by_contract(scores, half, level), half)
    assert_codes(v.grad, product(p.T, upstream, half, level), half)
    grad_p = values(product(upstream, v.mT, half, level), half)
    if level == 0:
        leaf = scores.clone().requires_grad_()
        torch.softmax(leaf, -1).backward(grad_p)
        grad_scores = leaf.grad
    else:
        grad_scores = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        grad_scores = values(codes(grad_scores, half), half)
    grad_product = grad_scores * 0.5
    assert_codes(q.grad, product(grad_product, k, half, level), half)
    assert_codes(k.grad, product(q.detach().T, grad_product, half, level).T, half)


@LEVELS
def test_attention_row_that_a_mask_hides_gives_zeros_and_no_nan_in_gradients(level):
    q, k, v = (normal(3, 4, seed=seed, grad=True) for seed in (12, 13, 14))
    allowed = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=torch.bool)
    for mask in (allowed, torch.zeros(3, 3).masked_fill(~allowed, -torch.inf)):
        with cstorch.precision("cbfloat16", level):
            got = cstorch.scaled_dot_product_attention(q, k, v, mask)
        assert (got[1] == 0).all()
        assert (got[0] != 0).any()
        for gradient in torch.autograd.grad(got.sum(), [q, k, v]):
            assert gradient.isfinite().all()
            assert (gradient != 0).any()


def test_attention_dropout_drops_weights_and_scales_the_others():
    q, k, v = torch.zeros(1, 4), torch.zeros(1000, 4), torch.ones(1000, 1)
    torch.manual_seed(0)
    with cstorch.precision("cbfloat16", level=0):
        got = cstorch.scaled_dot_product_attention(q, k, v, dropout_p=0.25)
        assert cstorch.scaled_dot_product_attention(q, k, v, dropout_p=1.0).item() == 0
    assert got.item() != 1.0
    assert abs(got.item() - 1.0) < 0.1


def test_attention_with_shared_heads_repeats_them():
    q, k, v = normal(2, 4, 3, 8, seed=15), normal(2, 2, 5, 8, seed=16), normal(2, 2, 5, 8, seed=17)
    with cstorch.precision("cbfloat16"):
        got = cstorch.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        repeated = [each.repeat_interleave(2, 1) for each in (k, v)]
        assert_same_tensors(got, cstorch.scaled_dot_product_attention(q, *repeated))


def test_attention_softmax_in_16_bits_is_not_the_one_in_fp32():
    q, k, v = normal(4, 8, seed=18), normal(64, 8, seed=19), normal(64, 8, seed=20)
    with cstorch.precision("cbfloat16", level=2):
        got = cstorch.scaled_dot_product_attention(q, k, v)
    with cstorch.precision("cbfloat16", level=2):
        scores = cstorch.matmul(q, k.T) / math.sqrt(8)
        other = cstorch.matmul(torch.softmax(scores, -1), v)
    assert (array(got) != array(other)).any()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"is_causal": True, "attn_mask": torch.zeros(2, 2)}, ValueError, r"^is_causal: got True beside attn_mask"),
        ({"dropout_p": 1.5}, ValueError, r"^dropout_p: got 1.5, must be from 0 to 1"),
        ({"key": torch.ones(2, 2, 4).double()}, TypeError, r"^key: got a tensor of torch.float64"),
        ({"enable_gqa": True, "key": torch.ones(3, 2, 4)}, ValueError, r"^key: got 3 heads, must divide the 2 heads"),
    ],
)
def test_attention_of_bad_arguments_names_them(given, error, message):
    operands = {"query": torch.ones(2, 2, 4), "key": torch.ones(2, 2, 4), "value": torch.ones(2, 2, 4)}
    with pytest.raises(error, match=message):
        cstorch.scaled_dot_product_attention(**(operands | given))
