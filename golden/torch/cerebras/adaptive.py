"""Optimizers that divide by a running square of the gradient: Adagrad, Adadelta, RMSprop, Adafactor."""

from __future__ import annotations

import torch
from torch import Tensor

from golden.torch.cerebras.optimizer import Group, NonNegative, Rule, State, check_least, optimizer

__all__ = ["Adadelta", "Adafactor", "Adagrad", "RMSprop"]


@optimizer
class Adagrad(Rule):
    """Steps divided by the root of the sum of all squares."""

    counts_steps = True

    lr: NonNegative = 0.01
    lr_decay: NonNegative = 0
    weight_decay: NonNegative = 0
    initial_accumulator_value: NonNegative = 0
    eps: NonNegative = 1e-6
    maximize: bool = False

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {"sum": torch.full_like(parameter, float(group["initial_accumulator_value"]))}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        gradient = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        root = state["sum"].addcmul_(gradient, gradient).sqrt() + group["eps"]
        rate = group["lr"] / (1.0 + (state["step"] - 1.0) * group["lr_decay"])
        parameter.sub_(gradient * rate / root)


@optimizer
class Adadelta(Rule):
    """Steps as large as the earlier ones were, by the ratio of two running squares."""

    keeps = ("square_avg", "acc_delta")

    lr: NonNegative = 1.0
    rho: NonNegative = 0.9
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0
    maximize: bool = False

    def __post_init__(self) -> None:
        check_least(rho=self.rho)
        if self.rho > 1:
            raise ValueError(f"rho: got {self.rho}, must be at most 1")
        super().__post_init__()

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        rho, eps = group["rho"], group["eps"]
        gradient = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        root = (state["square_avg"].mul_(rho).addcmul_(gradient, gradient, value=1 - rho) + eps).sqrt()
        change = (state["acc_delta"] + eps).sqrt() / root * gradient
        state["acc_delta"].mul_(rho).addcmul_(change, change, value=1 - rho)
        parameter.sub_(change * group["lr"])


@optimizer
class RMSprop(Rule):
    """Steps divided by the root of a running square, with momentum on request."""

    lr: NonNegative = 1e-2
    alpha: NonNegative = 0.99
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0
    momentum: NonNegative = 0
    centered: bool = False

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        names = {"square_avg": True, "momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
        return {name: torch.zeros_like(parameter) for name, wanted in names.items() if wanted}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        alpha = group["alpha"]
        gradient = gradient + parameter * group["weight_decay"]
        square = state["square_avg"].mul_(alpha).addcmul_(gradient, gradient, value=1.0 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].mul_(alpha).add_(gradient, alpha=1 - alpha)
            square = square - mean * mean
        change = gradient / (square.sqrt() + group["eps"])
        if group["momentum"] > 0:
            change = state["momentum_buffer"].mul_(group["momentum"]).add_(change)
        parameter.sub_(change * group["lr"])


@optimizer
class Adafactor(Rule):
    """The running square of a matrix in its row and column means; steps relative to the size of the parameter."""

    counts_steps = True

    lr: NonNegative
    eps: tuple[float, float] = (1e-30, 1e-3)
    clip_threshold: float = 1.0
    decay_rate: float = -0.8
    beta1: float | None = None
    weight_decay: NonNegative = 0.0
    scale_parameter: bool = True
    relative_step: bool = False
    warmup_init: bool = False

    def __post_init__(self) -> None:
        only = {"clip_threshold": 1.0, "beta1": None, "relative_step": False, "warmup_init": False}
        for name, value in only.items():
            given = getattr(self, name)
            if type(given) is not type(value) or given != value:
                raise ValueError(f"{name}: got {given!r}, must be {value!r}, the one value that the original has")
        if not isinstance(self.eps, tuple | list) or len(self.eps) != 2:
            raise TypeError(f"eps: got {self.eps!r}, must be two numbers")
        super().__post_init__()

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        if parameter.ndim < 2:
            return {"exp_avg_sq": torch.zeros_like(parameter)}
        row, column = parameter.shape[:-1], (*parameter.shape[:-2], parameter.shape[-1])
        where = parameter.device
        return {"exp_avg_sq_row": torch.zeros(row, device=where), "exp_avg_sq_col": torch.zeros(column, device=where)}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        rate = group["lr"]
        if group["scale_parameter"]:
            rate = rate * torch.clamp(_root_mean_square(parameter), min=group["eps"][1])
        keep = 1.0 - state["step"] ** group["decay_rate"]
        square = gradient * gradient + group["eps"][0]
        if parameter.ndim < 2:
            change = gradient * state["exp_avg_sq"].mul_(keep).add_(square * (1 - keep)).rsqrt()
        else:
            row = state["exp_avg_sq_row"].mul_(keep).add_(square.mean(-1) * (1 - keep))
            column = state["exp_avg_sq_col"].mul_(keep).add_(square.mean(-2) * (1 - keep))
            change = (row / row.mean(-1, keepdim=True)).rsqrt().unsqueeze(-1) * column.rsqrt().unsqueeze(-2) * gradient
        change = change / torch.clamp(_root_mean_square(change) / group["clip_threshold"], min=1.0) * rate
        parameter.sub_(parameter * (group["weight_decay"] * rate))
        parameter.sub_(change)


def _root_mean_square(tensor: Tensor) -> Tensor:
    return (tensor * tensor).mean().sqrt()
