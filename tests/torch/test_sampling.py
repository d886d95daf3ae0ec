"""The exact affine grid: PyTorch's function in form, the contract in bits."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch

# PyTorch warns that a line of one pixel once meant something else.
pytestmark = pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior")

SIZES = [(2, 1, 4, 6), (1, 3, 5, 1), (2, 1, 3, 4, 2)]


def theta_for(size: tuple[int, ...]) -> torch.Tensor:
    axes = len(size) - 2
    return torch.randn(size[0], axes, axes + 1, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_affine_grid_of_identity_matches_pytorch_after_one_rounding(size: tuple[int, ...], align_corners: bool) -> None:
    axes = len(size) - 2
    identity = torch.eye(axes, axes + 1).expand(size[0], axes, axes + 1)
    expected = golden.quantize(F.affine_grid(identity, list(size), align_corners=align_corners).numpy(), "cbfloat16")
    with cstorch.precision(half="cbfloat16", level=0):
        result = F.affine_grid(identity, list(size), align_corners=align_corners)
    assert np.array_equal(result.numpy(), expected)


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_affine_grid_has_the_same_bits_whatever_dtype_pytorch_makes_tensors_of(default: torch.dtype) -> None:
    theta = theta_for(SIZES[1])
    with cstorch.precision(half="cbfloat16", level=0):
        expected = F.affine_grid(theta, list(SIZES[1]), align_corners=False)
        usual = torch.get_default_dtype()
        torch.set_default_dtype(default)
        try:
            result = F.affine_grid(theta, list(SIZES[1]), align_corners=False)
        finally:
            torch.set_default_dtype(usual)
    assert torch.equal(result, expected)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_affine_grid_is_the_reduction_over_x_y_and_one(size: tuple[int, ...], level: int) -> None:
    axes = len(size) - 2
    theta = theta_for(size)
    identity = torch.eye(axes, axes + 1).expand(1, axes, axes + 1)
    positions = F.affine_grid(identity, [1, *size[1:]], align_corners=True).reshape(-1, axes).numpy()
    base = golden.encode(np.concatenate([positions, np.ones((len(positions), 1), np.float32)], axis=1), "bfloat16")
    codes = golden.encode(theta.numpy(), "bfloat16")
    expected = golden.matmul(base, codes.swapaxes(1, 2), operand="bfloat16", level=level, out="bfloat16")
    with cstorch.precision(half="bfloat16", level=level):
        result = F.affine_grid(theta, list(size), align_corners=True)
    assert np.array_equal(result.view(torch.uint16).numpy(), expected.reshape(result.shape))


def test_affine_grid_gradient_of_theta_is_one_reduction_over_positions() -> None:
    theta = theta_for(SIZES[0]).requires_grad_()
    with cstorch.precision(half="cbfloat16", level=0):
        result = F.affine_grid(theta, list(SIZES[0]), align_corners=True)
    gradient = torch.randn(result.shape, generator=torch.Generator().manual_seed(2))
    result.backward(gradient)
    plain = theta_for(SIZES[0]).requires_grad_()
    F.affine_grid(plain, list(SIZES[0]), align_corners=True).backward(gradient)
    # 24 products of numbers that were rounded to 10 bits.
    torch.testing.assert_close(theta.grad, plain.grad, rtol=2**-7, atol=2**-7)


def test_affine_grid_wrong_shape_names_theta() -> None:
    with cstorch.precision(), pytest.raises(ValueError, match=r"theta: got shape \(2, 2, 3\)"):
        torch.affine_grid_generator(torch.zeros(2, 2, 3), [2, 1, 2, 3, 4], False)
