"""Rounding and softmax on a CUDA device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden.cuda.plan import COMMON, THREADS
from golden.cuda.structures import Elementwise, Softmax, target
from golden.formats import FloatFormat
from golden.torch.gpu.devices import device_of, launch
from golden.torch.gpu.memory import MEMORY, constant, readable

__all__ = ["exponentials", "rounded", "softmax16"]

_MOST_BLOCKS = 2**31 - 1


def rounded(x: torch.Tensor, fmt: FloatFormat, dtype: torch.dtype) -> torch.Tensor:
    """Round values to a format once, to nearest even, into a tensor of the same shape."""
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    count = values.numel()
    if count:
        arguments = Elementwise(
            values=values.data_ptr(), result=result.data_ptr(), count=count,
            memory=MEMORY[values.dtype], result_memory=MEMORY[dtype], target=target(fmt),
        )  # fmt: skip
        launch(device_of(x.device), COMMON, "round_values", min(-(-count // THREADS), _MOST_BLOCKS), bytes(arguments))
    return result


def softmax16(x: torch.Tensor, fmt: FloatFormat, dtype: torch.dtype) -> torch.Tensor:
    """Round values to a format, and take their softmax over the last axis in it (NUMERICS section 6)."""
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    length = x.shape[-1]
    rows = values.numel() // length
    table = constant(x.device, ("exponentials", fmt), lambda: exponentials(fmt))
    arguments = Softmax(
        values=values.data_ptr(), result=result.data_ptr(), exponentials=table.data_ptr(), rows=rows, length=length,
        memory=MEMORY[values.dtype], result_memory=MEMORY[dtype], target=target(fmt),
    )  # fmt: skip
    launch(device_of(x.device), COMMON, "softmax16", min(-(-rows // THREADS), _MOST_BLOCKS), bytes(arguments))
    return result


def exponentials(fmt: FloatFormat) -> NDArray[np.float32]:
    """Return exp, rounded to a 16-bit format, of -0, the smallest negative value and so on to -infinity."""
    codes = golden.arrays.normalisation.exponential_table(fmt)[fmt.sign_mask : (fmt.sign_mask | fmt.inf) + 1]
    return np.asarray(golden.decode(codes, fmt))
