"""The scale of a gradient scaler: a rule, a state, and the half type whose defaults they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from golden.loss_scaling import DynamicLossScale, LossScaleState, as_loss_scale
from golden.torch.guard.provenance import half_of
from golden.torch.settings.half import current_half, expected_half
from golden.torch.settings.half_type import HalfType
from golden.torch.settings.scopes import scopes

__all__ = ["LossScale"]


class LossScale:
    """No scale, a static one, or a dynamic one whose defaults are those of the first loss that is scaled.

    Parameters
    ----------
    loss_scale : None, float or "dynamic"
        As for `golden.torch.amp.GradScaler`.
    **given
        Parameters of the dynamic rule.
    """

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
        """The state, that of the half type in force as long as no loss has been scaled."""
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
        """Return what a checkpoint has to keep."""
        return self.state.to_dict(with_hysteresis=self.dynamic and self._rule.hysteresis > 1)

    def load(self, values: Mapping[str, Any]) -> None:
        """Take over what `to_dict` returned."""
        self._state = self.state.with_values(values)
        self._started = True
