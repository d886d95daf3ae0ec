"""The error for a step in cbfloat16 with an unscaled loss; it says what to add.

The exact kernels note a product that runs in a backward pass; an optimizer's step asks whether the latest backward pass
had one in cbfloat16, or none at all although cbfloat16 has been set, unless a gradient scaler makes the step.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from golden import CBFLOAT16
from golden.kernels.library import follow
from golden.torch.operators.format_text import ACCUMULATOR, MODES
from golden.torch.settings.half import current_half, wants_mixed_precision
from golden.torch.settings.scopes import Process

__all__ = ["note_product", "scaled_step", "watch_steps"]


_REMEDY = (
    "Add scaler = cstorch.amp.GradScaler('dynamic'), then scaler.scale(loss).backward(), scaler.step(optimizer) and "
    "scaler.update() in every step"
)


class _Latest:
    """The number that autograd gave to the latest backward pass with a product in cbfloat16; -1 if none waits."""

    backward = -1
    other = -1  # of the latest one with a product in another half type
    watching = False


class _Steps(threading.local):
    scaled = False


_steps = _Steps()


def note_product(half: str) -> None:
    """Note that an exact product runs now, with as many threads as PyTorch's would."""
    follow(torch.get_num_threads())
    Process.products += 1
    now = torch._C._current_graph_task_id()
    if half.partition(MODES)[0].partition(ACCUMULATOR)[0] != CBFLOAT16.name:
        _Latest.other = max(_Latest.other, now)
    elif now > _Latest.backward:
        _Latest.backward = now
        watch_steps()


def watch_steps() -> None:
    """Look at the steps of all optimizers from now on."""
    if not _Latest.watching:
        _Latest.watching = True
        register_optimizer_step_pre_hook(_check)


@contextlib.contextmanager
def scaled_step() -> Iterator[None]:
    """Mark a step as that of a gradient scaler."""
    before, _steps.scaled = _steps.scaled, True
    _Latest.backward = -1
    try:
        yield
    finally:
        _steps.scaled = before


def _check(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Raise an error if the gradients of a step are of cbfloat16 and not scaled."""
    if not _has_gradients(optimizer):
        return
    noted, _Latest.backward = _Latest.backward, -1
    if _steps.scaled or (noted < 0 and not _is_asked_for()):
        return
    latest = _latest_backward()
    if 0 <= latest <= noted:
        raise RuntimeError(
            "optimizer: these gradients are of cbfloat16, and their loss was not scaled: what is below 2^-39 in them "
            f"has become zero. {_REMEDY}; GradScaler(1.0) says that no scaling is wanted"
        )
    if _is_asked_for() and _Latest.other < latest:
        raise RuntimeError(
            "optimizer: the half type is cbfloat16, but these gradients are of a loss that was neither made of exact "
            "products nor scaled. Run the model in 'with cstorch.precision():', or compile or initialise it. "
            f"{_REMEDY}; cstorch.enable_mixed_precision(False) says that fp32 is meant"
        )


def _has_gradients(optimizer: Any) -> bool:
    return any(parameter.grad is not None for group in optimizer.param_groups for parameter in group["params"])


def _is_asked_for() -> bool:
    return wants_mixed_precision() and current_half().format == CBFLOAT16


def _latest_backward() -> int:
    """Return the number of the latest backward pass: one less than that of a pass made to ask."""
    asked: list[int] = []
    with torch.enable_grad():
        probe = torch.zeros((), requires_grad=True) * 1
    probe.register_hook(lambda gradient: asked.append(torch._C._current_graph_task_id()))
    torch.autograd.backward(probe)
    return asked[0] - 1
