"""The arithmetic of convolutions on NumPy arrays, of any number of axes: windows are looked up, never copied.

Three products are closed under differentiation. A convolution multiplies windows by kernels. A transposed convolution
multiplies positions by kernels and adds where windows overlap. The gradient of the kernels multiplies positions by
windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import golden
from golden.arrays.value_products import indexed_values
from golden.formats import FloatFormat
from golden.kernels.products import Indexed
from golden.kernels.windows import Windows, correlate, overlap, slide
from golden.reduction import Reduction
from golden.torch.settings.draws import part_of

__all__ = ["MOST_VALUES", "Geometry", "convolution", "formats_of", "kernel_product", "padded", "tables", "transposed"]

Values = NDArray[np.float32]
_Table = NDArray[np.int64]

#: Values of products before they are added up: 64 MiB.
MOST_VALUES = 1 << 24
# How NumPy begins to say that the bytes of an array are no int64.
_TOO_BIG = "array is too big", "Maximum allowed"


class Geometry(NamedTuple):
    """The positions of windows.

    Parameters
    ----------
    steps, gaps : tuples of int
        Stride and dilation of each axis.
    sides : tuple of int
        Zeros before and after each axis, in turn; a negative number cuts off.
    groups : int
    """

    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    sides: tuple[int, ...]
    groups: int

    def padded(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lengths of padded axes."""
        return tuple(n + a + b for n, a, b in zip(size, self.sides[::2], self.sides[1::2], strict=True))

    def positions(self, size: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many windows fit on each axis."""
        each = zip(self.padded(size), kernel, self.steps, self.gaps, strict=True)
        return tuple((n - gap * (length - 1) - 1) // step + 1 for n, length, step, gap in each)


def _naming_the_largest(multiply: Callable[..., Values]) -> Callable[..., Values]:
    """Have a function that runs out of memory name what asks for the most: stride, dilation or padding."""

    @wraps(multiply)
    def run(*given: Any) -> Values:
        try:
            return multiply(*given)
        except (MemoryError, ValueError) as error:
            if isinstance(error, ValueError) and not str(error).startswith(_TOO_BIG):
                raise
            geometry = next(each for each in given if isinstance(each, Geometry))
            numbers = {"stride": geometry.steps, "dilation": geometry.gaps, "padding": geometry.sides}
            name, largest = max(numbers.items(), key=lambda each: max(each[1]))
            if max(largest) <= 1:  # the arrays themselves are large
                raise
            raise MemoryError(
                f"{name}: got {', '.join(map(str, largest))}, must be smaller: there is no memory for so many values"
            ) from error

    return run


def formats_of(reduction: Reduction) -> tuple[FloatFormat, FloatFormat]:
    """Return the formats of the factors and of the results."""
    return reduction.factors, reduction.result


def _is_chain(reduction: Reduction) -> bool:
    """Return whether sums are chains of fp32 steps, everything is rounded to nearest even, and subnormals are kept."""
    return reduction.is_chain and reduction.is_nearest_even and not reduction.flushes


def _grid(counts: tuple[int, ...], strides: list[int]) -> _Table:
    table = np.zeros(1, np.int64)
    for count, stride in zip(counts, strides, strict=True):
        table = (table[:, np.newaxis] + np.arange(count, dtype=np.int64) * stride).ravel()
    return table


@lru_cache(maxsize=256)
def tables(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    counts: tuple[int, ...],
    steps: tuple[int, ...],
    gaps: tuple[int, ...],
    groups: int,
) -> tuple[_Table, _Table, _Table, _Table]:
    """Return where items, groups, elements of a window and positions begin in a padded array of this shape."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    channels = shape[1] // groups
    along = [stride * gap for stride, gap in zip(strides[2:], gaps, strict=True)]
    across = [stride * step for stride, step in zip(strides[2:], steps, strict=True)]
    return (
        _grid(shape[:1], strides[:1]),
        _grid((groups,), [channels * strides[1]]),
        _grid((channels, *kernel), [strides[1], *along]),
        _grid(counts, across),
    )


@lru_cache(maxsize=256)
def _pairs(first: int, first_stride: int, second: int, second_stride: int) -> _Table:
    return _grid((first, second), [first_stride, second_stride])


def _shifted(values: Values, offsets: tuple[int, ...], size: tuple[int, ...]) -> Values:
    """Return the values from these offsets on, zeros where there are none; axes 0 and 1 stay."""
    if not any(offsets) and values.shape[2:] == size:
        return np.ascontiguousarray(values)
    result = np.zeros((*values.shape[:2], *size), np.float32)
    given, taken = [slice(None)] * 2, [slice(None)] * 2
    for offset, n, length in zip(offsets, values.shape[2:], size, strict=True):
        first, last = max(0, -offset), max(0, -offset, min(length, n - offset))
        taken.append(slice(first, last))
        given.append(slice(first + offset, last + offset))
    result[tuple(taken)] = values[tuple(given)]
    return result


def padded(x: Values, geometry: Geometry) -> Values:
    """Return `x` (B, C, ...) with the zeros around it that the geometry asks for, contiguous."""
    return _shifted(x, tuple(-side for side in geometry.sides[::2]), geometry.padded(x.shape[2:]))


def _windows(kernel: tuple[int, ...], geometry: Geometry) -> Windows:
    return Windows(kernel, geometry.steps, geometry.gaps, geometry.sides[::2])


@_naming_the_largest
def convolution(x: Values, kernels: Values, bias: Values | None, geometry: Geometry, reduction: Reduction) -> Values:
    """Multiply windows of `x` (B, C, ...) by `kernels` (N, C / groups, ...): (B, N, ...)."""
    groups, size = geometry.groups, kernels.shape[2:]
    counts = geometry.positions(x.shape[2:], size)
    if _is_chain(reduction) and kernels.shape[:2] == (groups, 1):  # depthwise: windows are read where they are
        each = np.empty((len(x), groups, *counts), np.float32)
        start = None if bias is None else np.ascontiguousarray(golden.quantize(bias, reduction.result))
        windows, formats = _windows(size, geometry), formats_of(reduction)
        weights = np.ascontiguousarray(golden.quantize(kernels, formats[0]))
        if slide(np.ascontiguousarray(x), weights, start, each, windows, formats):
            return each
    data, flat = padded(x, geometry), np.ascontiguousarray(kernels)
    items, starts, window, places = tables(data.shape, size, counts, geometry.steps, geometry.gaps, groups)
    outputs, length = kernels.shape[0] // groups, len(window)
    left = Indexed(
        flat.reshape(-1),
        _pairs(len(items), 0, groups, outputs * length),
        _pairs(1, 0, outputs, length),
        _pairs(1, 0, length, 1),
    )
    right = Indexed(data.reshape(-1), (items[:, np.newaxis] + starts).ravel(), window, places)
    initial = None
    if bias is not None:
        each = golden.quantize(bias, reduction.result).reshape(1, groups, outputs, 1)
        initial = np.broadcast_to(each, (len(items), groups, outputs, 1)).reshape(-1, outputs, 1)
    result = indexed_values(left, right, reduction=reduction, initial=initial)
    return result.reshape(len(items), kernels.shape[0], *counts)


@_naming_the_largest
def kernel_product(g: Values, x: Values, size: tuple[int, ...], geometry: Geometry, reduction: Reduction) -> Values:
    """Multiply `g` (B, N, positions) by the windows of `x` (B, C, ...) at them: kernels (N, C / groups, *size)."""
    groups, counts = geometry.groups, g.shape[2:]
    if _is_chain(reduction) and x.shape[1] == g.shape[1] == groups:
        kernels = np.empty((groups, 1, *size), np.float32)
        given, formats = (np.ascontiguousarray(x), np.ascontiguousarray(g)), formats_of(reduction)
        if correlate(*given, kernels, _windows(size, geometry), formats):
            return kernels
    data, flat = padded(x, geometry), np.ascontiguousarray(g)
    items, starts, window, places = tables(data.shape, size, counts, geometry.steps, geometry.gaps, groups)
    outputs, count = g.shape[1] // groups, math.prod(counts)
    left = Indexed(
        flat.reshape(-1),
        _pairs(1, 0, groups, outputs * count),
        _pairs(1, 0, outputs, count),
        _pairs(len(items), g.shape[1] * count, count, 1),
    )
    right = Indexed(data.reshape(-1), starts, (items[:, np.newaxis] + places).ravel(), window)
    return indexed_values(left, right, reduction=reduction).reshape(g.shape[1], x.shape[1] // groups, *size)


@_naming_the_largest
def transposed(
    g: Values, kernels: Values, bias: Values | None, size: tuple[int, ...], geometry: Geometry, reduction: Reduction
) -> Values:
    """Multiply `g` (B, N, positions) by `kernels` (N, C / groups, ...), for every window; add up: (B, C, *size).

    The overlaps are added in fp32, in the order of the kernels' elements, from +0; then the bias.
    """
    groups, counts, lengths = geometry.groups, g.shape[2:], kernels.shape[2:]
    channels, outputs, count = kernels.shape[1], kernels.shape[0] // groups, math.prod(counts)
    windows = _windows(lengths, geometry)
    matrices = kernels.reshape(groups, outputs, channels * math.prod(lengths)).swapaxes(1, 2)
    whole = tuple((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(counts, *geometry[:2], lengths, strict=True))
    result = np.empty((len(g), groups * channels, *size), np.float32)
    if _is_chain(reduction) and kernels.shape[:2] == (groups, 1):
        formats = formats_of(reduction)
        weights = np.ascontiguousarray(golden.quantize(kernels, formats[0]))
        if overlap(np.ascontiguousarray(g), weights, result, windows, formats):
            return _ended(result, bias, reduction)
    # Of kernels of one element, nothing overlaps: each sum has one addend, a value of the half format.
    is_flat = math.prod(lengths) == 1 and set(geometry.steps) == {1} and not any(geometry.sides) and bias is None
    items = max(1, MOST_VALUES // max(1, groups * matrices.shape[1] * count))
    for first in range(0, len(g), items):
        part = g[first : first + items].reshape(-1, groups, outputs, count)
        each = golden.matmul_values(matrices, part, reduction=part_of(reduction, first))
        if is_flat:
            np.add(each.reshape(len(part), groups * channels, *size), 0.0, out=result[first : first + items])
            continue
        each = each.reshape(len(part), groups * channels, *lengths, *counts)
        result_part = result[first : first + items]
        if overlap(each, None, result_part, windows):
            continue
        total = np.zeros((len(part), groups * channels, *whole), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
            for element in np.ndindex(*lengths):
                ends = zip(element, counts, *geometry[:2], strict=True)
                places = tuple(slice(e * d, e * d + (n - 1) * s + 1, s) for e, n, s, d in ends)
                total[(slice(None), slice(None), *places)] += each[(slice(None), slice(None), *element)]
            result_part[...] = _shifted(total, geometry.sides[::2], size)
    return result if is_flat else _ended(result, bias, reduction)


def _ended(sums: Values, bias: Values | None, reduction: Reduction) -> Values:
    """Add the bias to sums of overlaps, and round once, in place."""
    if bias is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaNs are results like others
            sums += golden.quantize(bias, reduction.result).reshape(-1, *(1 for _ in sums.shape[2:]))
    return golden.quantize(sums, reduction.result, out=sums, subnormals=reduction.subnormals)
