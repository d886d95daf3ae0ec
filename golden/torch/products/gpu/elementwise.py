"""Rounding, blocks and softmax on a CUDA device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import golden
from golden.arrays.normalisation import exponential_table
from golden.cuda.arrays import blocks_launch, rounding_launch, softmax_launch
from golden.formats import FloatFormat
from golden.philox import FINAL_CONVERSION
from golden.reduction import Reduction
from golden.torch.products.gpu.checking import check_arrays, check_blocks, launch, once
from golden.torch.products.gpu.devices import MEMORY, constant, device_of, readable

__all__ = ["exponentials", "rounded", "rounded_to_blocks", "softmax16"]


def rounded(x: torch.Tensor, conversion: Reduction, dtype: torch.dtype, step: int = FINAL_CONVERSION) -> torch.Tensor:
    """Round values once, as the last conversion of a reduction does, into a tensor of the same shape.

    At most 2**32 values are rounded stochastically: random bits have places for no more.
    """
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=dtype, device=x.device)
    if values.numel():
        made = rounding_launch(
            values.data_ptr(), result.data_ptr(), values.numel(), (MEMORY[values.dtype], MEMORY[dtype]), conversion,
            step=step,
        )  # fmt: skip
        card, fmt, mode = device_of(x.device), conversion.result, conversion.out_rounding
        once(card, ("rounded", fmt, mode), lambda: check_arrays(card, x.device, fmt, mode=mode))
        launch(card, made)
    return result


def rounded_to_blocks(x: torch.Tensor, element: FloatFormat, block: int) -> torch.Tensor:
    """Round values to blocks of elements with one scale along the last axis, and back; there is at least one value."""
    values = readable(x).contiguous()
    result = torch.empty(x.shape, dtype=values.dtype, device=x.device)
    length = x.shape[-1]
    made = blocks_launch(
        values.data_ptr(), result.data_ptr(), values.numel() // length, length, block, MEMORY[values.dtype], element
    )
    card = device_of(x.device)
    once(card, ("blocks", element, block), lambda: check_blocks(card, x.device, element, block))
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
        (MEMORY[values.dtype], MEMORY[dtype]), fmt,
    )  # fmt: skip
    card = device_of(x.device)
    once(card, ("softmax", fmt), lambda: check_arrays(card, x.device, fmt, softmax=exponentials(fmt)))
    launch(card, made)
    return result


def exponentials(fmt: FloatFormat) -> NDArray[np.float32]:
    """Return exp, rounded to a 16-bit format, of -0, the smallest negative value and so on to -infinity."""
    return np.asarray(golden.decode(exponential_table(fmt)[fmt.sign_mask : (fmt.sign_mask | fmt.inf) + 1], fmt))
