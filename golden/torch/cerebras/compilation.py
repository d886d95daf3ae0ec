"""`compile` and `trace`: a model and a step in the precision of the run, without a context in the script.

Closures of a step wait for its end, as on a machine whose values arrive late.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import nn

from golden.torch.amp.initialize import enter_everywhere
from golden.torch.amp.precision import precision
from golden.torch.cerebras.backends import Backend, backend, current_backend, current_executor
from golden.torch.common.terminal import say_once
from golden.torch.settings.half import wants_mixed_precision
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.mapped import in_map, mapped
from golden.torch.settings.scopes import scopes

__all__ = ["checkpoint_closure", "compile", "step_closure", "trace"]


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


Model = TypeVar("Model", bound=nn.Module)

_RUNS_LATER = inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction


def _level_of_run() -> int | None:
    """Return the level of the cluster configuration of the run, else of the backend; None if neither has one."""
    made = current_backend(raise_exception=False)
    if made is None:
        return None
    configs = [executor.cs_config for executor in made.data_executor_stack[-1:]] + [made.cluster_config]
    given = [config.precision_opt_level for config in configs if config is not None]
    return next((level for level in given if level is not None), None)


def in_precision() -> AbstractContextManager[object]:
    """Return the context of a step: the half type in force, the level of the run.

    Inside a precision context, which has decided, and with mixed precision off it is an empty one.
    """
    if scopes.precisions:
        return contextlib.nullcontext()
    if not wants_mixed_precision():
        say_once(
            "mixed precision is off: a compiled model or traced step runs on PyTorch's own fp32 products; "
            "cstorch.amp.set_half_dtype('cbfloat16') turns it on"
        )
        return contextlib.nullcontext()
    return precision(level=_level_of_run())


def compile(model: Model, backend: str | Backend | None = None, *, levels: Mapping[str, Any] | None = None) -> Model:
    """Prepare a model: whichever way it is entered, it runs in the precision of the run, backward pass included.

    The call fixes half type and level: `golden.torch.amp.set_half_dtype`, and
    ``precision_opt_level`` of the cluster configuration or ``backends.csx.precision.optimization_level``.

    Parameters
    ----------
    model : nn.Module
        Changed in place; its parameters stay in fp32.
    backend : "CPU", "GPU" or "CSX", or Backend, optional
        The backend of this process, made if there is none; CPU unless given.
    levels : mapping, optional
        A level map of the model, as for `golden.torch.precision`. It holds in the precision of a traced step, too.

    Returns
    -------
    nn.Module
        `model`. (The original returns a function with the model's public methods.)

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or a pattern of `levels` matches no module.
    RuntimeError
        If another backend has been made before.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    level_map = None if levels is None else LevelMap.of(levels)
    if level_map is not None:
        level_map.table(model)  # checks it now and not in the first forward pass
    made = _backend_for(backend)
    enter_everywhere(model, functools.partial(_context_of, model, level_map))
    if not hasattr(model, "device"):
        vars(model)["device"] = made.torch_device
    return model


def _context_of(model: nn.Module, levels: LevelMap | None, module: nn.Module) -> AbstractContextManager[object]:
    """Return the context in which a module of a compiled model runs that is called from outside."""
    return in_precision() if levels is None else in_map(_precision_and_map(levels, model), module)


@contextlib.contextmanager
def _precision_and_map(levels: LevelMap, model: nn.Module) -> Iterator[None]:
    with in_precision(), mapped(levels, model):
        yield


def _backend_for(given: object) -> Backend:
    made = current_backend(raise_exception=False)
    if given is None:
        return made or backend("CPU")
    if isinstance(given, str):
        return backend(given)
    if not isinstance(given, Backend):
        raise TypeError(f"backend: got {given!r}, must be 'CPU', 'GPU' or 'CSX', a Backend or None")
    if given is not made:
        raise RuntimeError("backend: got one that is not of this process; use the one that backend() returns")
    return given


def trace(step_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the function that makes one step: forward, backward and optimizer run in the precision of the run.

    Without a data executor around it, the closures of the step run when it returns.

    Parameters
    ----------
    step_fn : callable
        The step.

    Raises
    ------
    TypeError
        If it cannot be called, or is a generator or a coroutine, which would run when the step is over.
    """
    if not callable(step_fn):
        raise TypeError(f"step_fn: got {step_fn!r}, must be callable")
    if any(is_one(step_fn) for is_one in _RUNS_LATER):
        raise TypeError(
            f"step_fn: got {step_fn!r}, whose body would run outside of the step, must be a function that returns"
        )

    @functools.wraps(step_fn)
    def traced(*args: Any, **kwargs: Any) -> Any:
        made = current_backend(raise_exception=False)
        with in_precision():
            result = step_fn(*args, **kwargs)
        if made is not None and not made.data_executor_stack:
            made.run_step_closures()
        return result

    return traced


def make_constant(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor: a constant of the graph on a wafer, a tensor like any other here."""
    return tensor
