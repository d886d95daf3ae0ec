"""Optimizers that look at a parameter as a whole: Lamb at its norm, Muon at its singular values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from golden.torch.amp.precision import precision
from golden.torch.cerebras.adam import _averages, _zeros
from golden.torch.cerebras.optimizer import Group, Optimizer, State, check_betas, check_least

__all__ = ["Lamb", "Muon"]


class Lamb(Optimizer):
    """Adam without bias correction, each parameter's step scaled to the norm of the parameter (at most 10)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0,
        adam: bool = False,
    ) -> None:
        check_least(lr=lr, eps=eps, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "adam": adam})

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return _zeros(parameter, "exp_avg", "exp_avg_sq")

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        average, square = _averages(gradient, state, group)
        change = average / (square.sqrt() + group["eps"]) + parameter * group["weight_decay"]
        size, step = (each.pow(2).sum().sqrt() for each in (parameter, change))
        size = size.clamp(0, 10)
        trust = size / step if size > 0 and step > 0 and not group["adam"] else 1.0
        parameter.sub_(change * trust * group["lr"])


class Muon(Optimizer):
    """Momentum whose matrix is made orthogonal, by five Newton-Schulz steps on exact bfloat16 products.

    For parameters of two or more axes; the others belong into another optimizer. (The original's own function cannot
    run on its CPU backend.)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.02,
        weight_decay: float = 0.01,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_steps: int = 5,
    ) -> None:
        check_least(lr=lr, weight_decay=weight_decay, momentum=momentum, ns_steps=ns_steps)
        for name, given in (("weight_decay", weight_decay), ("momentum", momentum)):
            if given >= 1:
                raise ValueError(f"{name}: got {given}, must be below 1")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_steps": ns_steps,
        }
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        if parameter.ndim < 2:
            raise ValueError(
                f"params: got a parameter of shape {tuple(parameter.shape)}, must have two or more axes; give "
                "biases and the like to another optimizer"
            )
        return _zeros(parameter, "momentum_buffer") if group["momentum"] else {}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        momentum = group["momentum"]
        change = gradient
        if momentum:
            # The original drops the new buffer, so that its momentum has no memory; this one is kept, as published.
            buffer = state["momentum_buffer"].mul_(momentum).add_(gradient, alpha=1 - momentum)
            change = gradient + buffer * momentum if group["nesterov"] else buffer
        matrix = change.flatten(1) if change.ndim == 4 else change
        orthogonal = _orthogonal(matrix, group["ns_steps"]).view_as(parameter)
        rate = group["lr"] * 0.2 * max(parameter.shape[:2]) ** 0.5
        parameter.mul_(1 - rate * group["weight_decay"]).sub_(orthogonal * rate)


def _orthogonal(matrix: Tensor, steps: int) -> Tensor:
    """Return a matrix with the singular vectors of `matrix` and singular values near 1."""
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True) + 1e-7)
    with precision(half="bfloat16"):
        for _ in range(steps):
            square = (x @ x.mT).float()
            x = 3.4445 * x + ((-4.775 * square + 2.0315 * (square @ square).float()) @ x).float()
    return (x.mT if tall else x).contiguous()
