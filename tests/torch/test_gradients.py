"""Gradients of products: exact products themselves, at the backward level of the forward pass."""

import numpy as np
import pytest
import torch

import golden
import golden.torch as cstorch
from golden.torch.products.functions.gradients import softmax_in_half
from golden.torch.settings.half_type import half_named

from .oracle import NAMES, array, assert_codes, assert_same_tensors, codes, normal, product, sum_of_codes

HALVES = pytest.mark.parametrize("half", NAMES)
LEVELS = pytest.mark.parametrize("bwd", [0, 1, 2])


@HALVES
@LEVELS
def test_linear_gradients_are_exact_products_at_the_backward_level(half, bwd):
    x, weight, bias = normal(70, 9, seed=1, grad=True), normal(50, 9, seed=2, grad=True), normal(50, seed=3, grad=True)
    upstream = normal(70, 50, seed=4)
    fwd = (bwd + 1) % 3
    with cstorch.precision(half, chunk=16), cstorch.pol(fwd_level=fwd, bwd_level=bwd):
        result = cstorch.linear(x, weight, bias)
    result.backward(upstream.to(result.dtype))
    assert_codes(result, product(x, weight.T, half, fwd, 16, bias), half)
    assert_codes(x.grad, product(upstream, weight, half, bwd, 16), half)
    assert_codes(weight.grad, product(upstream.T, x, half, bwd, 16), half)
    assert_codes(bias.grad, sum_of_codes(codes(upstream, half), half), half)


def test_linear_weight_gradient_is_one_reduction_over_all_rows():
    x, weight = normal(2, 5, 7, 6, seed=5, grad=True), normal(4, 6, seed=6, grad=True)
    upstream = normal(2, 5, 7, 4, seed=7)
    with cstorch.precision("cbfloat16", level=1, chunk=16):
        cstorch.linear(x, weight).backward(upstream)
    rows, gradients = x.detach().reshape(70, 6), upstream.reshape(70, 4)
    assert_codes(weight.grad, product(gradients.T, rows, "cbfloat16", 1, 16), "cbfloat16")
    assert_codes(x.grad, product(upstream, weight, "cbfloat16", 1, 16), "cbfloat16")


def test_matmul_gradient_of_a_shared_left_matrix_is_one_reduction_over_batch_then_column():
    x, y = normal(3, 6, seed=8, grad=True), normal(4, 6, 5, seed=9, grad=True)
    upstream = normal(4, 3, 5, seed=10)
    with cstorch.precision("cbfloat16", chunk=8):
        cstorch.matmul(x, y).backward(upstream)
    wide, tall = upstream.movedim(1, 0).reshape(3, 20), y.detach().mT.reshape(20, 6)
    assert_codes(x.grad, product(wide, tall, "cbfloat16", 1, 8), "cbfloat16")
    assert_codes(y.grad, product(x.detach().T, upstream, "cbfloat16", 1, 8), "cbfloat16")


def test_matmul_gradients_of_broadcast_batches_are_summed_in_fp32_and_rounded_once():
    x, y = normal(4, 1, 3, 6, seed=11, grad=True), normal(5, 6, 2, seed=12, grad=True)
    upstream = normal(4, 5, 3, 2, seed=13)
    with cstorch.precision("cbfloat16", level=2):
        cstorch.matmul(x, y).backward(upstream)
    every = product(upstream, y.detach().mT, "cbfloat16", 2)
    assert_codes(x.grad[:, 0], sum_of_codes(every.swapaxes(0, 1), "cbfloat16"), "cbfloat16")
    every = product(x.detach().mT, upstream, "cbfloat16", 2)
    assert_codes(y.grad, sum_of_codes(every, "cbfloat16"), "cbfloat16")


def test_bias_gradient_is_summed_in_order_and_keeps_the_sign_rule_of_zero():
    # 2^24 + 1 + 1 is 2^24 in fp32 and in this order only; a lone -0 is added to the +0 that a reduction starts from.
    upstream = torch.tensor([[2.0**24, -0.0], [1.0, -0.0], [1.0, -0.0], [-(2.0**24), -0.0]])
    bias = torch.zeros(2, requires_grad=True)
    with cstorch.precision("cbfloat16"):
        cstorch.linear(torch.ones(4, 3), torch.ones(2, 3), bias).backward(upstream)
    assert bias.grad.tolist() == [0.0, 0.0]
    assert not bias.grad.signbit().any()


@pytest.mark.parametrize("side", [0, 1])
def test_matmul_with_one_side_that_needs_no_gradient_leaves_it_alone(side):
    pair = [normal(3, 4, seed=14), normal(4, 2, seed=15)]
    pair[side].requires_grad_()
    cstorch.matmul(*pair).sum().backward()
    assert pair[side].grad is not None
    assert pair[1 - side].grad is None


def test_matmul_without_gradients_keeps_no_graph():
    assert cstorch.matmul(normal(2, 3), normal(3, 2)).grad_fn is None
    with torch.no_grad():
        assert cstorch.matmul(normal(2, 3, grad=True), normal(3, 2)).grad_fn is None


@pytest.mark.parametrize("half", NAMES)
def test_gradients_have_the_dtypes_of_their_operands(half):
    x = normal(3, 4, seed=16, grad=True)
    weight = normal(5, 4, seed=17, dtype=torch.bfloat16, grad=True)
    bias = normal(5, seed=18, dtype=torch.float16, grad=True)
    with cstorch.precision(half):
        cstorch.linear(x, weight, bias).sum().backward()
    assert [each.grad.dtype for each in (x, weight, bias)] == [torch.float32, torch.bfloat16, torch.float16]


def test_gradients_of_an_empty_reduction_are_zero():
    x, weight = torch.zeros(0, 3, requires_grad=True), normal(2, 3, seed=19, grad=True)
    cstorch.linear(x, weight).sum().backward()
    assert x.grad.shape == (0, 3)
    assert (weight.grad == 0).all()


def test_backward_runs_at_the_level_of_the_forward_pass_wherever_it_runs():
    upstream = normal(40, 3, seed=20)

    def gradient(around_backward):
        weight = normal(3, 4, seed=21, grad=True)
        with cstorch.precision("bfloat16", level=2):
            result = cstorch.linear(normal(40, 4, seed=22), weight)
        with around_backward:
            result.backward(upstream.to(result.dtype))
        return weight.grad

    wanted = product(upstream.T, normal(40, 4, seed=22), "bfloat16", 2)
    assert_codes(gradient(cstorch.pol(level=0)), wanted, "bfloat16")
    assert_codes(gradient(cstorch.precision("cbfloat16", level=0, chunk=1)), wanted, "bfloat16")
    other = product(upstream.T, normal(40, 4, seed=22), "bfloat16", 0)
    assert (other != wanted).any()


def test_second_derivatives_are_exact_products_too():
    x, y = normal(3, 4, seed=23, grad=True), normal(4, 2, seed=24, grad=True)
    with cstorch.precision("cbfloat16"):
        result = cstorch.matmul(x, y)
    upstream = normal(3, 2, seed=25, grad=True)
    (first,) = torch.autograd.grad(result, x, upstream, create_graph=True)
    outer = normal(3, 4, seed=26)
    of_y, of_upstream = torch.autograd.grad(first, [y, upstream], outer)
    # first = upstream @ y.T
    assert_codes(of_upstream, product(outer, y, "cbfloat16", 1), "cbfloat16")
    assert_codes(of_y, product(outer.T, upstream, "cbfloat16", 1), "cbfloat16")


def test_gradients_of_special_values_are_those_of_the_contract():
    x = torch.tensor([[torch.inf, -0.0, 1e-12], [torch.nan, 65520.0, -3e38]], requires_grad=True)
    weight = torch.tensor([[0.0, -1.0, 1e-12], [2.0, torch.inf, 1e9]], requires_grad=True)
    upstream = torch.tensor([[1.0, -0.0], [torch.inf, 1e-9]])
    with cstorch.precision("cbfloat16", level=2):
        result = cstorch.linear(x, weight)
        result.backward(upstream)
    assert_codes(result, product(x, weight.T, "cbfloat16", 2), "cbfloat16")
    assert_codes(x.grad, product(upstream, weight, "cbfloat16", 2), "cbfloat16")
    assert_codes(weight.grad, product(upstream.T, x, "cbfloat16", 2), "cbfloat16")


def test_gradients_come_near_those_of_float64():
    x, weight = normal(60, 20, seed=27, grad=True), normal(10, 20, seed=28, grad=True)
    wide = [each.detach().double().requires_grad_() for each in (x, weight)]
    with cstorch.precision("cbfloat16", level=0):
        cstorch.linear(x, weight).square().mean().backward()
    torch.nn.functional.linear(*wide).square().mean().backward()
    for got, wanted in zip((x, weight), wide, strict=True):
        error = (got.grad - wanted.grad).abs().max() / wanted.grad.abs().max()
        assert 0 < error < 0.01


@HALVES
def test_softmax_gradient_is_computed_in_fp32_and_rounded_once(half):
    x, upstream = normal(3, 6, seed=29, grad=True), normal(3, 6, seed=30)
    p = softmax_in_half(x, half_named(half))
    fmt = golden.format_named(half)
    assert_codes(p, golden.softmax(codes(x, half), fmt), half)
    p.backward(upstream.to(p.dtype))
    values, gradient = torch.from_numpy(np.array(array(p))), upstream.to(p.dtype).float()
    wanted = values * (gradient - (gradient * values).sum(-1, keepdim=True))
    assert_codes(x.grad, codes(wanted, half), half)


def test_linear_leaves_its_operands_unchanged():
    operands = [normal(3, 4, seed=31), normal(2, 4, seed=32), normal(2, seed=33)]
    copies = [each.clone() for each in operands]
    cstorch.linear(*operands)
    for given, copy in zip(operands, copies, strict=True):
        assert_same_tensors(given, copy)
