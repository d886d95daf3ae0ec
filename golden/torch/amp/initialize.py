"""Prepare a model so that its forward pass always runs in a precision, without a context at every call."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeVar, overload

import torch
from torch import nn
from torch.optim import Optimizer

from golden.reduction import DEFAULT_CHUNK
from golden.torch.amp.iteration import as_optimizers
from golden.torch.half import HalfType, current_half
from golden.torch.precision import precision

__all__ = ["initialize"]

Model = TypeVar("Model", bound=nn.Module)
Optimizers = TypeVar("Optimizers", bound=Optimizer | Iterable[Optimizer])


class _ForwardInPrecision:
    """A forward that enters a precision context. An object, and not a closure: it can be copied with its module."""

    def __init__(self, forward: Any, settings: dict[str, Any]) -> None:
        functools.update_wrapper(self, forward)
        self.forward, self.settings = forward, settings

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with precision(**self.settings):
            return self.forward(*args, **kwargs)


@overload
def initialize(
    model: Model,
    optimizers: None = None,
    *,
    enabled: bool = ...,
    half: str | torch.dtype | HalfType | None = ...,
    level: int | None = ...,
    chunk: int | None = ...,
) -> Model: ...
@overload
def initialize(
    model: Model,
    optimizers: Optimizers,
    *,
    enabled: bool = ...,
    half: str | torch.dtype | HalfType | None = ...,
    level: int | None = ...,
    chunk: int | None = ...,
) -> tuple[Model, Optimizers]: ...
def initialize(
    model: Model,
    optimizers: Optimizers | None = None,
    *,
    enabled: bool = True,
    half: str | torch.dtype | HalfType | None = None,
    level: int | None = None,
    chunk: int | None = DEFAULT_CHUNK,
) -> Model | tuple[Model, Optimizers]:
    """Make every forward pass of a model run in a precision context; parameters stay as they are, in fp32.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    optimizers : Optimizer or iterable of Optimizer, optional
        Returned as given: fp32 parameters need no other optimizer. For the calls of scripts that pass them.
    enabled, half, level, chunk
        As for `golden.torch.precision`. The half type is that of this moment unless given.

    Returns
    -------
    nn.Module, or (nn.Module, optimizers) if `optimizers` is given
        What was given.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.
    RuntimeError
        If the model has been initialised already.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    if optimizers is not None:
        as_optimizers(optimizers)
    if isinstance(model.forward, _ForwardInPrecision):
        raise RuntimeError("model: it has been initialised already; a forward pass has one precision")
    settings: dict[str, Any] = {
        "half": current_half() if half is None else half,
        "level": level,
        "chunk": chunk,
        "enabled": enabled,
    }
    precision(**settings)  # checks them now and not in the first forward pass
    model.forward = _ForwardInPrecision(model.forward, settings)
    return model if optimizers is None else (model, optimizers)
