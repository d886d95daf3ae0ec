"""Optimizers that follow the gradient or its sign: SGD, averaged SGD, Lion, Rprop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from golden.torch.cerebras.optimizer import Group, Optimizer, State, check_betas, check_least
from golden.torch.common.arguments import check_flags

__all__ = ["ASGD", "SGD", "Lion", "Rprop"]


class SGD(Optimizer):
    """Stochastic gradient descent; the momentum starts at zero, so that the first step is dampened, too."""

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        maximize: bool = False,
    ) -> None:
        check_least(lr=lr, momentum=momentum, weight_decay=weight_decay)
        check_flags(nesterov=nesterov)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                f"nesterov: got True with momentum {momentum} and dampening {dampening}, needs a momentum and no "
                "dampening"
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {"momentum_buffer": torch.zeros_like(parameter)} if group["momentum"] else {}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        change = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        if group["momentum"]:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).add_(change, alpha=1.0 - group["dampening"])
            change = change + buffer * group["momentum"] if group["nesterov"] else buffer
        parameter.sub_(change * group["lr"])


class ASGD(Optimizer):
    """Averaged stochastic gradient descent; ``state["ax"]`` is the average from step `t0` on."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        lambd: float = 0.0001,
        alpha: float = 0.75,
        t0: float = 1000000.0,
        weight_decay: float = 0,
        maximize: bool = False,
    ) -> None:
        check_least(lr=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, defaults, enable_global_step=True)

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {
            "eta": torch.tensor(float(group["lr"])),
            "mu": torch.tensor(1.0),
            "ax": torch.zeros_like(parameter),
        }

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        change = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        eta, mu, average = state["eta"], state["mu"], state["ax"]
        parameter.mul_(1 - group["lambd"] * eta).sub_(change * eta)
        average.copy_(parameter if mu == 1 else average + (parameter - average) * mu)
        eta.copy_(group["lr"] / (1 + group["lambd"] * group["lr"] * state["step"]) ** group["alpha"])
        mu.copy_(1 / torch.clamp(state["step"] - group["t0"], min=1.0))


class Lion(Optimizer):
    """The sign of an average of gradients is the step; decoupled weight decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.0001,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        check_least(lr=lr, weight_decay=weight_decay)
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {"exp_avg": torch.zeros_like(parameter)}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        first, second = group["betas"]
        average = state["exp_avg"]
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_((average * first + gradient * (1 - first)).sign() * group["lr"])
        average.mul_(second).add_(gradient, alpha=1 - second)


class Rprop(Optimizer):
    """Steps that grow while the sign of the gradient stays, and shrink when it changes."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.001,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-06, 50.0),
    ) -> None:
        check_least(lr=lr)
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes})

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {"prev": torch.zeros_like(parameter), "step_size": torch.full_like(parameter, float(group["lr"]))}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        shrink, grow = group["etas"]
        turned = gradient * state["prev"]
        factor = torch.where(turned > 0, grow, torch.where(turned < 0, shrink, 1.0))
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        gradient = torch.where(turned < 0, 0.0, gradient)
        parameter.sub_(gradient.sign() * size)
        state["prev"].copy_(gradient)
