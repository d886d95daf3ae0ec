"""The half type as scripts know it, by a torch dtype or its name."""

from __future__ import annotations

import torch

from golden.formats import CBFLOAT16, FloatFormat
from golden.torch.products.operators import registered as operators
from golden.torch.settings.half import current_half, set_half, wants_mixed_precision
from golden.torch.settings.half_type import half_named

__all__ = [
    "get_floating_point_dtype",
    "get_floating_point_dtype_str",
    "get_half_dtype",
    "get_half_dtype_str",
    "is_cbfloat16_tensor",
    "set_half_dtype",
]


def set_half_dtype(
    value: str | torch.dtype | FloatFormat,
    proxy: torch.dtype | None = None,
    *,
    inner: str | torch.dtype | FloatFormat | None = None,
) -> torch.dtype:
    """Set the 16-bit type of the process, and ask for mixed precision.

    It turns nothing on by itself: products are exact in a `golden.torch.precision`, in a model that went through
    `golden.torch.amp.initialize` or `golden.torch.compile`, and in the `Trainer`. A gradient scaler refuses the loss of
    a model that ran outside of them.

    Parameters
    ----------
    value : str, torch.dtype or FloatFormat
        ``"float16"``, ``"bfloat16"``, ``"cbfloat16"``, ``"cb16"``, ``torch.float16``, ``torch.bfloat16`` or any format
        of 16 bits. What PyTorch has no dtype for is carried by float32. A format of 8 bits and fewer, such as
        ``"float8_e4m3fn"``, is that of the factors of products alone.
    proxy : torch.dtype, optional
        What carries cbfloat16: ``torch.float32`` (unless given), which holds every value, or ``torch.float16``, which
        makes values beyond 65504 infinite and drops fraction bits below 2^-14.
    inner : str, torch.dtype or FloatFormat, optional
        With factors of 8 bits and fewer: the 16-bit format of sums and results, ``"cbfloat16"`` unless given.

    Returns
    -------
    torch.dtype
        The dtype to use in the model: ``torch.float16``, ``torch.bfloat16`` or the proxy.

    Raises
    ------
    TypeError
        If `value` is neither a string, nor a dtype, nor a format.
    ValueError
        If there is no such half type, or the proxy does not fit it.
    """
    half = half_named(value, proxy, inner=inner)
    set_half(half)
    return half.dtype


def get_half_dtype() -> torch.dtype:
    """Return the torch dtype that carries the half type in force; for cbfloat16 that is its proxy."""
    return current_half().dtype


def get_half_dtype_str() -> str:
    """Return the name of the half type in force: ``float16``, ``bfloat16`` or ``cbfloat16``."""
    return current_half().name


def get_floating_point_dtype(default: torch.dtype = torch.float32) -> torch.dtype:
    """Return the dtype of the half type if mixed precision is on or asked for, else `default`."""
    return get_half_dtype() if wants_mixed_precision() else default


def get_floating_point_dtype_str(default: str = "float32") -> str:
    """Return the name of the half type if mixed precision is on or asked for, else `default`."""
    return get_half_dtype_str() if wants_mixed_precision() else default


def is_cbfloat16_tensor(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds cbfloat16: the half type in force is cbfloat16, and the tensor one of its proxy.

    The float32 proxy is also the dtype of fp32 tensors; with it, a tensor counts if every element is a value of
    cbfloat16 (a NaN counts as one). It reads the whole tensor then.
    """
    half = current_half()
    if half.format != CBFLOAT16 or tensor.dtype != half.dtype:
        return False
    if not half.is_lossless_proxy:
        return True
    rounded = operators.rounded(tensor.detach(), half.text, torch.float32)
    return bool(((tensor == rounded) | tensor.isnan()).all())
