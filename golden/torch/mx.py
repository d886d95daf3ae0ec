"""Training with microscaled operands: values are rounded to blocks with a shared scale before a product meets them.

The rounded values go into the exact products of this package. These sum as the level in force says, in the half
format. It holds the factors of every product as long as block scales stay within its range: cbfloat16 and bfloat16 do
for data near 1. Gradients pass a rounding unchanged (straight through); they may be rounded to blocks themselves.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from golden.formats import FloatFormat, as_format
from golden.lines import format_text
from golden.mx import BLOCK
from golden.torch.common.arguments import check_count
from golden.torch.products.functions.gradients import without_tangents
from golden.torch.products.functions.products import check_tensors
from golden.torch.products.functions.products import linear as exact_linear
from golden.torch.products.operators.registered import rounded_to_blocks

__all__ = ["fake_quantize", "linear"]

_LONGEST = 2**62  # a block that is longer than any axis


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, element: str | None, *blocks: Any) -> torch.Tensor:
        gradient, axis, block = blocks
        ctx.gradient = gradient, axis, block
        return x.view_as(x) if element is None else rounded_to_blocks(x, element, axis, block)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        element, axis, block = ctx.gradient
        (gradient,) = gradients
        rounded = gradient if element is None else rounded_to_blocks(gradient, element, axis, block)
        return rounded, None, None, None, None


class _FakeQuantizeWithoutTangents(_FakeQuantize):
    jvp = staticmethod(without_tangents)


def fake_quantize(
    x: torch.Tensor,
    element: FloatFormat | str | None,
    *,
    gradient_element: FloatFormat | str | None = None,
    axis: int = -1,
    block: int = BLOCK,
) -> torch.Tensor:
    """Round a tensor to blocks of narrow numbers with one scale each, and back.

    Parameters
    ----------
    x : float32, float16 or bfloat16 tensor
    element : FloatFormat, str or None
        Format of the elements, as of `golden.mx.quantize`; None leaves the values as they are.
    gradient_element : FloatFormat, str or None
        Rounds the gradient likewise, along the same axis; it passes unchanged unless given.
    axis : int
        The axis that blocks lie along: the one that a product sums over. Zeros fill up the last block.
    block : int
        Values that share a scale, 32 unless given.

    Returns
    -------
    tensor of the shape and dtype of `x`
        The values of ``golden.mx.dequantize(*golden.mx.quantize(x))``.

    Raises
    ------
    TypeError
        If `x` is no dense tensor of such a dtype, or another argument is of another type.
    ValueError
        If there is no such format or axis, or `block` is below 1.
    """
    check_tensors(x=x)
    formats = [
        None if given is None else format_text(as_format(given, argument))
        for argument, given in (("element", element), ("gradient_element", gradient_element))
    ]
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"axis: got {axis!r}, must be an int")
    if not x.ndim:
        raise ValueError("x: got a tensor of shape (), must have an axis for the blocks to lie along")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis: got {axis}, must be {-x.ndim} to {x.ndim - 1} for a tensor of shape {tuple(x.shape)}")
    check_count(block, "block")
    function = _FakeQuantizeWithoutTangents if forward_ad._current_level >= 0 else _FakeQuantize
    result: torch.Tensor = function.apply(x, formats[0], formats[1], axis, min(block, _LONGEST))
    return result


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    element: FloatFormat | str = "float8_e4m3fn",
    gradient_element: FloatFormat | str | None = None,
    block: int = BLOCK,
) -> torch.Tensor:
    """Exact linear layer of microscaled operands, ``x @ weight.T + bias``.

    The blocks of `x` and `weight` lie along their last axes. The backward pass multiplies by the same rounded operands.

    Parameters
    ----------
    x : tensor of shape (..., K)
    weight : tensor of shape (N, K)
    bias : tensor of shape (N,), optional
        It is not rounded to blocks.
    element : FloatFormat or str
        Format of the elements of both operands.
    gradient_element : FloatFormat or str, optional
        Rounds the gradient of the result to blocks along its last axis before the two products of the backward pass.
    block : int
        Values that share a scale, 32 unless given.

    Returns
    -------
    tensor of shape (..., N) of the half dtype

    Raises
    ------
    TypeError, ValueError
        As `fake_quantize` and `golden.torch.linear`.
    """
    check_tensors(x=x, weight=weight, bias=bias)
    if element is None:
        raise TypeError("element: got None, must be a FloatFormat or the name of one")
    operands = fake_quantize(x, element, block=block), fake_quantize(weight, element, block=block)
    result = exact_linear(*operands, bias)
    return fake_quantize(result, None, gradient_element=gradient_element, block=block)
