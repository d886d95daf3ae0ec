"""Precision optimization levels of parts of a model: `pol` for functions, modules and blocks of code."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from golden.torch.amp.within import within
from golden.torch.common.arguments import check_flags, checked_level
from golden.torch.common.pytorch import run_as_written
from golden.torch.guard.guard import unwatch, watch
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.mapped import enter_map, leave_map
from golden.torch.settings.scopes import scopes

__all__ = ["pol"]


class pol:
    """Run something at a precision optimization level: a decorator, a wrapper of callables, a context manager.

    The innermost `pol` wins, pass by pass, over those around it and over every model-wide level, even in a
    precision context inside it. It is the level of the thread, as with torch.autocast. It turns no product exact that
    is not: PyTorch's own functions need a precision besides (`golden.torch.precision`, `golden.torch.amp.initialize`).

    Parameters
    ----------
    level : int, optional
        Level 0, 1 or 2 of both passes.
    fwd_level, bwd_level : int, optional
        Level of one pass, in place of `level`.
    enable_fwd, enable_bwd : bool
        False leaves the surrounding level to this pass.
    levels : mapping, optional
        A level map, as for `golden.torch.precision`: levels of the modules within the module that this wraps, or
        within each model that is called inside.

    Raises
    ------
    TypeError
        If a level is not an int, an `enable_` not a bool; or what is wrapped cannot be called.
    ValueError
        If a level is not 0, 1 or 2, no level is given, or a pattern of `levels` matches no module.
    RuntimeError
        When PyTorch is about to compute a product inside, and the process has never entered a precision.

    Examples
    --------
    >>> @pol(level=0)
    ... def head(x, weight):
    ...     return x @ weight
    >>> with pol(fwd_level=2):
    ...     current_pol()
    Levels(fwd=2, bwd=1)

    ``pol(level=0)(layer)(x)`` runs a module; ``pol(level=0)(layer)`` is a module that shares parameters, buffers and
    submodules with `layer`, and leaves `layer` as it is.
    """

    def __init__(
        self,
        level: int | None = None,
        fwd_level: int | None = None,
        bwd_level: int | None = None,
        enable_fwd: bool = True,
        enable_bwd: bool = True,
        *,
        levels: Mapping[str, Any] | None = None,
    ) -> None:
        if callable(level):
            raise TypeError(f"level: got {level!r}; pol takes a level first, as in @pol(level=1)")
        own = (("level", level), ("fwd_level", fwd_level), ("bwd_level", bwd_level))
        if levels is None and all(given is None for _, given in own):
            raise ValueError("level: got None, must be 0, 1 or 2 unless fwd_level or bwd_level is given, or levels")
        for argument, given in own:
            if given is not None:
                checked_level(given, argument)
        check_flags(enable_fwd=enable_fwd, enable_bwd=enable_bwd)
        #: The level that it sets for each pass, None where it leaves the surrounding one.
        self.fwd = (level if fwd_level is None else fwd_level) if enable_fwd else None
        self.bwd = (level if bwd_level is None else bwd_level) if enable_bwd else None
        #: The level map, None where there is none.
        self.levels = None if levels is None else LevelMap.of(levels)

    # A level map sets these as well.
    chunk = ...
    half = None

    def __repr__(self) -> str:
        levels = "" if self.levels is None else f", levels={self.levels.document}"
        return f"pol(fwd_level={self.fwd}, bwd_level={self.bwd}{levels})"

    @functools.partial(run_as_written, recursively=True)
    def __enter__(self) -> pol:
        if self.levels is not None:
            enter_map(self, self.levels)
        scopes.pols = (*scopes.pols, self)
        if not torch.compiler.is_compiling():
            watch()
        return self

    @functools.partial(run_as_written, recursively=True)
    def __exit__(self, *_: object) -> None:
        if self.levels is not None:
            leave_map(self)
        # Its own entry and not merely the last: a generator may be closed while another block is open.
        last = len(scopes.pols) - 1 - scopes.pols[::-1].index(self)
        scopes.pols = scopes.pols[:last] + scopes.pols[last + 1 :]
        if not torch.compiler.is_compiling():
            unwatch()

    def __call__(self, target: Any) -> Any:
        """Return `target` (function, method, module or other callable) so that it runs at this level."""
        if isinstance(target, staticmethod | classmethod):
            return type(target)(self(target.__func__))
        if isinstance(target, type):
            raise TypeError(
                f"pol: got the class {target.__qualname__}, must be an instance or a method of it (forward)"
            )
        if not callable(target):
            raise TypeError(f"pol: got {target!r}, must be callable")
        if isinstance(target, torch.nn.Module) and not torch.compiler.is_compiling():
            return self._module(target)
        return within(self, target, "pol")

    def _module(self, module: torch.nn.Module) -> torch.nn.Module:
        inner = vars(module).get("forward")
        scopes_of_it = inner.scopes if isinstance(inner, _ForwardAtLevel) else ()
        own = None if isinstance(inner, _ForwardAtLevel) else inner
        twin = copy.copy(module)
        vars(twin).pop("_call_impl", None)  # of an initialised model: it would call `module`
        vars(twin)["forward"] = _ForwardAtLevel((self, *scopes_of_it), twin, own)
        return twin


class _ForwardAtLevel:
    """The forward of a module at a level. An object, and not a closure: copied with its module, it runs the copy."""

    def __init__(self, levels: tuple[pol, ...], module: torch.nn.Module, own: Callable[..., Any] | None) -> None:
        self.scopes = levels  # outermost first
        self.module = module
        self.own = own  # a forward set on the instance, in place of the class's

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outside = scopes.pols
        scopes.pols = outside + self.scopes
        is_eager = not torch.compiler.is_compiling()
        if is_eager:
            watch()
        maps = []
        try:
            for scope in self.scopes:
                if scope.levels is not None:
                    enter_map(scope, scope.levels, self.module)
                    maps.append(scope)
            if self.own is not None:
                return self.own(*args, **kwargs)
            return type(self.module).forward(self.module, *args, **kwargs)
        finally:
            for scope in reversed(maps):
                leave_map(scope)
            scopes.pols = outside
            if is_eager:
                unwatch()
