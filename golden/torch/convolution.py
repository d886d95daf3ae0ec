"""Exact convolutions: the windows of the input, unfolded, times the kernels.

Defined here: the order of k in a reduction is input channel, then kernel row, then kernel column. The gradient of the
weight is one reduction over batch, then output position. The gradient of the input is the exact product for every
window (over the output channels), whose overlaps are added in fp32 and rounded once.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from golden.torch.gradients import round_to_half
from golden.torch.products import check_tensors, current_plan, product

__all__ = ["conv1d", "conv2d"]

_Ints = int | tuple[int, ...] | list[int]


def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: _Ints = 1,
    padding: _Ints | str = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Exact two-dimensional convolution with the parameters of `torch.nn.functional.conv2d`.

    Parameters
    ----------
    x : tensor of shape (B, C, H, W) or (C, H, W)
    weight : tensor of shape (N, C / groups, rows, columns)
    bias : tensor of shape (N,), optional
        The reductions start from it; its gradient is a sum in fp32, in order, rounded once.
    stride, padding, dilation : int or pair
        `padding` may also be ``"valid"`` or, with a stride of 1, ``"same"``.
    groups : int

    Returns
    -------
    tensor of shape (B, N, H', W') or (N, H', W') of the half dtype

    Raises
    ------
    TypeError
        If an argument is not a dense tensor of float32, float16 or bfloat16.
    ValueError
        If the shapes do not fit, or a tensor is not on the CPU.
    """
    return _convolution(x, weight, bias, stride, padding, dilation, groups, axes=2)


def conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: _Ints = 1,
    padding: _Ints | str = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Exact one-dimensional convolution, (B, C, L) or (C, L) with (N, C / groups, columns); else as `conv2d`."""
    return _convolution(x, weight, bias, stride, padding, dilation, groups, axes=1)


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: _Ints,
    padding: _Ints | str,
    dilation: _Ints,
    groups: int,
    *,
    axes: int,
) -> torch.Tensor:
    check_tensors(x=x, weight=weight, bias=bias)
    _check_shapes(x, weight, bias, groups, axes)
    steps, gaps = _per_axis(stride, axes, "stride"), _per_axis(dilation, axes, "dilation")
    batched = x if x.ndim == axes + 2 else x.unsqueeze(0)
    half = current_plan()[0]
    # Rounded before the windows overlap, so that the gradients of a value are summed and rounded here, once.
    values = _padded(round_to_half(batched, half, torch.float32), weight, padding, steps, gaps)
    kernels = weight
    if axes == 1:  # one row
        values, kernels, steps, gaps = values.unsqueeze(-2), weight.unsqueeze(-2), (1, *steps), (1, *gaps)
    size = kernels.shape[-2:]
    reach = [gap * (length - 1) + 1 for gap, length in zip(gaps, size, strict=True)]
    height, width = ((n - r) // s + 1 for n, r, s in zip(values.shape[-2:], reach, steps, strict=True))
    if height < 1 or width < 1:
        raise ValueError(
            f"weight: got kernels that reach over {tuple(reach[-axes:])}, must fit the padded input of "
            f"{tuple(values.shape[-axes:])}"
        )
    windows = F.unfold(values, size, dilation=gaps, stride=steps)  # (B, C * rows * columns, positions)
    result = _by_group(windows, kernels, bias, groups)
    result = result.reshape(batched.shape[0], weight.shape[0], *((height, width) if axes == 2 else (width,)))
    return result if x.ndim == axes + 2 else result.squeeze(0)


def _by_group(windows: torch.Tensor, kernels: torch.Tensor, bias: torch.Tensor | None, groups: int) -> torch.Tensor:
    """Multiply windows (B, C * k, positions) by kernels (N, C / groups, rows, columns): (B, N, positions)."""
    outputs, length = kernels.shape[0] // groups, math.prod(kernels.shape[1:])
    parts = [
        product(
            kernels[group * outputs : (group + 1) * outputs].reshape(outputs, length),
            windows[:, group * length : (group + 1) * length],
            None if bias is None else bias[group * outputs : (group + 1) * outputs].unsqueeze(-1),
        )
        for group in range(groups)
    ]
    return parts[0] if groups == 1 else torch.cat(parts, dim=1)


def _padded(
    values: torch.Tensor, weight: torch.Tensor, padding: _Ints | str, steps: tuple[int, ...], gaps: tuple[int, ...]
) -> torch.Tensor:
    axes = len(steps)
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise ValueError(f"padding: got {padding!r}, must be 'valid', 'same', an int or a tuple of them")
        if padding == "same" and any(step != 1 for step in steps):
            raise ValueError(f"padding: got 'same' with stride {steps}, must have a stride of 1")
        total = [gap * (n - 1) if padding == "same" else 0 for gap, n in zip(gaps, weight.shape[2:], strict=True)]
        sides = [(missing // 2, missing - missing // 2) for missing in total]
    else:
        sides = [(each, each) for each in _per_axis(padding, axes, "padding")]
    if not any(any(side) for side in sides):
        return values
    return F.pad(values, [amount for side in reversed(sides) for amount in side])


def _per_axis(given: _Ints, axes: int, argument: str) -> tuple[int, ...]:
    values = (given,) * axes if isinstance(given, int) else tuple(given)
    values = values * axes if len(values) == 1 else values
    lowest = 0 if argument == "padding" else 1
    if len(values) != axes or any(value < lowest for value in values):
        raise ValueError(f"{argument}: got {given!r}, must be an int of at least {lowest}, or {axes} of them")
    return values


def _check_shapes(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: int, axes: int) -> None:
    if x.ndim not in (axes + 1, axes + 2) or weight.ndim != axes + 2:
        raise ValueError(
            f"x, weight: got shapes {tuple(x.shape)} and {tuple(weight.shape)}, must have {axes + 2} axes "
            f"({axes + 1} for an x without a batch)"
        )
    channels = x.shape[-axes - 1]
    if groups < 1 or channels != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ValueError(
            f"groups: got {groups} for {channels} input channels and weight {tuple(weight.shape)}, must divide both "
            f"and leave {weight.shape[1]} input channels to each group"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ValueError(f"bias: got shape {tuple(bias.shape)}, must be {(weight.shape[0],)} for this weight")
