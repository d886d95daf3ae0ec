"""The state of each optimizer between two updates of the gradient scaler: ready, scaled, unscaled or stepped."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from golden.torch.amp.gradients import common_norm, parameters_of
from golden.torch.settings.passes import note_unscaled

__all__ = ["Iteration", "as_optimizer", "as_optimizers", "check_has_no_closure"]

_UPDATE_MISSING = "is update() missing at the end of the loop?"


def as_optimizer(optimizer: Optimizer, argument: str = "optimizer") -> Optimizer:
    """Return an optimizer, or raise an error that names the fault."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{argument}: got {optimizer!r}, must be a torch.optim.Optimizer")
    return optimizer


def as_optimizers(optimizers: Optimizer | Iterable[Optimizer], argument: str = "optimizers") -> list[Optimizer]:
    """Accept one optimizer, or several."""
    try:
        several = iter(optimizers)  # type: ignore[arg-type]
    except TypeError:  # an array without axes has __iter__, and is none all the same
        return [as_optimizer(optimizers, argument)]  # type: ignore[arg-type]
    given = [as_optimizer(each, argument) for each in several]
    if not given:
        raise ValueError(f"{argument}: got no optimizer, must be at least one")
    return given


def check_has_no_closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a closure among the arguments of a step that the gradient scaler makes."""
    if kwargs.get("closure") or any(map(callable, args)):
        raise TypeError(
            "closure: got one, must not be given: the gradients that it computes would stay scaled; let it call "
            "scale(loss).backward(), unscale_(optimizer) and update(), and call optimizer.step(closure)"
        )


@dataclass
class _ScaledLoss:
    loss: weakref.ref[Tensor]
    backward_has_run: bool = False

    def note_backward(self, gradient: Tensor) -> None:
        self.backward_has_run = True


@dataclass
class Iteration:
    """A record of what happened since the last update, which decides what may happen next."""

    scaled: bool = False
    norms: dict[Optimizer, float] = field(default_factory=dict)  # of the unscaled gradients
    unscaled: dict[Optimizer, list[Tensor]] = field(default_factory=dict)  # these gradients
    clipped: set[Optimizer] = field(default_factory=set)
    stepped: set[Optimizer] = field(default_factory=set)
    updated: bool = False  # update_scale() has been called
    gradients_are_scaled: bool = True  # False: backward() was called on the loss itself
    _losses: list[_ScaledLoss] = field(default_factory=list)

    def note_scaled(self, loss: Tensor, scaled: Tensor) -> None:
        """Remember a loss that was scaled, and see whether its backward pass runs."""
        each = _ScaledLoss(weakref.ref(loss))
        self._losses.append(each)
        if scaled.requires_grad:
            scaled.register_hook(each.note_backward)

    def backward_of_scaled_has_run(self, loss: Tensor) -> bool:
        """Return whether this loss was scaled in this iteration and its backward pass has run."""
        return any(each.loss() is loss and each.backward_has_run for each in self._losses)

    def check_may_unscale(self, optimizer: Optimizer) -> None:
        """Raise an error unless a loss has been scaled and none of the optimizer's gradients is unscaled."""
        if optimizer in self.norms:
            done = "step()" if optimizer in self.stepped else "unscale_()"
            raise RuntimeError(f"optimizer: {done} was called on it since the last update() already; {_UPDATE_MISSING}")
        if not self.scaled:
            raise RuntimeError(
                "optimizer: no loss has been scaled since the last update(); was backward() called on the loss itself "
                "instead of on scaler.scale(loss)?"
            )
        gradients = [each.grad for each in parameters_of(optimizer) if each.grad is not None]
        others = [those for other, those in self.unscaled.items() if other is not optimizer]
        done_before = {id(each) for those in others for each in those}
        for number, gradient in enumerate(gradients, 1):
            if id(gradient) in done_before:
                raise RuntimeError(
                    f"optimizer: the gradient of its parameter {number} of shape {tuple(gradient.shape)} was unscaled "
                    "for another optimizer already, and would be divided twice; give each parameter, also a tied one, "
                    "to one optimizer"
                )
        self.unscaled[optimizer] = gradients
        note_unscaled()

    def check_may_step(self, optimizer: Optimizer) -> None:
        """Raise an error unless the optimizer is unscaled and its step is still to come."""
        if optimizer in self.stepped:
            raise RuntimeError(f"optimizer: it has stepped since the last update() already; {_UPDATE_MISSING}")
        if optimizer not in self.norms:
            raise RuntimeError(
                "optimizer: its gradients are still scaled; call unscale_(optimizer) before, or step(optimizer) instead"
            )

    def check_may_update(self, optimizers: Iterable[Optimizer]) -> None:
        """Raise an error unless the optimizers are unscaled or stepped."""
        if not self.norms.keys() >= set(optimizers) or not self.norms:
            raise RuntimeError(
                "optimizers: no gradients have been unscaled since the last update(); was step() forgotten, or "
                "update() called twice?"
            )

    def is_finite(self) -> bool:
        """Return whether the L2 norm of all gradients unscaled so far is below infinity in fp32."""
        return common_norm(self.norms.values()) < math.inf

    def make_ready(self, optimizers: Iterable[Optimizer]) -> None:
        """Begin anew for these optimizers."""
        for optimizer in list(optimizers):
            del self.norms[optimizer]
            self.unscaled.pop(optimizer, None)
            self.clipped.discard(optimizer)
            self.stepped.discard(optimizer)
        self.scaled = bool(self.norms)
        if not self.norms:
            self._losses.clear()
            self.gradients_are_scaled = True
