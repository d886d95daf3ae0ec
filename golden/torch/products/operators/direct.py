"""Exact matrix products straight from the memory of tensors: without NumPy's views, small ones take less time.

It serves the common case, matrices on the compiled library, and leaves the rest to `golden.matmul_values`.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from golden.formats import BF16, FP16
from golden.kernels.library import active, format_number
from golden.kernels.products import call_of
from golden.torch.settings.reductions import format_of, is_stochastic, reduction_in

__all__ = ["matrix_product", "rounded"]

# struct cbfloat_product of kernels.h.
_PRODUCT = struct.Struct("26q")
# enum cbfloat_contents: contents of arrays other than values.
_CODES_OF_A, _CODES_OF_B, _CODES_OF_RESULT, _INITIAL_ROUNDED = 2, 4, 8, 16
_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
_FORMAT_OF_DTYPE = {torch.float16: format_number(FP16), torch.bfloat16: format_number(BF16)}


@lru_cache(maxsize=256)
def _fields(reduction: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the name of the format of factors and results, and the fields of the product behind its contents.

    None unless both are in one format, summed at a level, everything is rounded to nearest even, and subnormals are
    kept.
    """
    whole = reduction_in(reduction)
    if whole.operand is None or whole.operand != whole.out or whole.accumulator:
        return None
    if whole.flushes or not whole.is_nearest_even:
        return None
    return whole.operand.name, call_of(whole).numbers[1:]


@lru_cache(maxsize=256)
def _offsets(batch: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[np.int64]:
    """Return where each matrix of a batch begins."""
    offsets = np.zeros(1, np.int64)
    for length, stride in zip(batch, strides, strict=True):
        offsets = (offsets[:, np.newaxis] + np.arange(length, dtype=np.int64) * stride).ravel()
    return offsets


def matrix_product(
    a: torch.Tensor,
    b: torch.Tensor,
    initial: torch.Tensor | None,
    reduction: str,
    dtype: torch.dtype,
    *,
    by_rows: bool = False,
) -> torch.Tensor | None:
    """Multiply (..., K) by a matrix (K, N), from a row or a matrix of initial values; None if it is not served here.

    Batches of matrices (..., K, N) are served, too, beside as many of `a` and without initial values. With `by_rows`,
    `b` is a matrix (N, K).
    """
    served, shape = active(), a.shape
    fields = None if is_stochastic(reduction) else _fields(reduction)
    if served is None or fields is None or len(shape) < 2 or a.is_neg() or b.is_neg():
        return None
    half, formats = fields
    *b_batch, length, columns = b.shape
    *b_steps, down, across = b.stride()
    if by_rows:
        length, columns, down, across = columns, length, across, down
    count = a.numel()
    if not (count and columns) or shape[-1] != length:
        return None
    contents = 1
    a_type, b_type = a.dtype, b.dtype
    if a_type is not torch.float32:
        if _NAMES.get(a_type) == half:
            contents += _CODES_OF_A
        else:
            a = a.to(torch.float32)
    if b_type is not torch.float32:
        if _NAMES.get(b_type) == half:
            contents += _CODES_OF_B
        else:
            b = b.to(torch.float32)
    library, path, threads = served
    rows, batches, x_offsets, y_offsets = count // length, 1, 0, 0
    if b_batch:
        batch = shape[:-2]
        if initial is not None or tuple(b_batch) != batch:
            return None
        *x_strides, row_stride, step = a.stride()
        places = _offsets(batch, tuple(x_strides)), _offsets(batch, tuple(b_steps))  # live until the call is over
        x_offsets, y_offsets = (each.ctypes.data for each in places)
        batches = len(places[0])
        rows //= batches
    elif len(shape) == 2:
        row_stride, step = a.stride()
    elif a.is_contiguous():
        row_stride, step = length, 1
    else:
        return None
    begin = (0, 0, 0, 0)
    if initial is not None:
        given = initial.shape
        if initial.is_neg() or given not in ((), (1,), (columns,), (rows, columns)) or (len(given) == 2 != len(shape)):
            return None
        start = initial if initial.dtype is torch.float32 else initial.to(torch.float32)
        start = start.contiguous()
        contents += _INITIAL_ROUNDED
        begin = (start.data_ptr(), columns * (len(given) == 2), int(given[-1:] == (columns,)), 0)
    in_codes = _NAMES.get(dtype) == half
    # A tuple of lengths takes longer.
    result = torch.empty(*shape[:-1], columns, dtype=dtype if in_codes else torch.float32)
    failed = library.cbfloat_multiply(
        _PRODUCT.pack(
            path, threads, 0, contents + _CODES_OF_RESULT * in_codes, *formats, batches, rows, columns, length,
            a.data_ptr(), row_stride, step, x_offsets, b.data_ptr(), down, across, y_offsets, *begin,
            result.data_ptr(),
        )
    )  # fmt: skip
    if failed:
        raise MemoryError(f"no memory for the product of shapes {tuple(shape)} and {tuple(b.shape)}")
    if in_codes or dtype is torch.float32:
        return result
    return _codes(result, dtype)


def _codes(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Round contiguous values; PyTorch's own cast to bfloat16 turns the canonical NaN into 0xFFFF."""
    library, path, threads = active()  # type: ignore[misc]
    codes, number = torch.empty(values.shape, dtype=dtype), _FORMAT_OF_DTYPE[dtype]
    library.cbfloat_encode(path, threads, number, values.numel(), values.data_ptr(), 32, codes.data_ptr())
    return codes


def rounded(x: torch.Tensor, half: str, dtype: torch.dtype) -> torch.Tensor | None:
    """Round to the half format; None if it is not served here."""
    served, fmt = active(), format_of(half)
    if served is None or not fmt.is_ieee or x.is_neg():
        return None
    x = x.to(torch.float32).contiguous()
    if _NAMES.get(dtype) == fmt.name:
        return _codes(x, dtype)
    library, path, threads = served
    values = torch.empty(x.shape)
    library.cbfloat_quantize(path, threads, format_number(fmt), x.numel(), x.data_ptr(), 32, values.data_ptr())
    return values if dtype is torch.float32 else _codes(values, dtype)
