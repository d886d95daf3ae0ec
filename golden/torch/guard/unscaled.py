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

from torch.optim.optimizer import register_optimizer_step_pre_hook

from golden import CBFLOAT16
from golden.torch.common.pytorch import run_as_written
from golden.torch.settings.half import current_half, wants_mixed_precision
from golden.torch.settings.passes import Latest
from golden.torch.settings.scopes import Process

__all__ = ["scaled_step"]


_REMEDY = (
    "Add scaler = cstorch.amp.GradScaler('dynamic'), then scaler.scale(loss).backward(), scaler.step(optimizer) and "
    "scaler.update() in every step"
)
_REMEDY_IN_A_CLOSURE = (
    "Make scaler = cstorch.amp.GradScaler('dynamic'), and call scaler.scale(loss).backward(), "
    "scaler.unscale_(optimizer) and scaler.update() in the closure"
)


class _Steps(threading.local):
    scaled = False


_steps = _Steps()


@contextlib.contextmanager
def scaled_step() -> Iterator[None]:
    """Mark a step as made by a gradient scaler."""
    before, _steps.scaled = _steps.scaled, True
    Latest.backward = -1
    try:
        yield
    finally:
        _steps.scaled = before


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
    if (Latest.backward < 0 and not _is_asked_for()) or not _has_gradients(optimizer):
        return
    noted, Latest.backward = Latest.backward, -1
    if _steps.scaled:
        return
    latest = Process.backwards
    if noted == latest:
        raise RuntimeError(
            "optimizer: these gradients are in cbfloat16, but their loss was not scaled: values below 2^-39 have "
            f"become zero. {remedy}; GradScaler(1.0) says that no scaling is wanted"
        )
    is_fp32 = Latest.fp32 == latest != Latest.plain
    if latest and _is_asked_for() and Latest.other < latest and not is_fp32:
        raise RuntimeError(
            "optimizer: the half type is cbfloat16, but these gradients are of a loss that was neither made of exact "
            "products nor scaled. Run the model in 'with cstorch.precision():', or compile or initialise it. "
            f"{remedy}. If you want fp32, call cstorch.enable_mixed_precision(False), or put "
            "'with cstorch.precision(enabled=False):' around the model and its loss"
        )


def _has_gradients(optimizer: Any) -> bool:
    return any(parameter.grad is not None for group in optimizer.param_groups for parameter in group["params"])


def _is_asked_for() -> bool:
    return wants_mixed_precision() and current_half().format == CBFLOAT16


register_optimizer_step_pre_hook(_check)
