"""Exact matrix products straight from the memory of tensors: without NumPy's views, small ones take less time.

It serves the common case, matrices on the compiled library, and leaves the rest to `golden.matmul_values`.
"""

from __future__ import annotations

import struct
from functools import lru_cache

import torch

import golden
from golden.kernels.library import active, format_number
from golden.kernels.products import Formats
from golden.rounding import NEAREST
from golden.torch.operators.format_text import accumulator_of, format_of, operand_of, rounding_of, sums_of

__all__ = ["matrix_product"]

# struct cbfloat_product of kernels.h; null for the offsets, there being one matrix of each.
_PRODUCT = struct.Struct("26q")
_FORMAT_OF_DTYPE = {torch.float16: format_number(golden.FP16), torch.bfloat16: format_number(golden.BF16)}


@lru_cache(maxsize=256)
def _is_plain(half: str) -> bool:
    """Tell whether factors and results are in one format, summed at a level, and everything rounded to nearest even."""
    return rounding_of(half) is NEAREST and operand_of(half) is None and accumulator_of(half) is None


@lru_cache(maxsize=256)
def _formats(half: str, level: int, chunk: int | None) -> tuple[int, ...]:
    """Return the fields of the product from its mode to its chunk."""
    operand, plan = sums_of(half, level, chunk)
    assert isinstance(plan, golden.Reduction)
    return 0, *Formats.of(operand, plan, operand, as_values=True).numbers()


def matrix_product(
    a: torch.Tensor,
    b: torch.Tensor,
    initial: torch.Tensor | None,
    half: str,
    level: int,
    chunk: int | None,
    dtype: torch.dtype,
) -> torch.Tensor | None:
    """Multiply (..., K) by a matrix (K, N), from a row or a matrix of initial values; None if it is not served here."""
    served, shape = active(), a.shape
    if served is None or not _is_plain(half) or b.dim() != 2 or len(shape) < 2 or a.is_neg() or b.is_neg():
        return None
    length, columns = b.shape
    count = a.numel()
    if not (count and columns) or shape[-1] != length:
        return None
    x = a if a.dtype is torch.float32 else a.to(torch.float32)
    y = b if b.dtype is torch.float32 else b.to(torch.float32)
    if len(shape) == 2:
        row_stride, step = x.stride()
    elif x.is_contiguous():
        row_stride, step = length, 1
    else:
        return None
    library, path, threads = served
    rows = count // length
    start = None
    begin = (0, 0, 0, 0)
    if initial is not None:
        given = initial.shape
        if initial.is_neg() or given not in ((), (1,), (columns,), (rows, columns)) or (len(given) == 2 != len(shape)):
            return None
        start = torch.empty(given, dtype=torch.float32)
        values = initial.to(torch.float32).contiguous()
        number = format_number(format_of(half))
        library.cbfloat_quantize(path, threads, number, values.numel(), values.data_ptr(), 32, start.data_ptr())
        begin = (start.data_ptr(), columns * (len(given) == 2), int(given[-1:] == (columns,)), 0)
    result = torch.empty((*shape[:-1], columns), dtype=torch.float32)
    down, across = y.stride()
    failed = library.cbfloat_multiply(
        _PRODUCT.pack(
            path, threads, *_formats(half, level, chunk), 1, rows, columns, length,
            x.data_ptr(), row_stride, step, 0, y.data_ptr(), down, across, 0, *begin, result.data_ptr(),
        )
    )  # fmt: skip
    if failed:
        raise MemoryError(f"no memory for the product of shapes {tuple(shape)} and {tuple(b.shape)}")
    if dtype is torch.float32:
        return result
    # PyTorch's own cast to bfloat16 turns the canonical NaN into 0xFFFF.
    codes = torch.empty(result.shape, dtype=dtype)
    library.cbfloat_encode(
        path, threads, _FORMAT_OF_DTYPE[dtype], result.numel(), result.data_ptr(), 32, codes.data_ptr()
    )
    return codes
