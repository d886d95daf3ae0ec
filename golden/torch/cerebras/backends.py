"""The backend in force, its device, and the executor that drives the steps of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

from golden.torch.cerebras.cluster import OPTIONS, BackendType, CSConfig, check_names
from golden.torch.common.processes import device_of_kind
from golden.torch.common.terminal import say_once
from golden.torch.settings import half

__all__ = [
    "Backend",
    "Device",
    "Executor",
    "backend",
    "current_backend",
    "current_executor",
    "current_torch_device",
    "device",
    "use_cs",
]


class Device:
    """The device of ``with backend.device:`` and ``backend.torch_device``.

    Parameters
    ----------
    backend_type : BackendType
        GPU: the current CUDA device, if there is one. All else: the CPU.
    """

    def __init__(self, backend_type: BackendType = BackendType.CPU) -> None:
        if not isinstance(backend_type, BackendType):
            raise TypeError(f"backend_type: got {backend_type!r}, must be one of BackendType; `device` takes names")
        kind = "GPU" if backend_type.is_gpu else "CPU"  # CSX has no device in PyTorch, and nothing to say about it
        self.torch_device = device_of_kind(kind, "backend")

    @property
    def type(self) -> str:
        """``"cpu"`` or ``"cuda"``."""
        return self.torch_device.type

    def move_to_device(self, struct: Any) -> Any:
        """Return a structure of modules and tensors with each of them on this device."""
        kinds = (torch.nn.Module, torch.Tensor)
        return pytree.tree_map_only(kinds, lambda each: each.to(self.torch_device), struct)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"


def device(backend_type: str) -> Device:
    """Return the device of a backend of that kind: ``with cstorch.device("CSX"): model = Model()``.

    Raises
    ------
    ValueError
        If `backend_type` is not ``"CPU"``, ``"GPU"`` or ``"CSX"``.
    """
    return Device(BackendType.from_str(backend_type))


class Executor(Protocol):
    """A data executor that is being iterated, such as `golden.torch.utils.data.DataExecutor`.

    Attributes
    ----------
    cs_config : CSConfig or None
        Its ``precision_opt_level`` is the level of the run.
    writer : object
        Where scalars are written, None for nowhere.
    num_steps : int
        Steps of the run.
    """

    cs_config: CSConfig | None
    writer: Any
    num_steps: int

    @property
    def iteration(self) -> int:
        """The step under way, from 0; -1 before the first."""

    @property
    def user_iteration(self) -> int:
        """The step under way, from 1."""

    @property
    def is_pre_initial_step(self) -> bool:
        """Whether the first step of the run is still to come."""

    @property
    def is_initial_step(self) -> bool:
        """Whether the step under way is the first."""

    @property
    def on_final_iteration(self) -> bool:
        """Whether the step under way is the last."""

    @property
    def is_checkpoint_step(self) -> bool:
        """Whether checkpoint closures run at the end of this step."""

    @property
    def artifact_dir(self) -> Path:
        """Folder of this run, below the folder of the backend."""


_HAVE_EFFECT = {"mixed_precision", "compile_only", "validate_only", "cluster_config"}


class Backend:
    """The result of `backend`: the kind that the script asked for, the current runs, and the closures that wait."""

    def __init__(self, backend_type: BackendType, artifact_dir: str | Path | None = None, **options: Any) -> None:
        if not isinstance(backend_type, BackendType):
            raise TypeError(f"backend_type: got {backend_type!r}, must be one of BackendType; `backend` takes names")
        check_names(options, OPTIONS[backend_type], f"the backend {backend_type.name}")
        if not isinstance(artifact_dir, str | os.PathLike | None):
            raise TypeError(f"artifact_dir: got {artifact_dir!r}, must be a path")
        for name in options:
            if name not in _HAVE_EFFECT:
                say_once(f"{name}: is for a cluster of machines; accepted, and without effect here")
        self.backend_type = backend_type
        self.artifact_dir = Path("." if artifact_dir is None else artifact_dir)
        self.device = Device(backend_type)
        self.cluster_config = options.get("cluster_config")
        if not isinstance(self.cluster_config, CSConfig | None):
            raise TypeError(f"cluster_config: got {self.cluster_config!r}, must be a ClusterConfig")
        #: Whether it was made to compile or validate only: a run is one step then.
        self.is_e2e_execution = not (options.get("compile_only") or options.get("validate_only"))
        self.executor_counter = 0
        self.cluster = None
        self.data_executor_stack: list[Executor] = []
        self._closures: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
        if backend_type.is_csx or options.get("mixed_precision"):
            half.enable_mixed_precision()

    is_cpu = property(lambda self: self.backend_type.is_cpu)
    is_gpu = property(lambda self: self.backend_type.is_gpu)
    is_csx = property(lambda self: self.backend_type.is_csx)

    @property
    def torch_device(self) -> torch.device:
        """The CPU; of the kind GPU a CUDA device, if there is one."""
        return self.device.torch_device

    def to_cpu(self, tensor: Any) -> Any:
        """Return a structure of tensors with each of them on the CPU."""
        return Device().move_to_device(tensor)

    def add_step_closure(self, closure: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep a call, with the values that its tensors have now, for the end of the step."""
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda each: each.detach().clone(), (args, kwargs))
        self._closures.append((closure, args, kwargs))

    def run_step_closures(self) -> None:
        """Make the calls that wait, and those that they add."""
        while self._closures:
            closure, args, kwargs = self._closures.pop(0)
            closure(*args, **kwargs)

    def drop_step_closures(self) -> None:
        """Forget the calls that wait."""
        self._closures.clear()


class _Process:
    backend: Backend | None = None


def backend(backend_type: str | BackendType | None = None, **options: Any) -> Backend:
    """Make the backend of this process, or return it.

    Every kind computes the same bits: GPU on a CUDA device if there is one, all else on the CPU. The kind decides what
    `use_cs` says, and ``"CSX"`` turns mixed precision on, as the original does.

    Parameters
    ----------
    backend_type : "CPU", "GPU" or "CSX", or BackendType, optional
        None returns the backend that was made.
    **options
        ``artifact_dir`` and, for CSX, ``compile_dir``, ``compile_only``, ``validate_only`` (a run is one step then) and
        ``cluster_config``; for GPU and CPU those of the original. Settings that make no sense here are reported once.

    Raises
    ------
    TypeError
        If an argument is of the wrong type or an option unknown.
    ValueError
        If there is no such kind.
    RuntimeError
        If the process has a backend of another kind, or options are given a second time; if it has none and is asked
        for it.
    """
    if backend_type is None:
        if options:
            raise TypeError("backend_type: got None beside options, must be 'CPU', 'GPU' or 'CSX'")
        return current_backend()
    if isinstance(backend_type, str):
        backend_type = BackendType.from_str(backend_type)
    if not isinstance(backend_type, BackendType):
        raise TypeError(f"backend_type: got {backend_type!r}, must be 'CPU', 'GPU' or 'CSX'")
    made = _Process.backend
    if made is None:
        made = _Process.backend = Backend(backend_type, **options)
    elif options or made.backend_type is not backend_type:
        raise RuntimeError(
            f"backend_type: this process has a backend already, {made.backend_type.name}; backend() without arguments "
            "returns it"
        )
    return made


def current_backend(raise_exception: bool = True, raise_warning: bool = False) -> Any:
    """Return the backend of this process.

    Parameters
    ----------
    raise_exception : bool
        False: None if there is none.
    raise_warning : bool
        Accepted; nothing is deprecated here.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    if _Process.backend is None and raise_exception:
        raise RuntimeError(
            "backend: this process has none yet; make one with cstorch.backend('CPU') or cstorch.compile(model, 'CPU')"
        )
    return _Process.backend


def current_executor() -> Executor:
    """Return the data executor of the run under way, a `golden.torch.utils.data.DataExecutor`.

    Raises
    ------
    RuntimeError
        If no data executor is being iterated.
    """
    made = current_backend()
    if not made.data_executor_stack:
        raise RuntimeError(
            "executor: none is running; wrap the data loader, as in "
            "for batch in cstorch.utils.data.DataExecutor(dataloader, num_steps=...)"
        )
    return made.data_executor_stack[-1]


def current_torch_device() -> torch.device:
    """Return the torch device of the backend, the CPU if there is none."""
    return torch.device("cpu") if _Process.backend is None else _Process.backend.torch_device


def use_cs() -> bool:
    """Return whether the script asked for the backend CSX."""
    return _Process.backend is not None and _Process.backend.is_csx
