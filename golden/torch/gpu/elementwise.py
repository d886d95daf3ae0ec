"""Rounding and softmax on a CUDA device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden.arrays.normalisation import exponential_table
from golden.cuda.arrays import rounding_launch, softmax_launch
from golden.formats import FloatFormat
from golden.torch.gpu.checking import check_arrays, launch, once
from golden.torch.gpu.devices import device_of
from golden.torch.gpu.memory import MEMORY, constant, readable

__all__ = ["exponentials", "rounded", "softmax16"]


def rounded(x: torch.Tensor, fmt: FloatFormat, dtype: torch.dtype) -> torch.Tensor:
    """Round values to a format once, to nearest even, into a tensor of the same shape."""
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    if values.numel():
        made = rounding_launch(
            values.data_ptr(), result.data_ptr(), values.numel(), MEMORY[values.dtype], MEMORY[dtype], fmt
        )
        card = device_of(x.device)
        once(card, ("rounded", fmt), lambda: check_arrays(card, x.device, fmt))
        launch(card, made)
    return result


def softmax16(x: torch.Tensor, fmt: FloatFormat, dtype: torch.dtype) -> torch.Tensor:
    """Round values to a format, and take their softmax over the last axis in it (NUMERICS section 6)."""
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    length = x.shape[-1]
    table = constant(x.device, ("exponentials", fmt), lambda: exponentials(fmt))
    made = softmax_launch(
        values.data_ptr(), result.data_ptr(), table.data_ptr(), values.numel() // length, length,
        MEMORY[values.dtype], MEMORY[dtype], fmt,
    )  # fmt: skip
    card = device_of(x.device)
    once(card, ("softmax", fmt), lambda: check_arrays(card, x.device, fmt, softmax=exponentials(fmt)))
    launch(card, made)
    return result


def exponentials(fmt: FloatFormat) -> NDArray[np.float32]:
    """Return exp, rounded to a 16-bit format, of -0, the smallest negative value and so on to -infinity."""
    return np.asarray(golden.decode(exponential_table(fmt)[fmt.sign_mask : (fmt.sign_mask | fmt.inf) + 1], fmt))
