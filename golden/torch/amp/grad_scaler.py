"""The gradient scaler of mixed-precision training (NUMERICS section 7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from golden.loss_scaling import as_loss_scale
from golden.torch.amp.gradients import (
    clip_by_norm,
    common_norm,
    describe_overflow,
    divide,
    l2_norm,
    names_of,
    number_of,
    parameters_of,
)
from golden.torch.amp.iteration import Iteration, as_optimizer, as_optimizers, check_has_no_closure
from golden.torch.amp.scale import LossCheck, LossScale, note_step
from golden.torch.common.processes import highest_rank_where, rank
from golden.torch.common.terminal import say_once
from golden.torch.guard.unscaled import scaled_step
from golden.torch.settings.scopes import scopes

__all__ = ["GradScaler"]

Outputs = TypeVar("Outputs", Tensor, list[Any], tuple[Any, ...])


class GradScaler:
    """Scale the loss, unscale the gradients, skip the steps that overflowed, adapt the scale.

    One training step, after ``optimizer.zero_grad()``::

        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)       # only if something reads the gradients, such as clipping
        scaler.step(optimizer)           # unscales unless that is done; no step if the gradients overflowed
        scaler.update()                  # once, after all optimizers

    An optimizer goes from ready to scaled, unscaled and stepped, and back with ``update``; another order raises an
    error. A step that is not finite (the fp32 L2 norm of all gradients unscaled since the last update is not below
    infinity) changes neither parameters nor optimizer states. Where ``torch.distributed`` runs, a step that overflowed
    on one process is skipped on all, for which every process has to make the same calls.

    The original of ``cerebras.pytorch`` departs from its documents in three points. This class follows the documents:
    `step` unscales by itself, a loss scale of 0 is an error, and the only string it accepts is ``"dynamic"``.

    Parameters
    ----------
    loss_scale : None, float or "dynamic"
        None: no scaling, no check, and `step` is ``optimizer.step``. A positive number: that scale, always.
        ``"dynamic"``: the rule of `golden.loss_scaling.DynamicLossScale`.
    init_scale, steps_per_increase, min_loss_scale, max_loss_scale, overflow_tolerance, hysteresis
        Of the dynamic rule, see there. None stands for the default of the half type (scale 2^31 for cbfloat16, 2^15
        otherwise): inside a precision context, of that one; else of the products in the first loss that is scaled,
        until when the half type in force, or that of a model that went through `initialize`, is assumed.
    max_gradient_norm : float, optional
        `step` scales gradients down to this L2 norm; see `clip_gradients_and_return_isfinite` for several optimizers.
    initial_loss_scale : float, optional
        `init_scale` under the name that older documents give it.
    named_parameters : iterable of (str, Tensor), optional
        ``model.named_parameters()``: the names that `get_skip_reason` uses.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, in whichever mode; the message names it.

    Examples
    --------
    >>> scaler = GradScaler("dynamic", init_scale=8.0)
    >>> scaler.get_scale(), scaler.get_num_skipped_steps()
    (8.0, 0)
    """

    def __init__(
        self,
        loss_scale: float | Literal["dynamic"] | None = None,
        init_scale: float | None = None,
        steps_per_increase: int | None = None,
        min_loss_scale: float | None = None,
        max_loss_scale: float | None = None,
        overflow_tolerance: float = 0.0,
        max_gradient_norm: float | None = None,
        *,
        hysteresis: int = 1,
        initial_loss_scale: float | None = None,
        named_parameters: Iterable[tuple[str, Tensor]] | None = None,
    ) -> None:
        if initial_loss_scale is not None:
            if init_scale is not None:
                raise ValueError("initial_loss_scale: another name of init_scale, must not be given beside it")
            init_scale = as_loss_scale(initial_loss_scale, "initial_loss_scale").item()
        if max_gradient_norm is not None:
            as_loss_scale(max_gradient_norm, "max_gradient_norm")
        self._scale = LossScale(
            loss_scale,
            init_scale=init_scale,
            steps_per_increase=steps_per_increase,
            min_loss_scale=min_loss_scale,
            max_loss_scale=max_loss_scale,
            overflow_tolerance=overflow_tolerance,
            hysteresis=hysteresis,
        )
        self._enabled = self._scale.enabled
        self._max_gradient_norm = max_gradient_norm
        self._names = names_of(named_parameters)
        self._iteration = Iteration()
        self._skip_reason: str | None = None
        self._check_loss = LossCheck()

    def scale(self, outputs: Outputs) -> Outputs:
        """Multiply a loss, or a list or tuple of losses, by the loss scale.

        A loss in 16 bits becomes fp32 before: its format holds few of the products.

        Raises
        ------
        TypeError
            If something is no tensor.
        RuntimeError
            If a half type has been set, and none of the products that a loss comes from is exact.
        """
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        if not isinstance(outputs, Tensor):
            raise TypeError(f"outputs: got {outputs!r}, must be a tensor, or a list or tuple of tensors")
        self._check_loss(outputs)
        if not self._enabled:
            return outputs
        self._scale.settle(outputs)
        self._iteration.scaled = True
        scaled = (outputs.float() if outputs.itemsize < 4 else outputs) * self.get_scale()
        self._iteration.note_scaled(outputs, scaled)
        if scopes.observation is not None:
            scopes.observation.note_scaled(outputs, self.get_scale(), self.get_num_skipped_steps())
        return scaled

    def backward_has_run(self, loss: Tensor) -> bool:
        """Return whether `scale` was given this loss since the last update, and the backward pass of that has run."""
        return self._iteration.backward_of_scaled_has_run(loss)

    def take_unscaled_gradients(self) -> None:
        """Take the gradients of this iteration as they are: ``backward`` was called on the loss itself."""
        if self._enabled:
            say_once(
                "optimizer_step: loss.backward() was called before, so that the loss scale has no effect; leave it "
                "out, or call grad_scaler.scale(loss).backward()"
            )
            self._iteration.scaled, self._iteration.gradients_are_scaled = True, False

    def get_scale(self) -> float:
        """Return the loss scale, 1.0 when scaling is disabled."""
        return float(self._scale.state.loss_scale)

    def get_non_clamped_scale(self) -> float:
        """Return the loss scale as it was before `min_loss_scale` raised it."""
        return float(self._scale.state.non_clamped_scale)

    def get_num_skipped_steps(self) -> int:
        """Return how many steps have been skipped since the beginning."""
        return self._scale.state.num_skipped_steps

    def get_skip_reason(self) -> str | None:
        """Say why the latest step was skipped: the first parameter whose gradient is not finite. None if it was not."""
        return self._skip_reason

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the loss scale, in place, and see whether they are finite.

        Raises
        ------
        RuntimeError
            If no loss has been scaled since the last update, if the optimizer is unscaled or has stepped already, or if
            none of its parameters has a gradient.
        TypeError
            If a gradient is not float32 or float64.
        """
        optimizer = as_optimizer(optimizer)
        if not self._enabled:
            return
        now = self._iteration
        now.check_may_unscale(optimizer)
        parameters = parameters_of(optimizer)
        if not parameters:
            raise RuntimeError(
                "optimizer: none of its parameters has a gradient; was backward() forgotten, or did zero_grad() come "
                "after it?"
            )
        for each in parameters:
            if each.dtype not in (torch.float32, torch.float64):
                raise TypeError(
                    f"optimizer: got a gradient of {each.dtype}, must be torch.float32; keep the parameters in float32 "
                    "(no model.half()), the products round their operands themselves"
                )
        if not now.norms:
            self._skip_reason = None
        if now.gradients_are_scaled:
            divide(parameters, self.get_scale())
        now.norms[optimizer] = self._norm(optimizer)

    def clip_gradients_and_return_isfinite(self, optimizers: Optimizer | Iterable[Optimizer]) -> bool:
        """Unscale the gradients where needed, then clip all gradients of these optimizers to `max_gradient_norm`.

        Parameters
        ----------
        optimizers : Optimizer or iterable of Optimizer
            Their gradients are clipped together, by their common norm. `step` clips those of its optimizer alone,
            unless this method has clipped them.

        Returns
        -------
        bool
            Whether the common norm was finite before.

        Raises
        ------
        RuntimeError, TypeError
            As `unscale_` does.
        """
        given = as_optimizers(optimizers)
        if self._enabled:
            for optimizer in given:
                if optimizer not in self._iteration.norms:
                    self.unscale_(optimizer)
        # The gradients may have been changed since unscale_ took their norms. But an overflow stays one: clipping by
        # value makes a number of infinity.
        then = self._iteration.norms
        norms = {each: self._norm(each) if then.get(each, 0.0) < math.inf else math.inf for each in given}
        norm = common_norm(norms.values())
        if self._max_gradient_norm is not None:
            parameters = [each for optimizer in given for each in parameters_of(optimizer)]
            clip_by_norm(parameters, norm, self._max_gradient_norm)
        if self._enabled:
            self._iteration.norms |= norms
            self._iteration.clipped |= norms.keys()
        return norm < math.inf

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale and clip unless that is done, then make the step if it is finite.

        Parameters
        ----------
        optimizer : Optimizer
            The optimizer to step.
        *args, **kwargs
            For ``optimizer.step``. A closure is refused: the gradients that it computes would stay scaled.

        Returns
        -------
        object
            What ``optimizer.step`` returns; None if the step was skipped.

        Raises
        ------
        RuntimeError
            If the optimizer has stepped since the last update, or as `unscale_` does.
        TypeError
            If a closure is given.
        """
        optimizer = as_optimizer(optimizer)
        now = self._iteration
        is_new = self._enabled and optimizer not in now.norms
        if is_new:
            self.unscale_(optimizer)
        if self._max_gradient_norm is not None and optimizer not in now.clipped:
            if is_new:  # nobody has changed the gradients since their norm was taken, which a GPU waits for
                clip_by_norm(parameters_of(optimizer), now.norms[optimizer], self._max_gradient_norm)
                now.clipped.add(optimizer)
            else:
                self.clip_gradients_and_return_isfinite(optimizer)
        return self.step_if_finite(optimizer, *args, **kwargs)

    def step_if_finite(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Make the step if it is finite; the gradients must be unscaled. All else is as in `step`."""
        optimizer = as_optimizer(optimizer)
        if self._enabled:
            check_has_no_closure(args, kwargs)
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        self._iteration.check_may_step(optimizer)
        self._iteration.stepped.add(optimizer)
        finite = self._iteration.is_finite()
        note_step(optimizer, made=finite)
        if finite:
            with scaled_step():
                return optimizer.step(*args, **kwargs)
        self._skip_reason = self._skip_reason or "the L2 norm of the gradients of all optimizers together is infinite"
        return None

    def update_scale(self, optimizers: Optimizer | Iterable[Optimizer]) -> None:
        """Adapt the scale to the gradients unscaled since the last update, and make these optimizers ready again.

        Raises
        ------
        RuntimeError
            If one of the optimizers has not been unscaled since the last update.
        """
        given = as_optimizers(optimizers)
        if not self._enabled:
            return
        self._iteration.check_may_update(given)
        self._scale.next(finite=self._iteration.is_finite())
        self._iteration.make_ready(given)
        self._iteration.updated = True

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """End the iteration: adapt the scale by the rule, or set it.

        Parameters
        ----------
        new_scale : float or Tensor, optional
            The scale from now on; the counters of the rule start again.

        Raises
        ------
        RuntimeError
            If no optimizer has been unscaled since the last update; with `new_scale`, or after `update_scale`, none
            needs to be.
        TypeError, ValueError
            If `new_scale` is not a positive number.
        """
        if not self._enabled:
            return
        scale = None if new_scale is None else as_loss_scale(number_of(new_scale), "new_scale")
        if scale is None and not self._iteration.updated:
            self._iteration.check_may_update(())
        if self._iteration.norms:
            self.update_scale(list(self._iteration.norms))
        self._iteration.updated = False
        if scale is not None:
            self._scale.set(scale)
            self._iteration = Iteration()
        if scopes.observation is not None:
            scopes.observation.note_update(self.get_num_skipped_steps())

    def abandon(self) -> None:
        """Drop all notes since the last update, after an error in the middle of a step.

        The scale and its counters stay as they are; clear the gradients before the next step.
        """
        self._iteration = Iteration()

    def state_dict(self) -> dict[str, float | int]:
        """Return the state for a checkpoint, empty when scaling is disabled.

        Returns
        -------
        dict
            ``loss_scale``, ``steps_since_rescale``, ``overflows_since_rescale``, ``num_skipped_steps``; with hysteresis
            ``overflows_in_a_row``, too.
        """
        return self._scale.to_dict() if self._enabled else {}

    def load_state_dict(self, state_dict: Mapping[str, float | int | Tensor]) -> None:
        """Take over what `state_dict` returned; without effect when scaling is disabled.

        Parameters
        ----------
        state_dict : mapping of str to number or Tensor
            What is missing stays as it is.

        Raises
        ------
        RuntimeError
            If an iteration is under way: after `scale` or `unscale_`, before `update`.
        TypeError, ValueError
            If a key is unknown or a value is not possible; then nothing changes.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"state_dict: got {type(state_dict).__name__}, must be a result of state_dict()")
        if not self._enabled:
            return
        if self._iteration.scaled or self._iteration.norms:
            raise RuntimeError(
                "state_dict: an iteration is under way; load before scale(), after update() or abandon()"
            )
        self._scale.load({name: number_of(each) for name, each in state_dict.items()})

    def _norm(self, optimizer: Optimizer) -> float:
        """Return the norm of the gradients of an optimizer, infinity if it is not finite on another process."""
        norm = l2_norm(parameters_of(optimizer))
        if not self._enabled:
            return norm
        where = highest_rank_where(not norm < math.inf)
        if where is None:
            return norm
        reason = describe_overflow([optimizer], self._names) or "the L2 norm of the gradients is infinite in fp32"
        if norm < math.inf:
            reason = f"the gradients are not finite on rank {where}"
        self._skip_reason = self._skip_reason or reason
        return norm if where == rank() else math.inf
