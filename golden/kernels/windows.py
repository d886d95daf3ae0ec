"""Calls of the compiled library for windows that slide over planes. Each returns False if NumPy has to do the work."""

from __future__ import annotations

import struct
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.formats import FP32, FloatFormat
from golden.kernels.library import active, address, format_number

__all__ = ["Windows", "correlate", "overlap", "slide"]

Values = NDArray[np.float32]
_Formats = tuple[FloatFormat, FloatFormat]
_CALL = struct.Struct("28q")  # struct cbfloat_windows of kernels.h


class Windows(NamedTuple):
    """Where windows lie, on one to three axes.

    Parameters
    ----------
    kernel : tuple of int
        How many elements a window has.
    steps, gaps : tuples of int
        Stride and dilation.
    before : tuple of int
        Zeros before each axis; a negative number cuts off.
    """

    kernel: tuple[int, ...]
    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    before: tuple[int, ...]


def slide(
    x: Values,
    weights: Values,
    initial: Values | None,
    result: Values,
    windows: Windows,
    formats: _Formats,
) -> bool:
    """Fill `result` (B, C, ...) with the chains of fp32 steps along the windows of `x` (B, C, ...), rounded once.

    Parameters
    ----------
    x : float32 array, contiguous
        Rounded to the first of the formats.
    weights : float32 array of shape (C, ...), contiguous
        Values of the first format: a kernel for each channel.
    initial : float32 array of shape (C,), optional
        Where the chains start from.
    formats : pair of FloatFormat
        Of the factors and of the result.
    """
    return _run("slide", (x, weights, initial, result), windows, formats)


def overlap(
    values: Values,
    weights: Values | None,
    result: Values,
    windows: Windows,
    formats: _Formats = (FP32,) * 2,
) -> bool:
    """Fill `result` (B, C, ...) with sums in fp32, where windows meet, of products in the order of a kernel's elements.

    Parameters
    ----------
    values : float32 array, contiguous
        With `weights`, factors (B, C, positions). Else the products, of as many values as a kernel has elements for
        each position: (B, C, *kernel, *positions).
    weights : float32 array of shape (C, ...), contiguous, optional
        As of `slide`; the products are chains of one fp32 step, each rounded to the second format.
    """
    return _run("overlap", (values, weights, None, result), windows, formats)


def correlate(x: Values, g: Values, result: Values, windows: Windows, formats: _Formats) -> bool:
    """Fill `result` (C, 1, ...), the gradient of `slide` by its kernels, of `x` (B, C, ...) and `g` (B, C, positions).

    Each is one chain of fp32 steps over item, then position. Both arrays are contiguous, and are rounded to the first
    of the formats.
    """
    return _run("correlate", (x, g, None, result), windows, formats, g.shape)


def _run(
    name: str,
    arrays: tuple[Values, Values | None, Values | None, Values],
    windows: Windows,
    formats: _Formats,
    ends: tuple[int, ...] = (),
) -> bool:
    """Call a function whose planes are the result's, unless `ends` gives their shape."""
    values, *_, result = arrays
    served, axes = active(), len(windows.kernel)
    if served is None or not all(fmt.is_ieee for fmt in formats) or not (values.size and result.size):
        return False
    ends = ends or result.shape
    planes, kernels = prod(ends[:2]), ends[1]
    ones, zeros = (1,) * (3 - axes), (0,) * (3 - axes)
    shapes: list[Any] = [*ones, *values.shape[-axes:]]
    for each in windows[:3]:
        shapes += *ones, *each
    shapes += *zeros, *windows.before, *ones, *ends[2:]
    pointers = [0 if each is None else address(each) for each in arrays]
    numbers = served.path, served.threads, planes, kernels, *map(format_number, formats)
    if getattr(served.library, f"cbfloat_{name}")(_CALL.pack(*numbers, *shapes, *pointers)):
        raise MemoryError(f"no memory for windows of {windows.kernel} over planes of shape {values.shape}")
    return True
