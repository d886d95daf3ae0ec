"""Exact grids of a spatial transformer: the product inside `torch.nn.functional.affine_grid`."""

from __future__ import annotations

import torch

from golden.torch.products.functions.products import check_tensors, matmul

__all__ = ["affine_grid"]


def affine_grid(theta: torch.Tensor, size: torch.Size | list[int], align_corners: bool = False) -> torch.Tensor:
    """Exact `torch.nn.functional.affine_grid`: every position of the output, mapped by `theta`.

    Defined here: the order of k is x, y, z, 1, the order of the columns of `theta`. Positions are rounded to the half
    format as every input of a product.

    Parameters
    ----------
    theta : tensor of shape (B, 2, 3) or (B, 3, 4)
        Float32, float16 or bfloat16.
    size : list of int
        Of the output, (B, C, H, W) or (B, C, D, H, W).
    align_corners : bool
        Whether -1 and 1 are the centres of the outermost pixels, and not their edges.

    Returns
    -------
    tensor of shape (B, H, W, 2) or (B, D, H, W, 3) of the half dtype

    Raises
    ------
    TypeError
        If `theta` is not a dense tensor of such a dtype.
    ValueError
        If the shapes do not fit.
    """
    check_tensors(theta=theta)
    axes = len(size) - 2
    if axes not in (2, 3) or tuple(theta.shape) != (size[0], axes, axes + 1):
        raise ValueError(
            f"theta: got shape {tuple(theta.shape)} for size {tuple(size)}, must be (B, 2, 3) for (B, C, H, W), or "
            f"(B, 3, 4) for (B, C, D, H, W)"
        )
    lines = [_positions(length, align_corners, theta.device) for length in size[2:]]
    coordinates = torch.meshgrid(*lines, indexing="ij")[::-1]  # x runs along the last axis
    base = torch.stack([*coordinates, torch.ones_like(coordinates[0])], dim=-1).reshape(-1, axes + 1)
    return matmul(base, theta.mT).reshape(*(size[0], *size[2:]), axes)


def _positions(length: int, align_corners: bool, device: torch.device) -> torch.Tensor:
    """Return the centres of the pixels of a line from -1 to 1, as PyTorch computes them in fp32."""
    if length == 1:
        return torch.zeros(1, dtype=torch.float32, device=device)
    line = torch.linspace(-1, 1, length, dtype=torch.float32).to(device)  # the bits of the CPU, on every device
    return line if align_corners else line * ((length - 1) / length)
