"""Automatic mixed precision under the names of ``cerebras.pytorch.amp``: loss scaling, half type, contexts."""

from golden.torch.amp.grad_scaler import GradScaler
from golden.torch.amp.half_dtype import (
    get_floating_point_dtype,
    get_floating_point_dtype_str,
    get_half_dtype,
    get_half_dtype_str,
    is_cbfloat16_tensor,
    set_half_dtype,
)
from golden.torch.amp.initialize import autocast, init, initialize
from golden.torch.amp.optimizer_step import optimizer_step
from golden.torch.amp.scale import isfinite
from golden.torch.settings.half import enable_mixed_precision, mixed_precision

__all__ = [
    "GradScaler",
    "autocast",
    "enable_mixed_precision",
    "get_floating_point_dtype",
    "get_floating_point_dtype_str",
    "get_half_dtype",
    "get_half_dtype_str",
    "init",
    "initialize",
    "is_cbfloat16_tensor",
    "isfinite",
    "mixed_precision",
    "optimizer_step",
    "set_half_dtype",
]
