"""einsum and its kin: the product of the contract behind every way to write it."""

import pytest
import torch

import golden.torch as cstorch

from .oracle import assert_codes, assert_same_tensors, normal, product

HALF = "cbfloat16"


@pytest.fixture(autouse=True)
def cbfloat16_in_chunks_of_8():
    with cstorch.precision(HALF, chunk=8):
        yield


EQUATIONS = [
    ("ik,kj->ij", (3, 9), (9, 4)),
    ("ik,kj", (3, 9), (9, 4)),
    ("kj,ik", (9, 4), (3, 9)),  # its result is ij
    ("ki,jk->ji", (9, 3), (4, 9)),
    ("bik,bkj->bij", (2, 3, 9), (2, 9, 4)),
    ("bik,kj->jib", (2, 3, 9), (9, 4)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 9), (2, 2, 4, 9)),
    ("i,j->ij", (3,), (4,)),
    ("i,i->", (9,), (9,)),
    ("i,i->i", (9,), (9,)),
    ("ijk,jkl->il", (3, 2, 5), (2, 5, 4)),
    ("...ik,...kj->...ij", (2, 1, 3, 9), (4, 9, 5)),
    ("...k,kj", (2, 3, 9), (9, 4)),
    ("ab...,b...->a...", (2, 3, 4), (3, 4)),
    ("iik,kj->ij", (3, 3, 9), (9, 4)),
    ("ikx,kj->ij", (3, 9, 2), (9, 4)),
    ("bik,bkj->bij", (1, 3, 9), (2, 9, 4)),
    ("ik, kj -> i j", (3, 9), (9, 4)),
    ("ik,kj->ij", (0, 9), (9, 4)),
    ("ik,kj->ij", (3, 0), (0, 4)),
]


@pytest.mark.parametrize(("equation", "left", "right"), EQUATIONS, ids=str)
def test_einsum_sums_what_pytorch_sums(equation, left, right):
    # Small integers: every order of summation is exact.
    a = torch.arange(torch.Size(left).numel()).reshape(left).fmod(5.0)
    b = torch.arange(torch.Size(right).numel()).reshape(right).fmod(3.0)
    with cstorch.precision(enabled=False):
        wanted = torch.einsum(equation, a, b)
    assert_same_tensors(cstorch.einsum(equation, a, b), wanted)
    assert_same_tensors(cstorch.einsum(equation, [a, b]), wanted)


def test_einsum_is_the_product_of_the_contract_with_its_gradients():
    a, b = normal(3, 4, 20, seed=1, grad=True), normal(20, 5, seed=2, grad=True)
    result = cstorch.einsum("bik,kj->bij", a, b)
    assert_codes(result, product(a, b, HALF, 1, 8), HALF)
    upstream = normal(3, 4, 5, seed=3)
    result.backward(upstream)
    assert_codes(a.grad, product(upstream, b.T, HALF, 1, 8), HALF)
    rows = a.detach().reshape(12, 20)
    assert_codes(b.grad, product(rows.T, upstream.reshape(12, 5), HALF, 1, 8), HALF)


def test_einsum_sums_several_axes_as_one_k_in_the_order_of_the_left_operand():
    a, b = normal(3, 4, 5, seed=4), normal(5, 4, 2, seed=5)
    wanted = product(a.reshape(3, 20), b.movedim(0, 1).reshape(20, 2), HALF, 1, 8)
    assert_codes(cstorch.einsum("ijk,kjl->il", a, b), wanted, HALF)


def test_einsum_of_three_operands_runs_from_left_to_right():
    a, b, c = normal(3, 9, seed=6), normal(9, 10, seed=7), normal(10, 2, seed=8)
    wanted = cstorch.matmul(cstorch.matmul(a, b), c)
    assert_same_tensors(cstorch.einsum("ij,jk,kl->il", a, b, c), wanted)
    assert (wanted != cstorch.matmul(a, cstorch.matmul(b, c))).any()


def test_einsum_of_one_operand_is_pytorchs():
    a = normal(3, 3, seed=9)
    assert_same_tensors(cstorch.einsum("ii->i", a), a.diagonal())


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ik,kj,jl->il", r"^equation: got 'ik,kj,jl->il' with 2 operands|^equation: .* must have 2 as given"),
        ("i,kj->ij", r"^equation: got 'i,kj->ij', in which 'i' names 1 axes, must name 2"),
        ("ik,kj->iz", r"^equation: .* must have every label of its result once"),
        ("ik,kj->ii", r"^equation: .* must have every label of its result once"),
        ("i1,1j->ij", r"^equation: got 'i1,1j->ij', must consist of letters"),
        ("ik,ij->kj", r"^operands: got lengths 3 and 9 for axis 'i', must be equal, or 1"),
    ],
)
def test_einsum_of_a_bad_equation_says_what_is_wrong(equation, message):
    with pytest.raises(ValueError, match=message):
        cstorch.einsum(equation, torch.ones(3, 9), torch.ones(9, 4))


def test_einsum_of_float64_names_the_operand():
    with pytest.raises(TypeError, match=r"^operand 1: got a tensor of torch.float64"):
        cstorch.einsum("i,i", torch.ones(2), torch.ones(2).double())
