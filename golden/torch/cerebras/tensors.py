"""Tensors and names of a script, under the names of cerebras.pytorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from golden.torch.cerebras.backends import current_executor
from golden.torch.cerebras.compilation import step_closure
from golden.torch.common.arguments import naming
from golden.torch.common.terminal import say_once

__all__ = [
    "add_debug_name",
    "from_numpy",
    "full",
    "full_like",
    "get_debug_name",
    "name_scope",
    "ones",
    "ones_like",
    "save_summaries",
    "set_debug_scope",
    "summarize_scalar",
    "summarize_tensor",
    "tensor",
    "to_numpy",
    "zeros",
    "zeros_like",
]


def full(shape: Sequence[int], value: float, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor filled with a value."""
    with naming("shape, value, dtype"):
        return torch.full(shape, value, dtype=dtype)


def full_like(other: Tensor, value: float, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of the shape of another, filled with a value."""
    with naming("other, value, dtype"):
        return torch.full_like(other, value, dtype=dtype)


def ones(shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of ones."""
    with naming("shape, dtype"):
        return torch.ones(shape, dtype=dtype)


def ones_like(other: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of ones of the shape of another."""
    with naming("other, dtype"):
        return torch.ones_like(other, dtype=dtype)


def zeros(shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of zeros."""
    with naming("shape, dtype"):
        return torch.zeros(shape, dtype=dtype)


def zeros_like(other: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor of zeros of the shape of another."""
    with naming("other, dtype"):
        return torch.zeros_like(other, dtype=dtype)


def tensor(data: Any, **kwargs: Any) -> Tensor:
    """Return a tensor for a state of the script's own; a tensor as it is."""
    with naming("data"):
        return data if isinstance(data, Tensor) and not kwargs else torch.tensor(data, **kwargs)


def to_numpy(tensor: Tensor | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values of a tensor as an array; bfloat16, which NumPy lacks, becomes float32."""
    if isinstance(tensor, np.ndarray):
        return tensor
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor: got {tensor!r}, must be a tensor or an array")
    with naming("tensor"):
        return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy(force=True))


def from_numpy(array: np.ndarray[Any, Any] | Tensor) -> Tensor:
    """Return the values of an array as a tensor; they are copied if the array is read-only."""
    if isinstance(array, Tensor):
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array: got {array!r}, must be an array or a tensor")
    with naming("array"):
        return torch.from_numpy(array if array.flags.writeable else array.copy())


@contextlib.contextmanager
def name_scope(name: str, raw: bool = False) -> Iterator[None]:
    """Accept a name for a part of the graph; there is no graph to name here."""
    yield


def set_debug_scope(name: str | None) -> None:
    """Accept a name for what follows; there is no graph to name here."""


def add_debug_name(module: nn.Module, root_name: str | None = None) -> None:
    """Keep the path of every submodule for `get_debug_name`."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"module: got {module!r}, must be a torch.nn.Module")
    if not isinstance(root_name, str | None):
        raise TypeError(f"root_name: got {root_name!r}, must be a string or None")
    for name, each in module.named_modules():
        each._debug_name = ".".join(filter(None, (root_name, name)))


def get_debug_name(module: nn.Module) -> str:
    """Return the path that `add_debug_name` gave, else the name of the class."""
    return getattr(module, "_debug_name", "") or type(module).__name__


def _writer(function: str) -> Any:
    found = current_executor().writer
    if found is None:
        say_once(f"{function}: the data executor has no writer; give it one, DataExecutor(..., writer=...)")
    return found


@step_closure
def summarize_scalar(name: str, value: Tensor | float) -> None:
    """Write a number with the writer of the data executor at the end of the step."""
    if (writer := _writer("summarize_scalar")) is not None:
        writer.add_scalar(name, float(value), current_executor().user_iteration)


@step_closure
def summarize_tensor(name: str, value: Tensor) -> None:
    """Write the values of a tensor with the writer of the data executor at the end of the step."""
    if (writer := _writer("summarize_tensor")) is not None:
        add = getattr(writer, "add_tensor", None) or writer.add_histogram
        add(name, value, current_executor().user_iteration)


def save_summaries(writer: Any, step: int | None = None) -> None:
    """Flush a writer, where it can; what `summarize_scalar` has written is there already."""
    flush = getattr(writer, "flush", None)
    if flush is not None:
        flush()
