"""A training step in one call: scale, backward, unscale, clip, step, update."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor
from torch.optim import Optimizer

from golden.loss_scaling import as_loss_scale
from golden.torch.amp.grad_scaler import GradScaler
from golden.torch.amp.gradients import clip_by_norm, clip_by_value, l2_norm, parameters_of
from golden.torch.amp.iteration import as_optimizers
from golden.torch.guard.provenance import backward_has_run

__all__ = ["check_clipping", "check_has_gradient", "clip_gradients", "optimizer_step"]


def check_clipping(max_gradient_norm: float | None, max_gradient_value: float | None) -> None:
    """Raise an error unless at most one limit is given, and that is positive."""
    for name, given in (("max_gradient_norm", max_gradient_norm), ("max_gradient_value", max_gradient_value)):
        if given is not None:
            as_loss_scale(given, name)
    if max_gradient_norm is not None and max_gradient_value is not None:
        raise ValueError(
            f"max_gradient_norm: got {max_gradient_norm} beside max_gradient_value {max_gradient_value}, must be None "
            "then; gradients are clipped by norm or by value"
        )


def check_has_gradient(loss: Tensor) -> None:
    """Raise an error, which says what may be the cause, unless a loss is a number that depends on a parameter."""
    if loss.numel() != 1:
        raise ValueError(
            f"loss: got a tensor of shape {tuple(loss.shape)}, must have one element; take its mean, or its sum"
        )
    if not loss.requires_grad:
        raise ValueError(
            "loss: got a tensor that depends on no parameter with requires_grad, must depend on one; are all "
            "parameters frozen, is it made of integers, or was it detached or computed under torch.no_grad()?"
        )


def clip_gradients(
    optimizers: Optimizer | Iterable[Optimizer], max_gradient_norm: float | None, max_gradient_value: float | None
) -> None:
    """Clip the gradients of one or more optimizers by their common norm, or each by its value.

    Raises
    ------
    TypeError, ValueError
        If a limit is no positive number, or both are given.
    """
    check_clipping(max_gradient_norm, max_gradient_value)
    parameters = [each for optimizer in as_optimizers(optimizers) for each in parameters_of(optimizer)]
    if max_gradient_norm is not None:
        clip_by_norm(parameters, l2_norm(parameters), max_gradient_norm)
    elif max_gradient_value is not None:
        clip_by_value(parameters, max_gradient_value)


def optimizer_step(
    loss: Tensor,
    optimizer: Optimizer | Iterable[Optimizer],
    grad_scaler: GradScaler,
    max_gradient_norm: float | None = None,
    max_gradient_value: float | None = None,
    *,
    max_gradient_val: float | None = None,
    backward: bool | None = None,
) -> None:
    """Backward, unscale, clip, step and update; then the gradients are cleared for the next step.

    The tutorials leave the backward pass to this function, the reference of the original says to run it before; both
    make one right step. Left to this function, the loss is scaled before, as it should be. After
    ``grad_scaler.scale(loss).backward()`` nothing is computed again. After ``loss.backward()`` the gradients were never
    scaled: they are taken as they are, and the log says once that the loss scale had no effect.

    To accumulate gradients over several batches, call ``grad_scaler.scale(loss).backward()`` for all but the last.

    Parameters
    ----------
    loss : Tensor
        The loss of the batch, not scaled.
    optimizer : Optimizer or iterable of Optimizer
        What to step; gradients of several are clipped together.
    grad_scaler : GradScaler
        ``GradScaler(None)`` for a training without loss scaling.
    max_gradient_norm, max_gradient_value : float, optional
        Clip the unscaled gradients to this L2 norm, or each to this absolute value.
    max_gradient_val : float, optional
        `max_gradient_value` under the name that the tutorials give it.
    backward : bool, optional
        Whether to run the backward pass. Unless given, the graph of the loss tells whether it has run; it cannot tell
        after ``loss.backward(retain_graph=True)`` of a loss without exact products: give False there.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong; nothing has happened then.
    RuntimeError
        If the scaler is in the middle of another step of this optimizer.
    """
    if max_gradient_val is not None:
        if max_gradient_value is not None:
            raise ValueError("max_gradient_val: another name of max_gradient_value, must not be given beside it")
        max_gradient_value = max_gradient_val
    check_clipping(max_gradient_norm, max_gradient_value)
    optimizers = as_optimizers(optimizer, "optimizer")
    if not isinstance(loss, Tensor):
        raise TypeError(f"loss: got {loss!r}, must be a tensor")
    if not isinstance(grad_scaler, GradScaler):
        raise TypeError(f"grad_scaler: got {grad_scaler!r}, must be a GradScaler; GradScaler(None) does not scale")
    if backward is None:
        backward = not (grad_scaler.backward_has_run(loss) or backward_has_run(loss))
    if backward:
        check_has_gradient(loss)
        grad_scaler.scale(loss).backward()
    elif not grad_scaler.backward_has_run(loss):
        grad_scaler.take_unscaled_gradients()
    for each in optimizers:
        grad_scaler.unscale_(each)
    clip_gradients(optimizers, max_gradient_norm, max_gradient_value)
    for each in optimizers:
        grad_scaler.step(each)
    grad_scaler.update()
    for each in optimizers:
        each.zero_grad()
