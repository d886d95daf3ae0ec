"""The error for a step in cbfloat16 with an unscaled loss; it says what to add.

The exact kernels note a product that runs in a backward pass; an optimizer's step asks whether the latest backward pass
had one in cbfloat16, or none at all although cbfloat16 has been set, unless a gradient scaler makes the step. A step
with a closure asks after each backward pass of the closure.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from golden import CBFLOAT16
from golden.kernels.library import follow
from golden.torch.common.frames import run_as_written
from golden.torch.settings.format_text import ACCUMULATOR, MODES
from golden.torch.settings.half import current_half, wants_mixed_precision
from golden.torch.settings.scopes import Process

__all__ = ["note_backward", "note_product", "note_pytorchs_product", "note_unscaled", "scaled_step", "unnoted"]


_REMEDY = (
    "Add scaler = cstorch.amp.GradScaler('dynamic'), then scaler.scale(loss).backward(), scaler.step(optimizer) and "
    "scaler.update() in every step"
)
_REMEDY_IN_A_CLOSURE = (
    "Make scaler = cstorch.amp.GradScaler('dynamic'), and call scaler.scale(loss).backward(), "
    "scaler.unscale_(optimizer) and scaler.update() in the closure"
)


class _Latest:
    """The number of the latest backward pass of each kind, counted from 1; -1 if none waits for its step."""

    backward = -1  # with a product in cbfloat16
    other = -1  # with one in another half type, or whose gradients a scaler has unscaled
    fp32 = -1  # of a loss made in a precision that is not enabled
    plain = -1  # with a product of PyTorch's that no precision covers


class _Steps(threading.local):
    scaled = False


_steps = _Steps()


def note_backward(*, is_fp32: bool) -> None:
    """Note that a backward pass begins, and whether its loss is meant to be in fp32."""
    Process.backwards += 1
    if is_fp32:
        _Latest.fp32 = Process.backwards


def note_product(half: str) -> None:
    """Note that an exact product runs now, with as many threads as PyTorch's would."""
    follow(torch.get_num_threads())
    Process.products += 1
    if torch._C._current_graph_task_id() < 0:
        return
    if half.partition(MODES)[0].partition(ACCUMULATOR)[0] != CBFLOAT16.name:
        _Latest.other = Process.backwards
    else:
        _Latest.backward = Process.backwards


def note_pytorchs_product() -> None:
    """Note that a product of PyTorch's runs now that no precision covers."""
    if torch._C._current_graph_task_id() >= 0:
        _Latest.plain = Process.backwards


def note_unscaled() -> None:
    """Note that a gradient scaler has unscaled the gradients of the latest backward pass."""
    _Latest.backward, _Latest.other = -1, Process.backwards


@contextlib.contextmanager
def scaled_step() -> Iterator[None]:
    """Mark a step as that of a gradient scaler."""
    before, _steps.scaled = _steps.scaled, True
    _Latest.backward = -1
    try:
        yield
    finally:
        _steps.scaled = before


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
    """Forget at the end which products ran and which precisions were entered: those of a run that is no training."""
    before = Process.entered, Process.latest, Process.products, Process.backwards
    latest = _Latest.backward, _Latest.other, _Latest.fp32, _Latest.plain
    try:
        yield
    finally:
        Process.entered, Process.latest, Process.products, Process.backwards = before
        _Latest.backward, _Latest.other, _Latest.fp32, _Latest.plain = latest


@functools.partial(run_as_written, recursively=True)
def _check(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
    """Check the gradients of a step: now, or whenever its closure has computed some."""
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if not callable(closure):
        _check_gradients(optimizer, _REMEDY)
        return None
    checked = _checked(closure, optimizer)
    return ((optimizer, checked, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": checked})


def _checked(closure: Callable[[], Any], optimizer: Any) -> Callable[[], Any]:
    @functools.wraps(closure)
    def run() -> Any:
        loss = closure()
        _check_gradients(optimizer, _REMEDY_IN_A_CLOSURE)
        return loss

    return run


def _check_gradients(optimizer: Any, remedy: str) -> None:
    """Raise an error if the gradients of a step are of cbfloat16 and not scaled."""
    if (_Latest.backward < 0 and not _is_asked_for()) or not _has_gradients(optimizer):
        return
    noted, _Latest.backward = _Latest.backward, -1
    if _steps.scaled:
        return
    latest = Process.backwards
    if noted == latest:
        raise RuntimeError(
            "optimizer: these gradients are of cbfloat16, and their loss was not scaled: what is below 2^-39 in them "
            f"has become zero. {remedy}; GradScaler(1.0) says that no scaling is wanted"
        )
    is_fp32 = _Latest.fp32 == latest != _Latest.plain
    if latest and _is_asked_for() and _Latest.other < latest and not is_fp32:
        raise RuntimeError(
            "optimizer: the half type is cbfloat16, but these gradients are of a loss that was neither made of exact "
            "products nor scaled. Run the model in 'with cstorch.precision():', or compile or initialise it. "
            f"{remedy}; cstorch.enable_mixed_precision(False) says that fp32 is meant, and so does "
            "'with cstorch.precision(enabled=False):' around the model and its loss"
        )


def _has_gradients(optimizer: Any) -> bool:
    return any(parameter.grad is not None for group in optimizer.param_groups for parameter in group["params"])


def _is_asked_for() -> bool:
    return wants_mixed_precision() and current_half().format == CBFLOAT16


register_optimizer_step_pre_hook(_check)
