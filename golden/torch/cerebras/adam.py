"""Adam and its relatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from golden.torch.cerebras.optimizer import Betas, Group, NonNegative, Rule, State, check_least, optimizer
from golden.torch.common.arguments import check_items

__all__ = ["Adam", "AdamW", "Adamax", "Lamb", "NAdam", "RAdam"]


def _averages(gradient: Tensor, state: State, group: Group) -> tuple[Tensor, Tensor]:
    """Advance the running averages of the gradient and of its square."""
    first, second = group["betas"]
    average = state["exp_avg"].mul_(first).add_(gradient, alpha=1.0 - first)
    square = state["exp_avg_sq"].mul_(second).addcmul_(gradient, gradient, value=1.0 - second)
    return average, square


@optimizer
class AdamBase(Rule):
    """Adam with decoupled weight decay, L2 regularisation or both.

    The powers of the betas are kept as a product, and `eps` is added before the bias is corrected, as in the original;
    PyTorch adds it after.
    """

    keeps = ("exp_avg", "exp_avg_sq")

    lr: NonNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0.0
    l2_regularization_rate: NonNegative = 0.0
    correct_bias: bool = True
    amsgrad: bool = False

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        state = super()._initial_state(parameter, group)
        if group["amsgrad"]:
            state |= {"max_exp_avg_sq": torch.zeros_like(parameter)}
        if group["correct_bias"]:
            first, second = group["betas"]
            state |= {"beta1_power": torch.tensor(first), "beta2_power": torch.tensor(second)}
        return state

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        if group["l2_regularization_rate"] > 0:
            gradient = gradient + parameter * group["l2_regularization_rate"]
        average, square = _averages(gradient, state, group)
        if group["amsgrad"]:
            square = torch.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
        change = average / (square.sqrt() + group["eps"])
        if group["correct_bias"]:
            change *= torch.sqrt(1.0 - state["beta2_power"]) / (1.0 - state["beta1_power"])
            state["beta1_power"] *= group["betas"][0]
            state["beta2_power"] *= group["betas"][1]
        parameter.sub_((change + parameter * group["weight_decay"]) * group["lr"])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state; one of PyTorch's Adam, which counts steps instead of keeping powers, is turned."""
        groups = {at: group for group in state_dict["param_groups"] for at in group["params"]}
        state = {}
        for at, given in state_dict["state"].items():
            state[at] = dict(given)
            if "step" in given and "beta1_power" not in given:
                step = float(state[at].pop("step"))
                if groups[at].get("correct_bias", True):
                    first, second = groups[at]["betas"]
                    # The powers belong to the next step.
                    state[at]["beta1_power"] = torch.tensor(first ** (step + 1))
                    state[at]["beta2_power"] = torch.tensor(second ** (step + 1))
        defaults = self.defaults
        param_groups = [{**defaults, **group} for group in state_dict["param_groups"]]
        super().load_state_dict({"state": state, "param_groups": param_groups})


class AdamW(AdamBase):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        correct_bias: bool = True,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, 0.0, correct_bias, amsgrad)


class Adam(AdamBase):
    """Adam, whose `weight_decay` is L2 regularisation: it becomes part of the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        correct_bias: bool = True,
    ) -> None:
        check_least(weight_decay=weight_decay)
        if not isinstance(params, Tensor):
            params = check_items(params, "params", "parameters, or of groups of them")
            params = [_as_l2(each) if isinstance(each, dict) else each for each in params]
        super().__init__(params, lr, betas, eps, 0.0, weight_decay, correct_bias, amsgrad)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state, also one of PyTorch's Adam."""
        groups = [_as_l2(group) for group in state_dict["param_groups"]]
        super().load_state_dict({"state": state_dict["state"], "param_groups": groups})


def _as_l2(group: Group) -> Group:
    """Return a group of Adam with its weight decay under its other name."""
    if "l2_regularization_rate" in group or "weight_decay" not in group:
        return group
    return {**group, "l2_regularization_rate": group["weight_decay"], "weight_decay": 0.0}


@optimizer
class Adamax(Rule):
    """Adam on the largest gradient that is remembered, in place of the average square."""

    keeps = ("exp_avg", "exp_inf")

    lr: NonNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0.0
    maximize: bool = False

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return super()._initial_state(parameter, group) | {"beta1_power": torch.tensor(group["betas"][0])}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        first, second = group["betas"]
        gradient = (-gradient if group["maximize"] else gradient) + parameter * group["weight_decay"]
        average = state["exp_avg"].mul_(first).add_(gradient, alpha=1.0 - first)
        largest = state["exp_inf"]
        torch.maximum(largest * second, gradient.abs() + group["eps"], out=largest)
        parameter.sub_(average / largest / (1.0 - state["beta1_power"]) * group["lr"])
        state["beta1_power"] *= first


@optimizer
class NAdam(Rule):
    """Adam with Nesterov's momentum; the product of the next momentum has one factor more than PyTorch's, as there."""

    keeps = ("exp_avg", "exp_avg_sq")
    counts_steps = True

    lr: NonNegative = 2e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-8
    weight_decay: NonNegative = 0
    momentum_decay: NonNegative = 4e-3

    def _initial_state(self, parameter: Tensor, group: Group) -> State:
        return super()._initial_state(parameter, group) | {"mu_product": torch.tensor(1.0)}

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        first, second = group["betas"]
        step, decay = state["step"], group["momentum_decay"]
        gradient = gradient + parameter * group["weight_decay"]
        average, square = _averages(gradient, state, group)
        now, later = (first * (1.0 - 0.5 * 0.96 ** (each * decay)) for each in (step, step + 1))
        product = state["mu_product"].mul_(now)
        denominator = (square / (1 - second**step)).sqrt() + group["eps"]
        momentum = average * later / (1.0 - product * now * later)
        parameter.sub_((momentum + gradient * (1.0 - now) / (1.0 - product)) / denominator * group["lr"])


@optimizer
class RAdam(Rule):
    """Adam that waits until the variance of its step is known: before, it follows the momentum alone."""

    keeps = ("exp_avg", "exp_avg_sq")
    counts_steps = True

    lr: NonNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0.0

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        first, second = group["betas"]
        step = float(state["step"])
        average, square = _averages(gradient + parameter * group["weight_decay"], state, group)
        change = average / (1 - first**step)
        longest = 2 / (1 - second) - 1
        length = longest - 2 * step * second**step / (1 - second**step)
        if length > 5:
            rectified = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            change *= (rectified * (1 - second**step)) ** 0.5 / (square.sqrt() + group["eps"])
        parameter.sub_(change * group["lr"])


@optimizer
class Lamb(Rule):
    """Adam without bias correction, each parameter's step scaled to the norm of the parameter (at most 10)."""

    keeps = ("exp_avg", "exp_avg_sq")

    lr: NonNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NonNegative = 1e-6
    weight_decay: NonNegative = 0
    adam: bool = False

    def _update(self, parameter: Tensor, gradient: Tensor, state: State, group: Group) -> None:
        average, square = _averages(gradient, state, group)
        change = average / (square.sqrt() + group["eps"]) + parameter * group["weight_decay"]
        size, step = (each.pow(2).sum().sqrt() for each in (parameter, change))
        size = size.clamp(0, 10)
        trust = size / step if size > 0 and step > 0 and not group["adam"] else 1.0
        parameter.sub_(change * trust * group["lr"])
