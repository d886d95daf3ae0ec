"""Backends for scripts: `backend`, `compile`, `trace` and the closures of a step, named as in cerebras.pytorch."""

from golden.torch.cerebras.closures import checkpoint_closure, step_closure
from golden.torch.cerebras.cluster import CSConfig
from golden.torch.cerebras.compilation import compile, trace
from golden.torch.cerebras.current import (
    Backend,
    backend,
    current_backend,
    current_executor,
    current_torch_device,
    use_cs,
)
from golden.torch.cerebras.device import Device, device
from golden.torch.cerebras.flags import backends
from golden.torch.cerebras.kinds import BackendType

__all__ = [
    "Backend",
    "BackendType",
    "CSConfig",
    "Device",
    "backend",
    "backends",
    "checkpoint_closure",
    "compile",
    "current_backend",
    "current_executor",
    "current_torch_device",
    "device",
    "step_closure",
    "trace",
    "use_cs",
]
