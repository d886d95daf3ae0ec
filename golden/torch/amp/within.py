"""Functions that run within a context. A generator or coroutine is within it while its body runs, and not between.

A decorator that merely calls such a function would leave the context before the first line of the body.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

__all__ = ["result_within", "within"]


def within(context: AbstractContextManager[Any], function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return a function so that its body runs within a context, which is entered anew for every call and every step.

    The context can be entered several times. An async generator is refused, in the name of `what`.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    @functools.wraps(function)
    def run_generator(*args: Any, **kwargs: Any) -> Any:
        return (yield from _steps(context, function(*args, **kwargs)))

    @functools.wraps(function)
    async def run_coroutine(*args: Any, **kwargs: Any) -> Any:
        return await _drive(context, function(*args, **kwargs))

    if inspect.isasyncgenfunction(function):
        name = getattr(function, "__qualname__", function)
        raise TypeError(f"{what}: got the async generator {name}, must be another callable")
    if inspect.isgeneratorfunction(function):
        return run_generator
    return run_coroutine if inspect.iscoroutinefunction(function) else run


def result_within(context: AbstractContextManager[Any], result: Any, what: str) -> Any:
    """Return the result of a call; put a generator or coroutine, whose body runs later, within a context."""
    if isinstance(result, types.GeneratorType):
        return _steps(context, result)
    if isinstance(result, types.CoroutineType):
        return _awaited(context, result)
    if isinstance(result, types.AsyncGeneratorType):
        raise TypeError(
            f"{what}: got an async generator, whose body would run outside of the precision; enter "
            f"golden.torch.precision() within it, between its yields"
        )
    return result


def _steps(context: AbstractContextManager[Any], body: Any) -> Generator[Any, Any, Any]:
    """Drive a generator or coroutine so that each of its steps runs within the context."""
    try:
        with context:
            item = body.send(None)
        while True:
            try:
                sent = yield item
            except GeneratorExit:
                with context:
                    body.close()
                raise
            except BaseException as error:
                with context:
                    item = body.throw(error)
            else:
                with context:
                    item = body.send(sent)
    except StopIteration as end:
        return end.value


_drive = types.coroutine(_steps)


async def _awaited(context: AbstractContextManager[Any], body: Any) -> Any:
    return await _drive(context, body)
