"""Convolutions on a CUDA device: the three products of `golden.torch.products.windows`, by its tables."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from golden.cuda.plan import Arrays, Matrix
from golden.reduction import Reduction
from golden.torch.products.gpu.devices import MEMORY, check_device, constant, readable
from golden.torch.products.gpu.elementwise import rounded
from golden.torch.products.gpu.products import is_served, matrix_product, multiply, operand_values
from golden.torch.products.windows import MOST_VALUES, Geometry, formats_of, tables
from golden.torch.settings.draws import part_of

__all__ = ["Windows", "convolution", "kernel_product", "padded", "transposed"]


def padded(x: torch.Tensor, sides: tuple[int, ...]) -> torch.Tensor:
    """Return (B, C, ...) with zeros around it, or cut off where a number is negative."""
    pairs = zip(sides[::2], sides[1::2], strict=True)
    return F.pad(x, [side for pair in reversed(list(pairs)) for side in pair]) if any(sides) else x


def _operands(first: torch.Tensor, second: torch.Tensor, reduction: Reduction) -> tuple[torch.Tensor, torch.Tensor]:
    operand, _ = formats_of(reduction)
    return operand_values(first, operand).contiguous(), operand_values(second, operand).contiguous()


class Windows:
    """Where the windows of a padded tensor (B, C, ...) begin, and where their elements are."""

    def __init__(
        self, data: torch.Tensor, kernel: tuple[int, ...], counts: tuple[int, ...], geometry: Geometry
    ) -> None:
        steps, gaps, _, self.groups = geometry
        self._key = (tuple(data.shape), kernel, counts, steps, gaps, self.groups)
        self._device = data.device
        self.item = math.prod(data.shape[1:])
        self.group = self.item // self.groups

    def table(self, name: str) -> int:
        """Return the address of a table."""
        return self.offsets(name).data_ptr()

    def offsets(self, name: str) -> torch.Tensor:
        """Return a table by name: elements of a window, positions of one item or of all items, or starts of items."""

        def make() -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
            items, _, elements, positions = tables(*self._key)
            of_all = (items[:, np.newaxis] + positions).ravel()
            return {"elements": elements, "positions": positions, "items": of_all}[name]

        return constant(self._device, (name, *self._key), make)


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    geometry: Geometry,
    reduction: Reduction,
    dtype: torch.dtype,
) -> torch.Tensor | None:
    """Multiply windows of `x` (B, C, ...) by kernels (N, C / groups, ...): (B, N, ...)."""
    check_device(x=x, weight=weight, bias=bias)
    size = tuple(weight.shape[2:])
    counts = geometry.positions(tuple(x.shape[2:]), size)
    result = torch.empty((len(x), len(weight), *counts), dtype=dtype, device=x.device)
    if not is_served(reduction, result.numel()):
        return None
    data, kernels = _operands(padded(x, geometry.sides), weight, reduction)
    windows = Windows(data, size, counts, geometry)
    outputs, length, places = len(weight) // geometry.groups, math.prod(weight.shape[1:]), math.prod(counts)
    left = Matrix(kernels.data_ptr(), MEMORY[kernels.dtype], length, 1, (0, outputs * length))
    right = Matrix(
        data.data_ptr(), MEMORY[data.dtype], 0, 0, (windows.item, windows.group),
        windows.table("elements"), windows.table("positions"),
    )  # fmt: skip
    into = Matrix(result.data_ptr(), MEMORY[dtype], places, 1, (len(weight) * places, outputs * places))
    start = None
    if bias is not None:
        bias = readable(bias)
        start = Matrix(bias.data_ptr(), MEMORY[bias.dtype], bias.stride(0), 0, (0, outputs * bias.stride(0)))
    batch, shape = (len(x), geometry.groups), (outputs, length, places)
    multiply(x.device, reduction, Arrays(batch, shape, left, right, into, start))
    return result


def kernel_product(
    gradient: torch.Tensor,
    x: torch.Tensor,
    size: tuple[int, ...],
    geometry: Geometry,
    reduction: Reduction,
    dtype: torch.dtype,
) -> torch.Tensor | None:
    """Multiply (B, N, positions) by the windows of `x` (B, C, ...) at them: kernels (N, C / groups, *size)."""
    check_device(gradient=gradient, x=x)
    items, whole, *counts = gradient.shape
    result = torch.empty((whole, x.shape[1] // geometry.groups, *size), dtype=dtype, device=x.device)
    if not is_served(reduction, result.numel()):
        return None
    g, data = _operands(gradient, padded(x, geometry.sides), reduction)
    windows = Windows(data, size, tuple(counts), geometry)
    outputs, places, length = whole // geometry.groups, math.prod(counts), math.prod(result.shape[1:])
    along = constant(
        x.device,
        ("rows of all items", items, whole, places),
        lambda: (np.arange(items)[:, np.newaxis] * (whole * places) + np.arange(places)).ravel(),
    )
    left = Matrix(g.data_ptr(), MEMORY[g.dtype], places, 0, (outputs * places,), 0, along.data_ptr())
    right = Matrix(
        data.data_ptr(), MEMORY[data.dtype], 0, 0, (windows.group,), windows.table("items"), windows.table("elements")
    )
    into = Matrix(result.data_ptr(), MEMORY[dtype], length, 1, (outputs * length,))
    arrays = Arrays((geometry.groups,), (outputs, items * places, length), left, right, into)
    multiply(x.device, reduction, arrays)
    return result


def transposed(
    g: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    size: tuple[int, ...],
    geometry: Geometry,
    reduction: Reduction,
    dtype: torch.dtype,
) -> torch.Tensor | None:
    """Multiply (B, N, positions) by kernels (N, C / groups, ...), for every window; add up: (B, C, *size).

    The overlaps are added in fp32, in the order of the kernels' elements, from +0; then the bias.
    """
    check_device(x=g, weight=weight, bias=bias)
    groups, counts, lengths = geometry.groups, tuple(g.shape[2:]), tuple(weight.shape[2:])
    channels, outputs, count = weight.shape[1], len(weight) // groups, math.prod(counts)
    matrices = weight.reshape(groups, outputs, channels * math.prod(lengths)).mT
    items = max(1, MOST_VALUES // max(1, groups * matrices.shape[1] * count))  # as on the CPU, for the random bits
    if not is_served(reduction, items * groups * matrices.shape[1] * count):
        return None
    whole = tuple((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(counts, *geometry[:2], lengths, strict=True))
    ends_of = zip(size, geometry.sides[::2], whole, strict=True)
    cut = [side for length, first, before in ends_of for side in (-first, first + length - before)]
    result = torch.empty((len(g), groups * channels, *size), dtype=torch.float32, device=g.device)
    for first in range(0, len(g), items):
        part = g[first : first + items].reshape(-1, groups, outputs, count)
        each = matrix_product(matrices, part, None, part_of(reduction, first), torch.float32)
        assert each is not None
        each = each.reshape(len(part), groups * channels, *lengths, *counts)
        total = torch.zeros((len(part), groups * channels, *whole), dtype=torch.float32, device=g.device)
        for element in np.ndindex(*lengths):
            ends = zip(element, counts, *geometry[:2], strict=True)
            places = tuple(slice(e * d, e * d + (n - 1) * s + 1, s) for e, n, s, d in ends)
            total[(slice(None), slice(None), *places)] += each[(slice(None), slice(None), *element)]
        result[first : first + items] = padded(total, tuple(cut))
    if bias is not None:
        result += rounded(bias, Reduction(out=reduction.result), torch.float32).reshape(-1, *(1 for _ in size))
    return rounded(result, Reduction(out=reduction.result), dtype)
