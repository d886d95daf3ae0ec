"""Exact products inside other functions: groups of rows, bilinear forms, chains, powers, affine grids.

Defined here: `bilinear` multiplies the weight by the second input, rounds, and multiplies the result by the first;
chains are multiplied from left to right; a power is made by squaring, its factors in the order of the exponent's bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from golden.torch.products.functions.gradients import round_to_half
from golden.torch.products.functions.grouped import grouped_product
from golden.torch.products.functions.products import check_tensors, current_plan, linear, matmul, product

__all__ = ["affine_grid", "bilinear", "chain_matmul", "grouped_mm", "matrix_power", "multi_dot", "vecdot"]


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Exact `torch.nn.functional.grouped_mm`: one product for each of G groups, as experts of a mixture need them.

    Parameters
    ----------
    mat_a : tensor of shape (rows, K) or (G, M, K)
    mat_b : tensor of shape (K, columns) or (G, K, N)
    offs : integer tensor of shape (G,), where an operand has two axes
        Where each group ends: in the rows of `mat_a`, in the columns of `mat_b`, or in K where both have two axes.
    bias : tensor of shape (G, N) or (N,), optional
        The reductions of a group start from its row.
    out_dtype : torch.dtype, optional
        Dtype of the result, that of the half type unless given.

    Returns
    -------
    tensor
        (rows, N) or (M, columns), zeros beyond the last group; (G, M, N) otherwise.

    Raises
    ------
    TypeError, ValueError
        If a tensor has another dtype, or the shapes and ends do not fit.
    """
    check_tensors(mat_a=mat_a, mat_b=mat_b, bias=bias)
    if not isinstance(out_dtype, torch.dtype | None):
        raise TypeError(f"out_dtype: got {out_dtype!r}, must be a torch.dtype or None")
    axes = mat_a.ndim, mat_b.ndim
    if not set(axes) <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise ValueError(
            f"mat_a, mat_b: got shapes {tuple(mat_a.shape)} and {tuple(mat_b.shape)}, must be (rows, K) or (G, M, K), "
            f"and (K, columns) or (G, K, N)"
        )
    if (offs is None) != (axes == (3, 3)):
        raise ValueError(f"offs: got {offs!r} for operands of {axes} axes, must be given where one has two axes only")
    if offs is None:
        groups = mat_a.shape[0]
        if mat_b.shape[0] != groups:
            raise ValueError(f"mat_b: got {mat_b.shape[0]} groups, must be the {groups} of mat_a")
        result = product(mat_a, mat_b, None if bias is None else _row_of_each(bias, groups))
    else:
        result = _jagged(mat_a, mat_b, offs, bias)
    return result if out_dtype is None else result.to(out_dtype)


def _row_of_each(bias: Tensor, groups: int) -> Tensor:
    if bias.ndim not in (1, 2) or bias.shape[:-1] not in ((), (1,), (groups,)):
        raise ValueError(f"bias: got shape {tuple(bias.shape)}, must be ({groups}, N) or (N,)")
    return bias.expand(groups, bias.shape[-1]).unsqueeze(1)


def _jagged(mat_a: Tensor, mat_b: Tensor, offs: Tensor, bias: Tensor | None) -> Tensor:
    axes = mat_a.ndim, mat_b.ndim
    length = mat_b.shape[-1] if axes == (3, 2) else mat_a.shape[-2] if axes == (2, 3) else mat_a.shape[-1]
    batched = {(3, 2): mat_a, (2, 3): mat_b}.get(axes)
    if not isinstance(offs, Tensor):
        raise TypeError(f"offs: got {type(offs).__name__}, must be a torch.Tensor")
    if offs.is_floating_point() or offs.ndim != 1 or (batched is not None and len(offs) != len(batched)):
        raise ValueError(
            f"offs: got a tensor of {offs.dtype} and shape {tuple(offs.shape)}, must have one integer for each group"
        )
    if bias is None:
        plan = current_plan()
        return grouped_product(mat_a, mat_b, offs, plan, plan.half.dtype)
    ends = offs.tolist()
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    if any(size < 0 for size in sizes) or sum(sizes) > length:
        raise ValueError(f"offs: got {ends}, must ascend from at least 0 to at most {length}")
    sizes.append(length - sum(sizes))
    lefts = mat_a.unbind(0) if axes == (3, 2) else mat_a.split(sizes, -2 if axes == (2, 3) else -1)
    rights = mat_b.unbind(0) if axes == (2, 3) else mat_b.split(sizes, -2 if axes == (2, 2) else -1)
    starts = _row_of_each(bias, len(ends)).unbind(0)
    parts = [product(left, right, start) for left, right, start in zip(lefts, rights, starts, strict=False)]
    if axes == (2, 2):
        return torch.stack(parts)
    half = current_plan().half
    if sizes[-1] or not parts:
        rest = (sizes[-1], mat_b.shape[-1]) if axes == (2, 3) else (mat_a.shape[-2], sizes[-1])
        parts.append(mat_a.new_zeros(rest, dtype=half.dtype))
    return torch.cat(parts, -2 if axes == (2, 3) else -1)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Exact `torch.nn.functional.bilinear`: (..., I) and (..., J) with (O, I, J) to (..., O)."""
    check_tensors(input1=input1, input2=input2, weight=weight, bias=bias)
    batch, sizes = input1.shape[:-1], (input1.shape[-1:], input2.shape[-1:])
    if weight.ndim != 3 or (*sizes[0], *sizes[1]) != weight.shape[1:] or input2.shape[:-1] != batch:
        raise ValueError(
            f"input1, input2, weight: got shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
            f"{tuple(weight.shape)}, must be (..., I), (..., J) and (O, I, J)"
        )
    forms = linear(input2, weight.flatten(0, 1)).unflatten(-1, weight.shape[:2])
    start = None if bias is None else bias.unsqueeze(-1)
    return product(forms, input1.unsqueeze(-1), start).squeeze(-1)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Exact `torch.linalg.multi_dot`, from left to right; the first and the last may be vectors."""
    if len(tensors) < 2:
        raise ValueError(f"tensors: got {len(tensors)}, must be at least two")
    inner = [tensor.ndim for tensor in tensors[1:-1]]
    if any(ndim != 2 for ndim in inner) or not {tensors[0].ndim, tensors[-1].ndim} <= {1, 2}:
        raise ValueError(f"tensors: got {[tensor.ndim for tensor in tensors]} axes, must be 2 (first and last: 1 or 2)")
    result = tensors[0]
    for tensor in tensors[1:]:
        result = matmul(result, tensor)
    return result


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Exact `torch.chain_matmul`, from left to right."""
    given = matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices
    return given[0] if len(given) == 1 else multi_dot(given)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Exact `torch.linalg.vecdot`: the sum of products over one axis, the others broadcast."""
    check_tensors(x=x, y=y)
    if x.ndim == 0 or y.ndim == 0 or x.shape[dim] != y.shape[dim]:
        raise ValueError(f"x, y: got shapes {tuple(x.shape)} and {tuple(y.shape)}, must be equal on axis {dim}")
    rows, columns = x.movedim(dim, -1), y.movedim(dim, -1)
    return product(rows.unsqueeze(-2), columns.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Exact `torch.linalg.matrix_power` of square matrices (..., M, M), for exponents from 0."""
    check_tensors(A=A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"A: got shape {tuple(A.shape)}, must be (..., M, M)")
    if n < 0:
        raise NotImplementedError(
            f"n: got {n}, must be at least 0; an inverse has no exact path, run it inside "
            f"golden.torch.precision(enabled=False) to let PyTorch compute it"
        )
    half = current_plan().half
    if n == 0:
        return torch.eye(A.shape[-1], dtype=half.dtype, device=A.device).expand(A.shape).clone()
    square = round_to_half(A, half, half.dtype)
    while n % 2 == 0:
        square, n = matmul(square, square), n // 2
    result = square
    while n := n // 2:
        square = matmul(square, square)
        if n % 2:
            result = matmul(result, square)
    return result


def affine_grid(theta: Tensor, size: torch.Size | list[int], align_corners: bool = False) -> Tensor:
    """Exact `torch.nn.functional.affine_grid`: every position of the output, mapped by `theta`.

    Defined here: the order of k is x, y, z, 1, the order of the columns of `theta`. Positions are rounded to the half
    format as every input of a product; the result has the half dtype.
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


def _positions(length: int, align_corners: bool, device: torch.device) -> Tensor:
    """Return the centres of the pixels of a line from -1 to 1, as PyTorch computes them in fp32."""
    if length == 1:
        return torch.zeros(1, dtype=torch.float32, device=device)
    line = torch.linspace(-1, 1, length, dtype=torch.float32).to(device)  # the bits of the CPU, on every device
    return line if align_corners else line * ((length - 1) / length)
