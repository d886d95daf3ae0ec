"""A step on cbfloat16 gradients whose loss nobody scaled: an error that says what to add.

The exact kernels note a product that runs in a backward pass; an optimizer's step asks whether the latest backward pass
had one, unless a gradient scaler makes it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from golden import CBFLOAT16
from golden.torch.scopes import Process

__all__ = ["note_product", "scaled_step"]


class _Latest:
    """The number that autograd gave to the latest backward pass with a product in cbfloat16; -1 if none waits."""

    backward = -1
    watching = False


class _Steps(threading.local):
    scaled = False


_steps = _Steps()


def note_product(half: str) -> None:
    """Note that an exact product runs now."""
    Process.products += 1
    if half == CBFLOAT16.name:
        now = torch._C._current_graph_task_id()
        if now > _Latest.backward:
            _Latest.backward = now
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


def _check(optimizer: object, args: Any, kwargs: Any) -> None:
    """Raise an error if the gradients of a step are of cbfloat16 and not scaled."""
    noted, _Latest.backward = _Latest.backward, -1
    if noted < 0 or _steps.scaled or noted < _latest_backward():
        return
    raise RuntimeError(
        "optimizer: these gradients are of cbfloat16, and their loss was not scaled: what is below 2^-39 in them has "
        "become zero. Add scaler = cstorch.amp.GradScaler('dynamic'), then scaler.scale(loss).backward(), "
        "scaler.step(optimizer) and scaler.update() in every step; GradScaler(1.0) says that no scaling is wanted"
    )


def _latest_backward() -> int:
    """Return the number of the latest backward pass: one less than that of a pass made to ask."""
    asked: list[int] = []
    with torch.enable_grad():
        probe = torch.zeros((), requires_grad=True) * 1
    probe.register_hook(lambda gradient: asked.append(torch._C._current_graph_task_id()))
    torch.autograd.backward(probe)
    return asked[0] - 1
