"""PyTorch on exact products: every matrix product, forward and backward, is bit for bit that of the hardware.

Shaped after `cerebras.pytorch`: a script written for it changes one import, ``import golden.torch as cstorch``.

>>> import torch, golden.torch as cstorch
>>> model = torch.nn.Linear(4, 2)
>>> with cstorch.precision(half="cbfloat16", level=1):
...     model(torch.ones(3, 4)).sum().backward()
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "golden.torch needs PyTorch, which is not installed: pip install 'cbfloat[train]'", name="torch"
    ) from None

from golden.torch import amp, recomputation  # noqa: F401 - checkpoints keep the precision from now on
from golden.torch.attention import scaled_dot_product_attention
from golden.torch.audit import Audit, audit
from golden.torch.configuration import MixedPrecision
from golden.torch.contraction import einsum
from golden.torch.convolution import conv1d, conv2d
from golden.torch.half import (
    enable_mixed_precision,
    get_floating_point_dtype,
    get_floating_point_dtype_str,
    get_half_dtype,
    get_half_dtype_str,
    is_cbfloat16_tensor,
    mixed_precision,
    set_half_dtype,
)
from golden.torch.levels import Levels, current_pol, pol, set_model_level
from golden.torch.operator_kinds import declare_operator
from golden.torch.precision import precision
from golden.torch.products import bmm, linear, matmul
from golden.torch.trainer import Trainer

__all__ = [
    "Audit",
    "Levels",
    "MixedPrecision",
    "Trainer",
    "amp",
    "audit",
    "bmm",
    "conv1d",
    "conv2d",
    "current_pol",
    "declare_operator",
    "einsum",
    "enable_mixed_precision",
    "get_floating_point_dtype",
    "get_floating_point_dtype_str",
    "get_half_dtype",
    "get_half_dtype_str",
    "is_cbfloat16_tensor",
    "linear",
    "matmul",
    "mixed_precision",
    "pol",
    "precision",
    "scaled_dot_product_attention",
    "set_half_dtype",
    "set_model_level",
]
