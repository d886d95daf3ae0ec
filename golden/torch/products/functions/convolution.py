"""Exact convolutions: every window of the input times the kernels.

Defined here: the order of k in a reduction is input channel, then the place in the kernel, row by row.
The gradient of the weight is one reduction over batch, then output position. The gradient of the input is the exact
product for every window (over the output channels), whose overlaps are added in fp32, in the order of the kernel's
places, and rounded once. A transposed convolution is computed as that gradient is, its bias added last, before the
rounding; so its own gradients are a convolution and the gradient of a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from golden.torch.common.arguments import check_items
from golden.torch.products.functions.products import check_tensors, current_plan
from golden.torch.products.functions.window_gradients import CONVOLVED, of_windows, transposed_to
from golden.torch.products.windows import Geometry

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
]

_INT = (int, torch.SymInt)
_BEYOND = 2**31  # no window is as wide
_Ints = int | tuple[int, ...] | list[int]


class _Windows(NamedTuple):
    """The arguments of a convolution that place its windows, as they are given."""

    stride: _Ints
    padding: Any
    dilation: _Ints
    groups: int
    output_padding: _Ints = 0


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
        All groups, hence a depthwise convolution, too, are one call of the kernels.

    Returns
    -------
    tensor of shape (B, N, H', W') or (N, H', W') of the half dtype

    Raises
    ------
    TypeError
        If an argument is not a dense tensor of float32, float16 or bfloat16.
    ValueError
        If the shapes do not fit, or the tensors are not on one device.
    """
    return _convolution(x, weight, bias, _Windows(stride, padding, dilation, groups), 2)


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
    return _convolution(x, weight, bias, _Windows(stride, padding, dilation, groups), 1)


def conv3d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: _Ints = 1,
    padding: _Ints | str = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Exact three-dimensional convolution, (B, C, D, H, W) with (N, C / groups, depth, rows, columns); as `conv2d`."""
    return _convolution(x, weight, bias, _Windows(stride, padding, dilation, groups), 3)


def conv_tbc(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, pad: int = 0) -> torch.Tensor:
    """Exact `torch.conv_tbc`: `conv1d` of (L, B, C) with (columns, C, N), to (L', B, N)."""
    check_tensors(x=x, weight=weight, bias=bias)
    if x.ndim != 3 or weight.ndim != 3:
        raise ValueError(f"x, weight: got shapes {tuple(x.shape)} and {tuple(weight.shape)}, must have 3 axes")
    return conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def _transposed_of(axes: int) -> Callable[..., torch.Tensor]:
    def run(
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        stride: _Ints = 1,
        padding: _Ints = 0,
        output_padding: _Ints = 0,
        groups: int = 1,
        dilation: _Ints = 1,
    ) -> torch.Tensor:
        return _transposed(x, weight, bias, _Windows(stride, padding, dilation, groups, output_padding), axes)

    run.__name__ = run.__qualname__ = f"conv_transpose{axes}d"
    run.__doc__ = (
        f"Exact `torch.nn.functional.conv_transpose{axes}d`: (B, C, ...) with (C, N / groups, ...) to (B, N, ...); "
        f"see the module for what is defined, `conv2d` for errors."
    )
    return run


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed_of, (1, 2, 3))


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: _Ints,
    padding: _Ints,
    dilation: _Ints,
    transposed: bool,
    output_padding: _Ints,
    groups: int,
    *_: Any,
) -> torch.Tensor:
    """Exact `torch.convolution`, of one to three axes, transposed or not."""
    check_tensors(x=x, weight=weight, bias=bias)
    axes = weight.ndim - 2
    if axes not in (1, 2, 3):
        raise ValueError(f"weight: got shape {tuple(weight.shape)}, must have 3 to 5 axes")
    if transposed:
        return _transposed(x, weight, bias, _Windows(stride, padding, dilation, groups, output_padding), axes)
    return _convolution(x, weight, bias, _Windows(stride, padding, dilation, groups), axes)


def _convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    windows: _Windows,
    axes: int,
) -> torch.Tensor:
    stride, padding, dilation, groups, _ = windows
    _check_form(x, weight, bias, groups, axes)
    channels = x.shape[-axes - 1]
    if groups < 1 or channels != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ValueError(
            f"groups: got {groups} for {channels} input channels and weight {tuple(weight.shape)}, must divide both "
            f"and leave {weight.shape[1]} input channels to each group"
        )
    _check_bias(bias, weight.shape[0])
    steps, gaps = _per_axis(stride, axes, "stride"), _per_axis(dilation, axes, "dilation")
    batched = x if x.ndim == axes + 2 else x.unsqueeze(0)
    geometry = Geometry(steps, gaps, _sides(weight, padding, steps, gaps), groups)
    size, kernel = tuple(batched.shape[2:]), tuple(weight.shape[2:])
    if any(count < 1 for count in geometry.positions(size, kernel)):
        reach = tuple(gap * (length - 1) + 1 for gap, length in zip(gaps, kernel, strict=True))
        raise ValueError(
            f"weight: got kernels that reach over {reach}, must fit the padded input of {geometry.padded(size)}"
        )
    plan = current_plan()
    result = of_windows(batched, weight, bias, CONVOLVED, geometry, plan, plan.half.dtype)
    return result if x.ndim == axes + 2 else result.squeeze(0)


def _transposed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    windows: _Windows,
    axes: int,
) -> torch.Tensor:
    stride, padding, dilation, groups, output_padding = windows
    _check_form(x, weight, bias, groups, axes)
    if groups < 1 or x.shape[-axes - 1] != weight.shape[0] or weight.shape[0] % groups:
        raise ValueError(
            f"groups: got {groups} for {x.shape[-axes - 1]} input channels and weight {tuple(weight.shape)}, must "
            f"divide the input channels, which must be {weight.shape[0]}"
        )
    _check_bias(bias, weight.shape[1] * groups)
    steps, gaps = _per_axis(stride, axes, "stride"), _per_axis(dilation, axes, "dilation")
    cut, more = _per_axis(padding, axes, "padding"), _per_axis(output_padding, axes, "output_padding")
    if any(extra >= max(step, gap) for extra, step, gap in zip(more, steps, gaps, strict=True)):
        raise ValueError(
            f"output_padding: got {more}, must be smaller than stride {steps} or dilation {gaps} on every axis"
        )
    batched = x if x.ndim == axes + 2 else x.unsqueeze(0)
    whole = [
        (n - 1) * step + gap * (length - 1) + 1
        for n, step, gap, length in zip(batched.shape[2:], steps, gaps, weight.shape[2:], strict=True)
    ]
    size = tuple(n - 2 * side + extra for n, side, extra in zip(whole, cut, more, strict=True))
    if any(n < 1 for n in (*size, *batched.shape[2:])):
        raise ValueError(f"padding: got {cut}, must leave a part of the result of {tuple(whole)}")
    # Padding of the convolution from the result back to `x`; output_padding may make it negative.
    sides = tuple(amount for side, extra in zip(cut, more, strict=True) for amount in (side, side - extra))
    plan = current_plan()
    geometry = Geometry(steps, gaps, sides, groups)
    result = of_windows(batched, weight, bias, transposed_to(size), geometry, plan, plan.half.dtype)
    return result if x.ndim == axes + 2 else result.squeeze(0)


def _sides(
    weight: torch.Tensor, padding: _Ints | str, steps: tuple[int, ...], gaps: tuple[int, ...]
) -> tuple[int, ...]:
    axes = len(steps)
    if not isinstance(padding, str):
        return tuple(each for each in _per_axis(padding, axes, "padding") for _ in range(2))
    if padding not in ("valid", "same"):
        raise ValueError(f"padding: got {padding!r}, must be 'valid', 'same', an int or a tuple of them")
    if padding == "same" and any(step != 1 for step in steps):
        raise ValueError(f"padding: got 'same' with stride {steps}, must have a stride of 1")
    total = [gap * (n - 1) if padding == "same" else 0 for gap, n in zip(gaps, weight.shape[2:], strict=True)]
    return tuple(amount for missing in total for amount in (missing // 2, missing - missing // 2))


def _per_axis(given: _Ints, axes: int, argument: str) -> tuple[int, ...]:
    values = (given,) * axes if isinstance(given, _INT) else tuple(check_items(given, argument, "ints"))
    values = values * axes if len(values) == 1 else values
    lowest = 0 if argument.endswith("padding") else 1
    if not all(isinstance(value, _INT) for value in values):
        raise TypeError(f"{argument}: got {given!r}, must be an int of at least {lowest}, or {axes} of them")
    if any(abs(value) >= _BEYOND for value in values if isinstance(value, int)):
        raise ValueError(f"{argument}: got {given!r}, must be below 2**31")
    if len(values) != axes or any(value < lowest for value in values):
        raise ValueError(f"{argument}: got {given!r}, must be an int of at least {lowest}, or {axes} of them")
    return values


def _check_form(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: object, axes: int) -> None:
    check_tensors(x=x, weight=weight, bias=bias)
    if x.ndim not in (axes + 1, axes + 2) or weight.ndim != axes + 2:
        raise ValueError(
            f"x, weight: got shapes {tuple(x.shape)} and {tuple(weight.shape)}, must have {axes + 2} axes "
            f"({axes + 1} for an x without a batch)"
        )
    if not isinstance(groups, _INT):
        raise TypeError(f"groups: got {groups!r}, must be an int")


def _check_bias(bias: torch.Tensor | None, outputs: int) -> None:
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise ValueError(f"bias: got shape {tuple(bias.shape)}, must be {(outputs,)} for this weight")
