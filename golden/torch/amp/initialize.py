"""Models that always run in a precision: `initialize`. Mixed precision by the ways of scripts: `autocast`, `init`."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar, overload

import torch
from torch import nn
from torch.optim import Optimizer

from golden.reduction import DEFAULT_CHUNK
from golden.torch.amp.iteration import as_optimizers
from golden.torch.amp.precision import precision
from golden.torch.amp.within import result_within
from golden.torch.common.arguments import check_flags
from golden.torch.settings.half import _Process, enable_mixed_precision, running_half
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.mapped import in_map
from golden.torch.settings.scopes import scopes

__all__ = ["autocast", "enter_everywhere", "init", "initialize", "is_initialized"]


Model = TypeVar("Model", bound=nn.Module)
Optimizers = TypeVar("Optimizers", bound=Optimizer | Iterable[Optimizer])


class _Entry:
    """The precision that a call enters, whichever way it enters an initialised model."""

    def __init__(self, context: Callable[[nn.Module], AbstractContextManager[object]]) -> None:
        self.context = context


class _Entered:
    """The precision of a model while a call from outside runs in it; a generator enters it anew for each step."""

    def __init__(self, entry: _Entry, module: nn.Module) -> None:
        self.entry, self.module = entry, module

    def __enter__(self) -> None:
        self.outside = scopes.entries
        self.context = self.entry.context(self.module)
        self.context.__enter__()
        scopes.entries = (*self.outside, self.entry)

    def __exit__(self, *exception: Any) -> bool | None:
        scopes.entries = self.outside
        return self.context.__exit__(*exception)


class _InPrecision:
    """A method of a module that enters the precision of its model, unless the call comes from within the model.

    An object, and not a closure: copied or pickled with its module, it runs the copy.
    """

    def __init__(self, entry: _Entry, module: nn.Module, name: str) -> None:
        self.entry, self.module, self.name = entry, module, name
        self.own = vars(module).get(name)  # a method set on the instance, in place of the class's
        self.is_static = isinstance(inspect.getattr_static(type(module), name), _STATIC)

    @property
    def __wrapped__(self) -> Callable[..., Any]:  # for inspect.signature
        return self._method()

    @property
    def __name__(self) -> str:
        return self.name.strip("_")  # torch.compile takes a "_call_impl" for PyTorch's own

    @property
    def __code__(self) -> types.CodeType:  # for torch.export
        code: types.CodeType = getattr(self._method(), "__code__")  # noqa: B009 - of any callable
        return code

    def _method(self) -> Callable[..., Any]:
        if self.own is not None:
            return self.own
        found: Callable[..., Any] = getattr(type(self.module), self.name)
        return found if self.is_static else found.__get__(self.module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outside = scopes.entries
        if self.entry in outside:  # a context that the model has entered since then decides
            return self._method()(*args, **kwargs)
        scopes.entries = (*outside, self.entry)
        try:
            with self.entry.context(self.module):
                result = self._method()(*args, **kwargs)
        finally:
            scopes.entries = outside
        if self.name in _CALLS:
            return result
        return result_within(_Entered(self.entry, self.module), result, self.name)


def enter_everywhere(model: nn.Module, context: Callable[[nn.Module], AbstractContextManager[object]]) -> None:
    """Make every way into a model enter the context of the module called, but for modules that have one already."""
    entry = _Entry(context)
    for module in model.modules():
        if not isinstance(module, torch.jit.ScriptModule) and not is_initialized(module):
            vars(module).update({name: _InPrecision(entry, module, name) for name in list(_ways_in(module))})


def is_initialized(model: nn.Module) -> bool:
    """Return whether a model, or the one that was compiled to it, went through `initialize`."""
    return isinstance(vars(getattr(model, "_orig_mod", model)).get("forward"), _InPrecision)


#: A call, which runs the hooks of a module besides its forward.
_CALLS = ("_call_impl", "forward")
_STATIC = (staticmethod, classmethod)


def _ways_in(module: nn.Module) -> Iterator[str]:
    """Give the names of the methods that may compute: calls, and public ones that PyTorch does not define."""
    for name in _CALLS:
        if isinstance(inspect.getattr_static(type(module), name), types.FunctionType):
            yield name
    for name in dir(type(module)):
        function = inspect.getattr_static(type(module), name)
        function = function.__func__ if isinstance(function, _STATIC) else function
        if not isinstance(function, types.FunctionType) or name.startswith("_") or hasattr(nn.Module, name):
            continue
        if not function.__module__.startswith("torch."):
            yield name


@overload
def initialize(
    model: Model,
    optimizers: None = None,
    *,
    enabled: bool = ...,
    half: str | torch.dtype | HalfType | None = ...,
    level: int | None = ...,
    chunk: int | None = ...,
    levels: Mapping[str, Any] | None = ...,
) -> Model: ...
@overload
def initialize(
    model: Model,
    optimizers: Optimizers,
    *,
    enabled: bool = ...,
    half: str | torch.dtype | HalfType | None = ...,
    level: int | None = ...,
    chunk: int | None = ...,
    levels: Mapping[str, Any] | None = ...,
) -> tuple[Model, Optimizers]: ...
def initialize(
    model: Model,
    optimizers: Optimizers | None = None,
    *,
    enabled: bool = True,
    half: str | torch.dtype | HalfType | None = None,
    level: int | None = None,
    chunk: int | None = DEFAULT_CHUNK,
    levels: Mapping[str, Any] | None = None,
) -> Model | tuple[Model, Optimizers]:
    """Make a model run in a precision, whichever way it is entered; parameters stay as they are, in fp32.

    A call with its hooks, ``forward`` and the public methods of its classes (``encode``, ``generate``, ...) enter the
    precision, unless they are called from within the model. Copies, pickled ones too, do as the model does.

    Parameters
    ----------
    model : nn.Module
        Changed in place.
    optimizers : Optimizer or iterable of Optimizer, optional
        Returned as given: fp32 parameters need no other optimizer. For the calls of scripts that pass them.
    enabled, half, level, chunk, levels
        As for `golden.torch.precision`. The half type is that of this moment unless given. The level map is of `model`,
        also where one of its modules is called alone; code that torch.compile makes refuses it.

    Returns
    -------
    nn.Module, or (nn.Module, optimizers) if `optimizers` is given
        What was given.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or a pattern of `levels` matches no module.
    RuntimeError
        If the model has been initialised already.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    if optimizers is not None:
        as_optimizers(optimizers)
    if is_initialized(model):
        raise RuntimeError("model: it has been initialised already; a forward pass has one precision")
    settings: dict[str, Any] = {
        "half": running_half(enabled) if half is None else half,
        "level": level,
        "chunk": chunk,
        "enabled": enabled,
    }
    if levels is not None:
        settings |= {"levels": LevelMap.of(levels), "model": model}
    precision(**settings)  # checks them now and not in the first forward pass
    _Process.initialized = half_named(settings["half"])
    enter_everywhere(model, functools.partial(_precision_of, settings))
    return model if optimizers is None else (model, optimizers)


def _precision_of(settings: Mapping[str, Any], module: nn.Module) -> AbstractContextManager[object]:
    """Return the precision in which a module of an initialised model runs that is called from outside."""
    context = precision(**settings)
    return in_map(context, module) if "levels" in settings else context


def autocast(
    half: str | torch.dtype | HalfType | None = None, *args: Any, dtype: str | torch.dtype | None = None, **kwargs: Any
) -> precision:
    """Return a context in which products are exact: `golden.torch.precision`.

    Parameters
    ----------
    half : str or torch.dtype, optional
        The half type; that in force unless given.
    *args, **kwargs
        Of `golden.torch.precision`.
    dtype : str or torch.dtype, optional
        `half` under the name of the original.

    Raises
    ------
    TypeError, ValueError
        As `golden.torch.precision` does, or if both names are used.
    """
    if dtype is not None:
        if half is not None:
            raise ValueError("dtype: another name of half, must not be given beside it")
        half = dtype
    return precision(half, *args, **kwargs)


def init(enabled: bool = True, enable_caching: bool = True, verbose: bool = False, allow_banned: bool = False) -> None:
    """Turn mixed precision on, for compiled models and traced steps.

    Parameters
    ----------
    enabled : bool
        False: leave it as it is.
    enable_caching, verbose, allow_banned : bool
        Accepted; there are no casts to cache, report or forbid.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    """
    check_flags(enabled=enabled)
    if enabled:
        enable_mixed_precision()
