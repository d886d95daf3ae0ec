"""matmul, linear and bmm: bit for bit the contract, forward; the operands' shapes, dtypes and special values."""

import numpy as np
import pytest
import torch

import golden
import golden.torch as cstorch

from .oracle import (
    NAMES,
    array,
    assert_codes,
    assert_same_tensors,
    codes,
    normal,
    product,
    reference_product,
)

HALVES = pytest.mark.parametrize("half", NAMES)
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])


@HALVES
@LEVELS
def test_linear_is_the_references_reduction_from_the_bias(half, level):
    x, weight, bias = normal(3, 45, seed=1), normal(4, 45, seed=2), normal(4, seed=3)
    with cstorch.precision(half, level, chunk=8):
        got = cstorch.linear(x, weight, bias)
    assert got.dtype == {"float16": torch.float16, "bfloat16": torch.bfloat16, "cbfloat16": torch.float32}[half]
    assert_codes(got, reference_product(x, weight.T, half, level, 8, bias), half)


@HALVES
@LEVELS
def test_matmul_of_any_codes_is_the_references(half, level):
    fmt = golden.format_named(half)
    drawn = np.random.default_rng(7).integers(0, 2**16, (2, 12, 5)).astype(np.uint16)
    a, b = (torch.from_numpy(golden.decode(each, fmt)) for each in drawn)
    with cstorch.precision(half, level, chunk=2):
        got = cstorch.matmul(a, b.T)
    assert_codes(got, reference_product(a, b.T, half, level, 2), half)


def test_matmul_is_not_the_product_of_pytorch():
    # 256 + 1 needs nine significant bits: bfloat16 within a chunk drops every 1, fp32 keeps them.
    x, y = torch.ones(1, 32), torch.ones(32, 1)
    x[0, 0] = 256.0
    with cstorch.precision("bfloat16", level=1):
        assert cstorch.matmul(x, y).item() == 256.0
        assert (x @ y).item() == 256.0
        with cstorch.pol(level=0):
            assert cstorch.matmul(x, y).item() == 288.0
    assert (x @ y).item() == 287.0
    assert (x.bfloat16() @ y.bfloat16()).item() == 288.0


def test_matmul_of_the_default_half_type_is_float16_at_level_1_in_chunks_of_32():
    a, b = normal(3, 70, seed=4), normal(70, 2, seed=5)
    got = cstorch.matmul(a, b)
    assert got.dtype == torch.float16
    assert_codes(got, product(a, b, "float16", 1, 32), "float16")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7,), (7,)),
        ((7,), (7, 3)),
        ((5, 7), (7,)),
        ((2, 5, 7), (7,)),
        ((7,), (2, 7, 3)),
        ((2, 5, 7), (7, 3)),
        ((5, 7), (2, 7, 3)),
        ((2, 5, 7), (2, 7, 3)),
        ((4, 1, 5, 7), (2, 7, 3)),
        ((1, 5, 7), (3, 7, 2)),
        ((2, 2, 5, 7), (7, 3)),
        ((0, 7), (7, 3)),
        ((5, 0), (0, 3)),
        ((2, 5, 0), (0, 3)),
        ((0, 5, 7), (7, 3)),
        ((2, 5, 7), (2, 7, 0)),
        ((0,), (0,)),
    ],
)
def test_matmul_has_the_shapes_of_torch_and_the_bits_of_the_contract(left, right):
    a, b = normal(*left, seed=8, grad=True), normal(*right, seed=9, grad=True)
    with cstorch.precision("cbfloat16", chunk=3):
        got = cstorch.matmul(a, b)
    assert got.shape == torch.matmul(a, b).shape
    wide = a.unsqueeze(0) if a.ndim == 1 else a, b.unsqueeze(-1) if b.ndim == 1 else b
    assert_codes(got, product(*wide, "cbfloat16", 1, 3).reshape(got.shape), "cbfloat16")
    got.sum().backward()
    assert a.grad.shape == left
    assert b.grad.shape == right


@pytest.mark.parametrize("level", [0, 1, 2])
def test_linear_of_no_products_is_the_bias_rounded(level):
    bias = torch.tensor([0.1, -0.0, torch.inf, 1e-30])
    with cstorch.precision("cbfloat16", level):
        got = cstorch.linear(torch.zeros(2, 0), torch.zeros(4, 0), bias)
    assert_codes(got, np.broadcast_to(codes(bias, "cbfloat16"), (2, 4)), "cbfloat16")


def test_linear_takes_the_shapes_of_torch():
    weight, bias = normal(3, 6, seed=12), normal(3, seed=13)
    for shape in ((6,), (4, 6), (2, 4, 6), (2, 1, 4, 6), (0, 6)):
        x = normal(*shape, seed=14)
        wanted = torch.nn.functional.linear(x, weight, bias).shape
        assert cstorch.linear(x, weight, bias).shape == wanted
        assert cstorch.linear(x, weight[0]).shape == wanted[:-1]


def test_matmul_of_strided_operands_is_that_of_their_copies():
    base = normal(6, 40, seed=15)
    a, b = base.T[::2, ::3], base.flip(1)[::2, ::4].T
    a, b = a[:10], b.expand(2, 10, 3)
    with cstorch.precision("cbfloat16"):
        got = cstorch.matmul(a.T, b)
        assert_same_tensors(got, cstorch.matmul(a.T.contiguous(), b.contiguous()))
    assert_codes(got, product(a.T, b, "cbfloat16", 1), "cbfloat16")


def test_matmul_nan_is_the_canonical_one_in_a_bfloat16_tensor():
    # PyTorch's cast made 0xFFFF of 0x7FC00000.
    x = torch.tensor([[torch.inf] * 40]).T
    with cstorch.precision("bfloat16"):
        got = cstorch.matmul(x, torch.zeros(1, 1))
    assert (got.view(torch.int16) == 0x7FC0).all()


@HALVES
def test_matmul_rounds_its_inputs_to_the_half_format_once(half):
    a, b = normal(4, 6, seed=16), normal(6, 3, seed=17)
    quantised = [torch.from_numpy(golden.quantize(array(each), half)) for each in (a, b)]
    with cstorch.precision(half):
        assert_same_tensors(cstorch.matmul(a, b), cstorch.matmul(*quantised))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_matmul_takes_float16_bfloat16_and_float32(dtype):
    a, b = normal(4, 6, seed=18, dtype=dtype), normal(6, 3, seed=19)
    with cstorch.precision("cbfloat16"):
        assert_codes(cstorch.matmul(a, b), product(a, b, "cbfloat16", 1), "cbfloat16")


def test_matmul_with_the_float16_proxy_loses_range_as_documented():
    x = torch.tensor([[300.0]])
    with cstorch.precision("cbfloat16"):
        assert cstorch.matmul(x, x).item() == 89984.0  # 90000, rounded to ten significant bits
    with cstorch.precision("cbfloat16", proxy=torch.float16):
        got = cstorch.matmul(x, x)
    assert got.dtype == torch.float16
    assert got.item() == torch.inf


def test_bmm_is_matmul_of_the_matrices():
    x, y = normal(3, 2, 9, seed=20), normal(3, 9, 4, seed=21)
    with cstorch.precision("bfloat16"):
        got = cstorch.bmm(x, y)
        for matrix in range(3):
            assert_same_tensors(got[matrix], cstorch.matmul(x[matrix], y[matrix]))


def test_products_come_near_those_of_float64():
    a, b = normal(20, 300, seed=22), normal(300, 10, seed=23)
    with cstorch.precision("cbfloat16", level=0):
        got = cstorch.matmul(a, b)
    wanted = a.double() @ b.double()
    assert (got - wanted).abs().max() < 0.2
    assert (got - wanted).abs().max() > 0


def fake_cuda_tensor():
    with torch._subclasses.FakeTensorMode():
        return torch.empty(2, 3, device="cuda")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cstorch.matmul(torch.ones(2, 3), torch.ones(2, 3)), ValueError, r"^x, y: got shapes \(2, 3\) and"),
        (
            lambda: cstorch.matmul(torch.ones(2, 2, 3), torch.ones(3, 3, 2)),
            ValueError,
            r"^x, y: got shapes \(2, 2, 3\)",
        ),
        (lambda: cstorch.matmul(torch.tensor(1.0), torch.ones(2)), ValueError, r"^x, y: got shapes \(\) and \(2,\)"),
        (lambda: cstorch.matmul(torch.ones(2, 2).double(), torch.ones(2, 2)), TypeError, r"^x: got .* torch.float64"),
        (lambda: cstorch.matmul(torch.ones(2, 2), torch.ones(2, 2).int()), TypeError, r"^y: got .* torch.int32"),
        (lambda: cstorch.matmul(np.ones((2, 2)), torch.ones(2, 2)), TypeError, r"^x: got ndarray, must be a torch"),
        (lambda: cstorch.matmul(torch.eye(2).to_sparse(), torch.ones(2, 2)), TypeError, r"^x: .*torch.sparse_coo"),
        (
            lambda: cstorch.matmul(torch.ones(2, 2), fake_cuda_tensor()),
            ValueError,
            r"^x, y: got .* cpu, cuda:0, must be on one device",
        ),
        (lambda: cstorch.bmm(torch.ones(2, 2, 2), torch.ones(1, 2, 2)), ValueError, r"^x, y: got shapes \(2, 2, 2\)"),
        (lambda: cstorch.linear(torch.ones(2, 3), torch.ones(4, 2)), ValueError, r"^x, weight: got shapes \(2, 3\)"),
        (
            lambda: cstorch.linear(torch.ones(2), torch.ones(4, 2), torch.ones(3)),
            ValueError,
            r"^bias: got shape \(3,\)",
        ),
    ],
)
def test_products_of_bad_operands_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
