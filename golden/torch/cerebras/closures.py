"""Calls that wait for the end of a step, as on a machine whose values arrive later than they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from golden.torch.cerebras.current import current_backend, current_executor

__all__ = ["checkpoint_closure", "step_closure"]

Closure = Callable[..., Any]


def step_closure(closure: Closure) -> Closure:
    """Decorate a function so that its calls run at the end of the step, in order, with the values of now.

    Where no backend has been made the call runs at once; before a run, it waits for the beginning of the run. Calls
    that a closure makes itself run in the same step.

    Parameters
    ----------
    closure : callable
        What to call; its result is dropped.
    """

    @functools.wraps(closure)
    def at_the_end_of_the_step(*args: Any, **kwargs: Any) -> None:
        backend = current_backend(raise_exception=False)
        if backend is None:
            closure(*args, **kwargs)
        else:
            backend.add_step_closure(closure, args, kwargs)

    at_the_end_of_the_step.is_step_closure = True  # type: ignore[attr-defined]
    return at_the_end_of_the_step


def checkpoint_closure(closure: Closure) -> Closure:
    """Decorate a function so that its calls run at the end of the step, if that is a checkpoint step.

    Which steps are is what `golden.torch.utils.data.DataExecutor` was told; the beginning of a run counts as one.

    Raises
    ------
    RuntimeError
        When it is called: if no backend has been made, or no data executor is running when the step ends.
    """

    @functools.wraps(closure)
    def on_checkpoint_steps(*args: Any, **kwargs: Any) -> None:
        executor = current_executor()
        if executor.is_pre_initial_step or executor.is_checkpoint_step:
            closure(*args, **kwargs)

    @functools.wraps(closure)
    def at_the_end_of_the_step(*args: Any, **kwargs: Any) -> None:
        current_backend().add_step_closure(on_checkpoint_steps, args, kwargs)

    return at_the_end_of_the_step
