"""The scale of a gradient scaler: a rule, a state, and the half type whose defaults they take.

`LossCheck` finds out from its graph whether a loss comes from exact products, so that a loop in plain fp32 does not go
unnoticed. `isfinite` and `note_step` keep whether the latest step of an optimizer was made, for schedules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import numpy as np
from torch import Tensor
from torch.optim import Optimizer

from golden.loss_scaling import DynamicLossScale, LossScaleState, as_loss_scale
from golden.torch.guard.operator_table import PRODUCTS
from golden.torch.guard.provenance import half_of, made_in, nodes
from golden.torch.settings.half import current_half, expected_half, wants_mixed_precision
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.scopes import Process, scopes

__all__ = ["LossCheck", "LossScale", "isfinite", "note_step"]


_skipped: WeakSet[Optimizer] = WeakSet()


def note_step(optimizer: Optimizer, *, made: bool) -> None:
    """Remember whether the gradient scaler made the step of an optimizer, or skipped it."""
    if made:
        _skipped.discard(optimizer)
    else:
        _skipped.add(optimizer)


def isfinite(optimizer: Optimizer) -> bool:
    """Return whether the latest step of an optimizer was made, and not skipped because its gradients overflowed."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer: got {type(optimizer).__name__}, must be a torch.optim.Optimizer")
    return optimizer not in _skipped


def _node_name(operator: str) -> str:
    """Return how PyTorch names the gradient of an operator, without ``Backward`` and a number."""
    return "".join(word[:1].upper() + word[1:] for word in operator.removesuffix("_forward").split("_"))


_PYTORCHS = frozenset(_node_name(each) for names in PRODUCTS.values() for each in names.split())
_BACKWARD = re.compile(r"Backward\d*$")


class LossCheck:
    """Refuses a loss none of whose products is exact, where a half type has been set.

    The search ends at the first exact product, a few nodes from the loss. Compiled code and checkpoints hide their
    products; whether exact ones ran since the last loss decides then.
    """

    def __init__(self) -> None:
        self._ran = Process.products

    def __call__(self, loss: Tensor) -> None:
        """Raise RuntimeError if the loss has products, none of them exact, and mixed precision has been asked for."""
        ran, self._ran = Process.products != self._ran, Process.products
        is_meant = scopes.precisions and not scopes.precisions[-1].enabled
        if loss.grad_fn is None or is_meant or not (scopes.precisions or wants_mixed_precision()):
            return
        found = None
        for node in nodes(loss.grad_fn):
            function, settings = getattr(type(node), "_forward_cls", None), made_in(node)
            if settings is not None and not settings.enabled:
                continue  # fp32 is meant
            if function is None:
                name = _BACKWARD.sub("", node.name())
                found = found or (f"{name} is PyTorch's own, in fp32" if name in _PYTORCHS else None)
            elif not function.__module__.startswith("golden.torch"):
                if ran:
                    return
                found = found or f"{function.__name__} ran none"
            elif function.__name__ != "_Rounded":
                return
        if found:
            raise RuntimeError(
                f"outputs: got a loss none of whose products is exact ({found}), although the half type is "
                f"{current_half().name}, which by itself turns nothing on; run the forward pass in 'with "
                "golden.torch.precision():', or call golden.torch.amp.initialize(model) before the training. "
                "If you want fp32, call golden.torch.enable_mixed_precision(False), or put 'with "
                "golden.torch.precision(enabled=False):' around the forward pass"
            )


class LossScale:
    """No scale, a static one, or a dynamic one with the defaults for the first scaled loss; see `GradScaler`."""

    def __init__(self, loss_scale: Any, **given: Any) -> None:
        if isinstance(loss_scale, str) and loss_scale != "dynamic":
            raise ValueError(f"loss_scale: got {loss_scale!r}, must be None, a positive number or 'dynamic'")
        self._given = given
        rule = DynamicLossScale.for_format(current_half().format, **given)  # checks the parameters, in whichever mode
        self.enabled, self.dynamic = loss_scale is not None, isinstance(loss_scale, str)
        # Whether the half type is known for good, and whether the scale has left its first value.
        self._settled, self._started = not self.dynamic or bool(scopes.precisions), not self.dynamic
        if self.dynamic:
            self._rule, self._state = rule, rule.start()
        else:
            scale = np.float32(1) if loss_scale is None else as_loss_scale(loss_scale, "loss_scale")
            self._rule, self._state = rule, LossScaleState(scale, scale)

    @property
    def state(self) -> LossScaleState:
        """The state; until a loss is scaled, the initial one for the half type in force."""
        if not self._settled:
            self._take(expected_half())
        return self._state

    def settle(self, loss: Tensor) -> None:
        """Take the defaults of the products of a loss, for good."""
        if not self._settled:
            self._take(half_of(loss) or expected_half())
        self._settled = self._started = True

    def _take(self, half: HalfType) -> None:
        self._rule = DynamicLossScale.for_format(half.format, **self._given)
        if not self._started:
            self._state = self._rule.start()

    def next(self, *, finite: bool) -> None:
        """Adapt the scale to a step; a static one counts the skipped steps alone."""
        if self.dynamic:
            self._state = self._rule.next(self.state, finite=finite)
        elif not finite:
            self._state = replace(self._state, num_skipped_steps=self._state.num_skipped_steps + 1)

    def set(self, scale: np.float32) -> None:
        """Set the scale; the counters of the rule start again."""
        self._state = LossScaleState(scale, scale, num_skipped_steps=self.state.num_skipped_steps)
        self._started = True

    def to_dict(self) -> dict[str, float | int]:
        """Return the state for a checkpoint."""
        return self.state.to_dict(with_hysteresis=self.dynamic and self._rule.hysteresis > 1)

    def load(self, values: Mapping[str, Any]) -> None:
        """Take over what `to_dict` returned."""
        self._state = self.state.with_values(values)
        self._started = True
