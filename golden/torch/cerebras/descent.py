"""Optimizers that follow the gradient, its sign or its momentum: SGD, averaged SGD, Lion, Rprop, Muon."""

from __future__ import annotations

import torch
from torch import Tensor

from golden.torch.amp.precision import precision
from golden.torch.cerebras.optimizer import Betas, Group, NonNegative, Rule, State, check_least, optimizer
from golden.torch.common.arguments import check_flags

__all__ = ["ASGD", "SGD", "Lion", "Muon", "Rprop"]


@optimizer
class SGD(Rule):
    """Stochastic gradient descent; the momentum starts at zero, so that the first step is dampened, too."""

    lr: NonNegative
    momentum: NonNegative = 0
    dampening: float = 0
    weight_decay: NonNegative = 0
    nesterov: bool = False
    maximize: bool = False

    def __post_init__(self) -> None:
        check_least(momentum=self.momentum)
        check_flags(nesterov=self.nesterov)
        if self.nesterov and (self.momentum <= 0 or self.dampening != 0):
            raise ValueError(
                f"nesterov: got True with momentum {self.momentum} and dampening {self.dampening}, needs a momentum "
                "and no dampening"
            )
        super().__post_init__()

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return {"momentum_buffer": torch.zeros_like(parameter)} if group["momentum"] else {}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        change = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        if group["momentum"]:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).add_(change, alpha=1.0 - group["dampening"])
            change = change + buffer * group["momentum"] if group["nesterov"] else buffer
        parameter.sub_(change * group["lr"])


@optimizer
class ASGD(Rule):
    """Averaged stochastic gradient descent; ``state["ax"]`` is the average from step `t0` on."""

    counts_steps = True

    lr: NonNegative = 0.01
    lambd: float = 0.0001
    alpha: float = 0.75
    t0: float = 1000000.0
    weight_decay: NonNegative = 0
    maximize: bool = False

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


@optimizer
class Lion(Rule):
    """The sign of an average of gradients is the step; decoupled weight decay."""

    keeps = ("exp_avg",)

    lr: NonNegative = 0.0001
    betas: Betas = (0.9, 0.99)
    weight_decay: NonNegative = 0.0

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        first, second = group["betas"]
        average = state["exp_avg"]
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_((average * first + gradient * (1 - first)).sign() * group["lr"])
        average.mul_(second).add_(gradient, alpha=1 - second)


@optimizer
class Rprop(Rule):
    """Steps that grow while the sign of the gradient stays, and shrink when it changes."""

    lr: NonNegative = 0.001
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-06, 50.0)

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


@optimizer
class Muon(Rule):
    """Momentum whose matrix is made orthogonal, by five Newton-Schulz steps on exact bfloat16 products.

    For parameters of two or more axes; the others belong into another optimizer. (The original's own function cannot
    run on its CPU backend.)
    """

    lr: NonNegative = 0.02
    weight_decay: NonNegative = 0.01
    momentum: NonNegative = 0.95
    nesterov: bool = True
    ns_steps: NonNegative = 5

    def __post_init__(self) -> None:
        for name in ("weight_decay", "momentum"):
            check_least(**{name: getattr(self, name)})
            if getattr(self, name) >= 1:
                raise ValueError(f"{name}: got {getattr(self, name)}, must be below 1")
        super().__post_init__()

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        if parameter.ndim < 2:
            raise ValueError(
                f"params: got a parameter of shape {tuple(parameter.shape)}, must have two or more axes; give "
                "biases and the like to another optimizer"
            )
        return {"momentum_buffer": torch.zeros_like(parameter)} if group["momentum"] else {}

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
