"""Backends for scripts: `backend`, `compile`, `trace` and the closures of a step, named as in cerebras.pytorch."""

from golden.torch.cerebras.backends import (
    Backend,
    Device,
    backend,
    current_backend,
    current_executor,
    current_torch_device,
    device,
    use_cs,
)
from golden.torch.cerebras.cluster import BackendType, CSConfig, backends
from golden.torch.cerebras.compilation import checkpoint_closure, compile, step_closure, trace

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
