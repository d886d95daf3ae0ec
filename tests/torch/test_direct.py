"""Small products: straight from the tensors' memory, with few calls on the way, and the bits of golden's functions."""

import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden import kernels
from golden.torch.products.operators import direct
from golden.torch.products.operators import registered as operators
from golden.torch.settings.half_type import half_named
from golden.torch.settings.plan import plan_of
from golden.torch.settings.scopes import NEAREST_EVEN, scopes

from .oracle import array, assert_codes, assert_same_tensors, normal, product


def line_at(half, level, chunk):
    """Return a product as operators take it."""
    return str(plan_of(half_named(half), level, level, chunk, NEAREST_EVEN).reduction)


COMPILED = pytest.mark.skipif(len(kernels.paths()) == 1, reason="no compiled library")
BASE = normal(12, 14, seed=1)
LEFT = {
    "matrix": BASE[:4, :6],
    "transposed": BASE[:6, :4].T,
    "reversed and sparse": BASE.flip(1)[::3, ::2][:, :6],
    "broadcast": BASE[:1, :6].expand(4, 6),
    "rows of a batch": BASE[:8, :6].contiguous().reshape(2, 4, 6),
    "one row": BASE[:1, :6],
}
INITIAL = {
    "none": None,
    "row": BASE[0, :5],
    "number": torch.tensor(0.1),
    "one number": BASE[0, :1],
    "matrix": normal(4, 5, seed=2).T.contiguous().T,
}


@COMPILED
@pytest.mark.parametrize("half", ["float16", "bfloat16", "cbfloat16"])
@pytest.mark.parametrize("name", LEFT)
def test_direct_product_is_that_of_golden(half, name):
    a, b = LEFT[name], BASE.T[3:9, 2:12:2]
    for level, dtype in ((0, torch.float32), (1, torch.bfloat16), (2, torch.float16)):
        x, y = a.to(dtype), b.to(dtype)
        for kind, initial in INITIAL.items():
            got = direct.matrix_product(x, y, initial, line_at(half, level, 4), torch.float32)
            served = not (kind == "matrix" and a.shape != (4, 6))
            assert (got is not None) == served, kind
            if served:
                assert_codes(got, product(x, y, half, level, 4, initial), half)


@COMPILED
def test_direct_product_leaves_other_operands_to_golden():
    a, b = normal(4, 6, seed=3), normal(6, 5, seed=4)
    given = line_at("cbfloat16", 1, 32), torch.float32
    assert direct.matrix_product(a, b, None, *given) is not None
    for x, y, initial in (
        (torch._neg_view(a), b, None),
        (a, torch._neg_view(b), None),
        (a, b, torch._neg_view(b[0])),
        (a, b[:, :0], None),
        (a[:, :0], b[:0], None),
        (a.expand(3, 4, 6), b, None),
        (a, b.expand(2, 6, 5), None),
        (a, b, b[:1]),
    ):
        assert direct.matrix_product(x, y, initial, *given) is None
    with kernels.use("numpy"):
        assert direct.matrix_product(a, b, None, *given) is None
    with cstorch.precision("cbfloat16"):
        assert_same_tensors(cstorch.matmul(torch._neg_view(a), b), cstorch.matmul(-a, b))
        assert_same_tensors(cstorch.matmul(a.expand(3, 4, 6), b)[2], cstorch.matmul(a, b))


@COMPILED
@pytest.mark.parametrize("path", kernels.paths()[:-1])
@pytest.mark.parametrize(("half", "dtype"), [("float16", torch.float16), ("bfloat16", torch.bfloat16)])
def test_direct_product_takes_and_gives_codes_beside_values(path, half, dtype):
    a, b, bias = normal(9, 70, seed=10), normal(33, 70, seed=11).T, normal(33, seed=12)
    a[0, :3] = torch.tensor([torch.nan, torch.inf, -0.0])
    for x, y in ((a.to(dtype), b), (a, b.to(dtype)), (a.to(dtype), b.to(dtype)), (b.T.to(dtype), a.T)):
        initial = bias if y.shape[1] == 33 else None
        for level in (0, 1, 2):
            with kernels.use(path):
                got = direct.matrix_product(x, y, initial, line_at(half, level, 4), dtype)
            assert got.dtype == dtype
            assert_codes(got, product(x, y, half, level, 4, initial), half)


@COMPILED
def test_direct_product_takes_batches_of_any_strides():
    a, b = normal(3, 7, 2, 6, seed=13).transpose(1, 2), normal(2, 3, 6, 7, seed=14).permute(1, 0, 3, 2)
    for x, y in ((a, b.mT[..., :5]), (a.expand(3, 2, 7, 6), b[:1].expand(3, 2, 7, 6).mT)):
        got = direct.matrix_product(x, y, None, line_at("cbfloat16", 1, 4), torch.float32)
        assert_codes(got, product(x, y, "cbfloat16", 1, 4), "cbfloat16")


@COMPILED
def test_direct_product_gives_the_canonical_nan_of_bfloat16():
    got = direct.matrix_product(
        torch.full((2, 1), torch.inf), torch.zeros(1, 3), None, line_at("bfloat16", 1, 32), torch.bfloat16
    )
    assert (got.view(torch.int16) == 0x7FC0).all()


@COMPILED
def test_direct_product_without_memory_says_so(monkeypatch):
    class Failing:
        def cbfloat_multiply(self, _):
            return 1

    monkeypatch.setattr(direct, "active", lambda: (Failing(), 0, 1))
    with pytest.raises(MemoryError, match=r"no memory for the product of shapes \(2, 1\) and \(1, 3\)"):
        direct.matrix_product(torch.ones(2, 1), torch.ones(1, 3), None, line_at("float16", 1, 32), torch.float32)


@COMPILED
@pytest.mark.parametrize("trained", [False, True])
def test_linear_of_a_few_numbers_makes_few_calls_and_none_by_way_of_pytorchs_operators(trained, monkeypatch):
    # A measure of overhead that no other load of the machine disturbs; it was 240 calls and 185 us, PyTorch's own 6 us.
    x, weight, bias = normal(4, 8, seed=5), normal(8, 8, seed=6, grad=trained), normal(8, seed=7, grad=trained)
    calls = []
    monkeypatch.setattr(operators, "matrix_product", None)
    with cstorch.precision("cbfloat16"):
        F.linear(x, weight, bias)
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
        try:
            F.linear(x, weight, bias)
        finally:
            sys.setprofile(before)
    assert 20 < len(calls) < 100, len(calls)


def test_activation_makes_few_calls_and_none_by_way_of_the_guard(monkeypatch):
    x, calls = normal(1, 8, grad=True), []
    with cstorch.precision("bfloat16"):
        F.relu(x)
        monkeypatch.setattr(type(scopes.guard), "__torch_dispatch__", None)
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
        try:
            F.relu(x)
        finally:
            sys.setprofile(before)
    assert len(calls) < 30, len(calls)


def test_step_of_a_linear_layer_makes_few_calls():
    # They were 850: every question that a backward pass asked of a tensor went to the mode.
    layer, x, calls = torch.nn.Linear(8, 8), normal(1, 8), []
    with cstorch.precision("bfloat16"):
        for count in range(2):
            before = sys.getprofile()
            if count:
                sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
            try:
                layer(x).float().sum().backward()
            finally:
                sys.setprofile(before)
    assert 100 < len(calls) < 450, len(calls)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # which PyTorch itself calls
def test_forward_derivatives_are_exact_products_and_not_zero():
    x, weight = normal(3, 4, seed=8), normal(4, 2, seed=9)
    with torch.autograd.forward_ad.dual_level(), cstorch.precision("cbfloat16"):
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(torch.matmul(dual, weight)).tangent
    assert_codes(tangent, product(torch.ones_like(x), weight, "cbfloat16", 1), "cbfloat16")


def test_oracle_of_this_file_is_not_the_product_of_pytorch():
    a, b = LEFT["matrix"], BASE.T[3:9, 2:12:2]
    assert (golden.decode(product(a, b, "cbfloat16", 1, 4), "cbfloat16") != array(a) @ array(b)).any()
    assert np.isfinite(array(a)).all()
