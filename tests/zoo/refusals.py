"""Calls that a precision refuses, on the CPU as on a card: products without an exact path, and bad arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import golden.torch as cstorch

__all__ = ["REFUSED", "refusal"]


class _Bypass(torch.autograd.Function):
    """A function whose backward pass is a product by an operator of PyTorch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        return torch.ops.aten.mm(gradients[0], ctx.saved_tensors[0])


def _in_backward(x: Tensor) -> None:
    _Bypass.apply(x.requires_grad_()).sum().backward()


def _bags(x: Tensor) -> Tensor:
    places, weights = torch.tensor([[0, 1]], device=x.device), torch.ones(1, 2, device=x.device)
    return F.embedding_bag(places, x, mode="sum", per_sample_weights=weights)


def _with(function: Callable[..., Any], *given: Any) -> Callable[[Tensor], Any]:
    """Call a function with a matrix twice, and what else it takes."""
    return lambda x: function(x, x, *given)


def _sdpa(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, torch.ones(4, 4, device=x.device), is_causal=True)


_WITHOUT_EXACT_PATH: dict[str, Callable[[Tensor], Any]] = {
    "hspmm": _with(torch.hspmm),
    "smm": _with(torch.smm),
    "sspaddmm": lambda x: torch.sspaddmm(x, x, x),
    "_scaled_mm": lambda x: torch._scaled_mm(x, x, x, x),
    "scaled_mm": lambda x: F.scaled_mm(x, x, x, F.ScalingType.TensorWise, x, F.ScalingType.TensorWise),
    "_native_multi_head_attention": lambda x: torch._native_multi_head_attention(x, x, x, 4, 2, x, x, x, x),
    "_transformer_encoder_layer_fwd": lambda x: torch._transformer_encoder_layer_fwd(
        x, 4, 2, x, x, x, x, False, False, 1e-5, x, x, x, x, x, x, x, x
    ),
    "cdist": _with(torch.cdist),
    "sparse.mm": _with(torch.sparse.mm),
    "sparse.addmm": lambda x: torch.sparse.addmm(x, x, x),
    "sparse.sampled_addmm": lambda x: torch.sparse.sampled_addmm(x, x, x),
    "aten.mm": _with(torch.ops.aten.mm),
    "aten.bmm": lambda x: torch.ops.aten.bmm(x[None], x[None]),
    "aten.convolution": lambda x: torch.ops.aten.convolution(x[None], x[None], None, [1], [0], [1], False, [0], 1),
    "aten.lstm_cell": lambda x: torch.ops.aten.lstm_cell(x, [x, x], x, x),
    "rfft": torch.fft.rfft,
    "solve": _with(torch.linalg.solve),
    "inverse": torch.linalg.inv,
    "qr": torch.linalg.qr,
    "svd": torch.linalg.svd,
    "cholesky": torch.linalg.cholesky,
    "slogdet": torch.linalg.slogdet,
    "matrix_exp": torch.matrix_exp,
    "cov": torch.cov,
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, :3]),
    "addr": lambda x: torch.addr(x, x[0], x[1]),
    "embedding_bag of weights": _bags,
    "backward pass": _in_backward,
    "float64": lambda x: x.double() @ x.double(),
    "complex64": lambda x: torch.mm(x.to(torch.complex64), x.to(torch.complex64)),
    "inverse power": partial(torch.linalg.matrix_power, n=-1),
}
_BAD_ARGUMENTS: dict[str, Callable[[Tensor], Any]] = {
    "out": lambda x: torch.mm(x, x, out=torch.empty_like(x)),
    "shapes": lambda x: x @ x[:3],
    "axes": lambda x: torch.mm(x[None], x),
    "bias": lambda x: F.linear(x, x, x[0, :2]),
    "groups": lambda x: F.conv1d(x[None], x[None, :, :2].mT, groups=3),
    "mask and causal": _sdpa,
    "dtype of linear": lambda x: cstorch.linear(x.double(), x),
    "chain of one": lambda x: torch.linalg.multi_dot([x]),
    "ends": lambda x: cstorch.grouped_mm(x, x[None], offs=torch.ones(2, dtype=torch.int32, device=x.device)),
    "equation": lambda x: torch.einsum("ij,jk->il", x, x),
    "states": lambda x: torch.lstm(x[None], [x[None], x[None]], [x, x], False, 2, 0.0, False, False, False),
    "affine_grid": lambda x: torch.ops.aten.affine_grid_generator(x[None], [1, 1, 2, 2], False),
}

#: Calls with a matrix of 4 × 4, by their names.
REFUSED = {**_WITHOUT_EXACT_PATH, **_BAD_ARGUMENTS}


def refusal(name: str, device: torch.device) -> tuple[type[Exception], str]:
    """Return the error of a call in a precision; devices are called by one name."""
    x = torch.eye(4, device=device) + 0.5
    try:
        with cstorch.precision("cbfloat16"):
            REFUSED[name](x)
    except Exception as error:
        return type(error), str(error).replace(str(x.device), "a device")
    raise AssertionError(f"{name} is not refused on {device}")
