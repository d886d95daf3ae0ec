"""PyTorch on exact products: every matrix product, forward and backward, has the bits of the hardware.

Shaped after `cerebras.pytorch`: a script written for it changes one import, ``import golden.torch as cstorch``.

>>> import torch, golden.torch as cstorch
>>> model = torch.nn.Linear(4, 2)
>>> with cstorch.precision(half="cbfloat16", level=1):
...     model(torch.ones(3, 4)).sum().backward()
"""

try:
    import torch as _torch  # noqa: F401

    from golden.torch.common import pytorch as _oldest  # noqa: F401 - it refuses a PyTorch that is too old
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "golden.torch needs PyTorch, which is not installed: pip install 'cbfloat[train]'", name="torch"
    ) from None

from golden import __version__
from golden.nearest import did_you_mean
from golden.torch import amp, distributed, metrics, mx, optim, utils
from golden.torch.amp.configuration import MixedPrecision
from golden.torch.amp.half_dtype import (
    get_floating_point_dtype,
    get_floating_point_dtype_str,
    get_half_dtype,
    get_half_dtype_str,
    is_cbfloat16_tensor,
    set_half_dtype,
)
from golden.torch.amp.pol import pol
from golden.torch.amp.precision import precision
from golden.torch.amp.yaml_configuration import precision_from_yaml
from golden.torch.backend import (
    CSConfig,
    backend,
    backends,
    checkpoint_closure,
    compile,
    current_backend,
    current_executor,
    current_torch_device,
    device,
    step_closure,
    trace,
    use_cs,
)
from golden.torch.cerebras.compilation import make_constant
from golden.torch.cerebras.storage import load, save
from golden.torch.cerebras.tensors import (
    add_debug_name,
    from_numpy,
    full,
    full_like,
    get_debug_name,
    name_scope,
    ones,
    ones_like,
    save_summaries,
    set_debug_scope,
    summarize_scalar,
    summarize_tensor,
    tensor,
    to_numpy,
    zeros,
    zeros_like,
)
from golden.torch.guard import replaced  # noqa: F401 - its replacements in PyTorch take effect here
from golden.torch.guard.operator_kinds import declare_operator
from golden.torch.instruments.advise import Advice, advise
from golden.torch.instruments.audit import Audit, audit
from golden.torch.observing import observe
from golden.torch.products.functions import (  # noqa: F401 - PyTorch counts the operations of exact products from now on
    flops,
)
from golden.torch.products.functions.attention import scaled_dot_product_attention
from golden.torch.products.functions.contraction import einsum
from golden.torch.products.functions.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from golden.torch.products.functions.derived import grouped_mm
from golden.torch.products.functions.products import bmm, linear, matmul
from golden.torch.settings.half import enable_mixed_precision, mixed_precision
from golden.torch.settings.levels import Levels, current_pol, set_model_level
from golden.torch.training.interruption import RunStopped
from golden.torch.training.trainer import Trainer

CsConfig = CSConfig
compile_step = trace  # its name in the first releases

__all__ = [
    "Advice",
    "Audit",
    "CSConfig",
    "CsConfig",
    "Levels",
    "MixedPrecision",
    "RunStopped",
    "Trainer",
    "__version__",
    "add_debug_name",
    "advise",
    "amp",
    "audit",
    "backend",
    "backends",
    "bmm",
    "checkpoint_closure",
    "compile",
    "compile_step",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "current_backend",
    "current_executor",
    "current_pol",
    "current_torch_device",
    "declare_operator",
    "device",
    "distributed",
    "einsum",
    "enable_mixed_precision",
    "from_numpy",
    "full",
    "full_like",
    "get_debug_name",
    "get_floating_point_dtype",
    "get_floating_point_dtype_str",
    "get_half_dtype",
    "get_half_dtype_str",
    "grouped_mm",
    "is_cbfloat16_tensor",
    "linear",
    "load",
    "make_constant",
    "matmul",
    "metrics",
    "mixed_precision",
    "mx",
    "name_scope",
    "observe",
    "ones",
    "ones_like",
    "optim",
    "pol",
    "precision",
    "precision_from_yaml",
    "save",
    "save_summaries",
    "scaled_dot_product_attention",
    "set_debug_scope",
    "set_half_dtype",
    "set_model_level",
    "step_closure",
    "summarize_scalar",
    "summarize_tensor",
    "tensor",
    "to_numpy",
    "trace",
    "use_cs",
    "utils",
    "zeros",
    "zeros_like",
]

_NOT_PROVIDED = ("experimental", "mesh", "nn", "sparse")


def __getattr__(name: str) -> object:
    """Suggest the right name for a name that does not exist."""
    if name in _NOT_PROVIDED:
        raise AttributeError(
            f"golden.torch has no {name!r}: of cerebras.pytorch, {', '.join(_NOT_PROVIDED)} are not provided"
        )
    meant = f"; did you mean amp.{name}?" if name in amp.__all__ else did_you_mean(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
