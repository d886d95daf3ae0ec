"""Operations of the loss scaler on gradients: unscale them, take their norm, find the first that is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

__all__ = [
    "clip_by_norm",
    "clip_by_value",
    "common_norm",
    "describe_overflow",
    "divide",
    "l2_norm",
    "names_of",
    "number_of",
    "parameters_of",
]


def parameters_of(optimizer: Optimizer) -> list[Tensor]:
    """Return the parameters of an optimizer that have a gradient, in the order of its groups."""
    return [each for group in optimizer.param_groups for each in group["params"] if each.grad is not None]


def _gradients_of(parameters: Iterable[Tensor]) -> Iterator[Tensor]:
    """Give the values of the gradients; a sparse gradient gives each index once."""
    for parameter in parameters:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            parameter.grad = gradient = gradient.coalesce()
            gradient = gradient._values()  # values() would give a copy
        yield gradient


@torch.no_grad()
def divide(parameters: Iterable[Tensor], scale: float) -> None:
    """Divide gradients by the loss scale, each value rounded once."""
    for gradient in _gradients_of(parameters):
        gradient.div_(scale)


def common_norm(norms: Iterable[float]) -> float:
    """Combine partial L2 norms into the norm of all gradients, rounded to fp32; infinity if fp32 does not reach it."""
    with np.errstate(over="ignore"):
        return float(np.float32(math.hypot(*norms)))


@torch.no_grad()
def l2_norm(parameters: Iterable[Tensor]) -> float:
    """Return the L2 norm of all gradients, rounded to fp32 (NUMERICS section 7).

    The sum of squares is in float64, since fp32 squares overflow from 2^64 up, long before the norm does. The exact
    norm decides, and it does not depend on how a sum is split over vector lanes.

    Returns
    -------
    float
        0 without gradients; NaN or infinity if a gradient has them, or if fp32 does not reach up to the norm.
    """
    return common_norm(
        _read([_whole(torch.linalg.vector_norm(each, dtype=torch.float64)) for each in _gradients_of(parameters)])
    )


def _whole(tensor: Tensor) -> Tensor:
    """Return a DTensor as a tensor that every process has; item() would give the part of this process."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _read(numbers: list[Tensor]) -> Iterator[float]:
    """Give the values of scalars; a CUDA device sends its own in one piece, so that the program waits once."""
    apart: dict[torch.device, list[Tensor]] = {}
    for each in numbers:
        apart.setdefault(each.device, []).append(each)
    for device, those in apart.items():
        yield from (each.item() for each in those) if device.type == "cpu" else torch.stack(those).tolist()


@torch.no_grad()
def clip_by_norm(parameters: list[Tensor], norm: float, max_norm: float) -> None:
    """Scale gradients of a known norm down to `max_norm`, as ``torch.nn.utils.clip_grad_norm_`` does.

    Gradients without a finite norm stay as they are: whoever looks at them next shall see why.
    """
    factor = max_norm / (norm + 1e-6)
    if factor < 1 and norm < math.inf:
        for gradient in _gradients_of(parameters):
            gradient.mul_(factor)


@torch.no_grad()
def clip_by_value(parameters: list[Tensor], max_value: float) -> None:
    """Clamp every gradient to the interval from ``-max_value`` to ``max_value``."""
    for gradient in _gradients_of(parameters):
        gradient.clamp_(-max_value, max_value)


def number_of(given: Any) -> Any:
    """Turn a tensor of one element into a number."""
    return given.item() if isinstance(given, Tensor) and given.numel() == 1 else given


def names_of(named_parameters: Any) -> dict[Tensor, str]:
    """Return the names of parameters by what ``model.named_parameters()`` gives; raise TypeError for anything else."""
    try:
        pairs = [] if named_parameters is None else [(name, parameter) for name, parameter in named_parameters]
    except (TypeError, ValueError):
        pairs = [("", None)]
    for name, parameter in pairs:
        if not isinstance(name, str) or not isinstance(parameter, Tensor):
            raise TypeError(f"named_parameters: got {named_parameters!r}, must be as from model.named_parameters()")
    return {parameter: name for name, parameter in pairs if parameter is not None}


def describe_overflow(optimizers: Iterable[Optimizer], names: Mapping[Tensor, str]) -> str | None:
    """Say which gradient is the first that is not finite, by the name or place of its parameter; None if all are."""
    found = None
    for optimizer in optimizers:
        for at, group in enumerate(optimizer.param_groups):
            for index, parameter in enumerate(group["params"]):
                if parameter.grad is None:
                    continue
                gradient = _whole(*_gradients_of([parameter]))  # by all processes, whatever one of them has found
                wrong = ~torch.isfinite(gradient)
                if found is None and wrong.any():
                    name = names.get(parameter, f"parameter {index} of parameter group {at}")
                    first = gradient[wrong][0].item()
                    found = f"the gradient of {name} is {first} in {int(wrong.sum())} of {gradient.numel()} places"
    return found
