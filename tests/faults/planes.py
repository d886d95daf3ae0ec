"""The questions about windows that slide over planes, and the answers by NumPy, which picks every window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, kernels, matmul_values, quantize
from golden.kernels.windows import Windows, correlate, overlap, slide

from ..golden.kernels.operands import ODD_ONES

#: The shapes that planes of one, two and three axes may have at most: of kernels, of results.
_KERNELS, _PLANES = ((23,), (4, 7), (3, 2, 4)), ((150,), (9, 19), (4, 5, 7))
#: Operands and results of windows.
_OF_WINDOWS = (CBFLOAT16, CBFLOAT16), (BF16, FP32), (FP16, FP32), (ODD_ONES[5], FP32), (FP32, FP32), (BF16, FP16)


def planes(rng: np.random.Generator) -> Iterator[Any]:
    """Windows that slide over planes, sums where they overlap, gradients of kernels: shapes and places of all kinds."""
    for number in range(36):
        axes, formats = number % 3, _OF_WINDOWS[number // 3 % len(_OF_WINDOWS)]
        kernel, size, output = (
            tuple(int(rng.integers(1, most + 1)) for most in longest[axes]) for longest in (_KERNELS, _PLANES, _PLANES)
        )
        steps, gaps = (tuple(rng.choice((1, 1, 2, 3), axes + 1).tolist()) for _ in "sg")
        windows = Windows(kernel, steps, gaps, tuple(rng.integers(-3, 5, axes + 1).tolist()))
        batch, channels = (3, 1, 2)[number % 3], int(rng.choice((1, 4, 15, 16, 17, 37)))
        yield from _windowed(rng, windows, (batch, channels, *size), output, formats)
    # Every result reads a whole window, none of which lies outside, and no axis but the last has steps.
    yield from _windowed(rng, Windows((3, 3), (1, 2), (1, 1), (0, 0)), (1, 3, 12, 21), (10, 10), (BF16, FP32))
    # Products at either end of float32.
    for power in (-74, 63):
        for kernel in (1, 3):
            yield from _windowed(rng, Windows((kernel,), (1,), (1,), (1,)), (1, 37, 7), (3,), (FP32, FP32), 2.0**power)
    with kernels.use(str(kernels.kernel_info()["path"]), 3):
        yield from _windowed(rng, Windows((3, 3), (2, 1), (1, 2), (1, -1)), (2, 35, 30, 67), (15, 60), (BF16, FP32))


def _windowed(
    rng: np.random.Generator,
    windows: Windows,
    shape: tuple[int, ...],
    output: tuple[int, ...],
    formats: tuple[FloatFormat, FloatFormat],
    scale: float = 1.0,
) -> Iterator[Any]:
    """Yield what each function makes of planes of a shape, and the room around it, which stays as it is."""
    operand, result = formats
    batch, channels, *size = shape
    x, g = (_amid(_mixed(rng, (batch, channels, *axes), scale)) for axes in (size, output))
    weights = _amid(quantize(_mixed(rng, (channels, *windows.kernel), scale), operand))
    start, products = _amid(_mixed(rng, (channels,))), _amid(_mixed(rng, (batch, channels, *windows.kernel, *output)))
    options = {"operand": operand, "level": 0, "out": result}
    count = int(np.prod(windows.kernel))

    for initial in (start, None):
        got, room = _room((batch, channels, *output))
        if not slide(x, weights, initial, got, windows, formats):
            each = _picked(x, windows, output)
            first = None if initial is None else initial[:, np.newaxis, np.newaxis]
            column = weights.reshape(channels, count, 1)
            got[...] = matmul_values(each, column, initial=first, **options).reshape(got.shape)
        yield _canonical(room)

    # The transpose: from the positions of the results back to the planes.
    for factors in (weights, None):
        got, room = _room(shape)
        given = (g, factors, got, windows, formats) if factors is not None else (products, None, got, windows)
        if not overlap(*given):
            addends = products.reshape(batch, channels, count, *output)
            if factors is not None:
                row = weights.reshape(channels, 1, count)
                addends = matmul_values(g.reshape(batch, channels, -1, 1), row, **options)
                addends = np.moveaxis(addends, -1, 2).reshape(batch, channels, count, *output)
            got[...] = _overlapping(addends, windows, tuple(size))
        yield _canonical(room)

    got, room = _room((channels, 1, *windows.kernel))
    if not correlate(x, g, got, windows, formats):
        each = np.swapaxes(_picked(x, windows, output), 0, 1).reshape(channels, -1, count)
        row = np.swapaxes(g, 0, 1).reshape(channels, 1, -1)
        got[...] = matmul_values(row, each, **options).reshape(got.shape)
    yield _canonical(room)


def _mixed(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> Any:
    """Return values near 1, times a scale, some of which are large or tiny, or zeros; a few are not finite."""
    values = rng.normal(size=shape) * scale
    if scale == 1.0:
        values *= 2.0 ** np.where(rng.random(shape) < 0.1, rng.integers(-70, 60, shape), 0)
    values = np.where(rng.random(shape) < 0.05, rng.choice([0.0, -0.0], shape), values)
    special = rng.choice([np.inf, -np.inf, np.nan], shape)
    return np.where(rng.random(shape) < 0.002, special, values).astype(np.float32)


def _amid(values: Any) -> Any:
    """Return a copy of the values, amid others that would show in results."""
    inside, _ = _room(values.shape)
    inside[...] = values
    return inside


def _room(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a contiguous array and the room that it lies in."""
    count = int(np.prod(shape))
    room = np.full(count + 512, 1234.5, np.float32)
    return room[256 : count + 256].reshape(shape), room


def _canonical(values: Any) -> Any:
    return np.where(np.isnan(values), np.float32(np.nan), values)


def _places(windows: Windows, axis: int, positions: int) -> Any:
    """Return where on an axis each element of the window at each position lies: positions by elements."""
    at = np.arange(positions)[:, np.newaxis] * windows.steps[axis] - windows.before[axis]
    return at + np.arange(windows.kernel[axis]) * windows.gaps[axis]


def _picked(x: Any, windows: Windows, output: tuple[int, ...]) -> Any:
    """Return the elements of every window, zeros outside: (B, C, positions, elements)."""
    axes = len(output)
    for axis, positions in enumerate(output):
        at, length = _places(windows, axis, positions), x.shape[2 + 2 * axis]
        edged = np.concatenate([x, np.zeros_like(x.take([0], 2 + 2 * axis))], 2 + 2 * axis)
        x = edged.take(np.where((at >= 0) & (at < length), at, length), 2 + 2 * axis)
    order = (0, 1, *range(2, 2 + 2 * axes, 2), *range(3, 3 + 2 * axes, 2))
    return x.transpose(order).reshape(*x.shape[:2], int(np.prod(output)), -1)


def _overlapping(addends: Any, windows: Windows, size: tuple[int, ...]) -> Any:
    """Return the fp32 sums of products (B, C, elements, *positions) in planes of a size, in the order of elements."""
    sums = np.zeros((*addends.shape[:2], *size), np.float32)
    places = [_places(windows, axis, positions) for axis, positions in enumerate(addends.shape[3:])]
    for number, element in enumerate(np.ndindex(*windows.kernel)):
        along = [at[:, each] for at, each in zip(places, element, strict=True)]
        inside = [(at >= 0) & (at < length) for at, length in zip(along, size, strict=True)]
        part = addends[:, :, number][(slice(None), slice(None), *np.ix_(*inside))]
        to = np.ix_(*(at[kept] for at, kept in zip(along, inside, strict=True)))
        with np.errstate(over="ignore", invalid="ignore"):
            sums[(slice(None), slice(None), *to)] += part
    return sums
