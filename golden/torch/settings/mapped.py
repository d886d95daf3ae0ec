"""Level maps in force: which module of the mapped model is running, and at which levels.

Hooks of PyTorch for all modules tell when a module begins and ends; they are there only while a map is. A map is of
the model that it was entered for, or else of each model that is called while it is in force.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as hooked
from torch.utils.hooks import RemovableHandle

from golden.torch.common.pytorch import run_as_written
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.scopes import MapScope, scopes

__all__ = ["enter_map", "in_map", "leave_map", "mapped", "note_maps", "watching_modules"]


class _Hooks:
    """The two hooks, each always with one number: compiled code checks it."""

    lock = threading.Lock()
    users = 0
    before = RemovableHandle(hooked._global_forward_pre_hooks).id
    after = RemovableHandle(hooked._global_forward_hooks).id


def enter_map(owner: object, given: LevelMap, model: nn.Module | None = None) -> None:
    """Put a map in force in this thread, until `leave_map` with the same owner.

    Raises
    ------
    ValueError
        If a rule matches no module of `model`; without one, the call of a model raises it.
    NotImplementedError
        In code that torch.compile makes.
    """
    if torch.compiler.is_compiling():
        raise NotImplementedError(
            "levels: got a map within code that torch.compile makes, must be entered outside of it, around the call"
        )
    table = None if model is None else given.table(model)
    _watch_modules()
    scope = MapScope(owner, given, f"{given.rules}", len(scopes.mapped), table)
    scopes.maps = (*scopes.maps, scope)


def leave_map(owner: object) -> None:
    """End the innermost map of an owner."""
    last = len(scopes.maps) - 1 - [each.owner is owner for each in reversed(scopes.maps)].index(True)
    depth = scopes.maps[last].depth
    if len(scopes.mapped) > depth:  # what ended a module from within was no Exception, so that no hook ran
        scopes.pols, scopes.maps = scopes.mapped[depth][1:]
        scopes.mapped = scopes.mapped[:depth]
    scopes.maps = scopes.maps[:last] + scopes.maps[last + 1 :]
    _unwatch_modules()


@contextmanager
def mapped(given: LevelMap, model: nn.Module) -> Iterator[None]:
    """Have a map of a model in force."""
    owner = object()
    enter_map(owner, given, model)
    try:
        yield
    finally:
        leave_map(owner)


@contextmanager
def in_map(context: AbstractContextManager[object], module: nn.Module) -> Iterator[None]:
    """Enter a context with a map while a module of its model runs already; the map applies to the module."""
    with context:
        _before(module, None)  # the end of the map ends this, too
        yield


@contextmanager
def watching_modules() -> Iterator[None]:
    """Have the hooks there, for maps that are put in force without `enter_map`."""
    _watch_modules()
    try:
        yield
    finally:
        _unwatch_modules()


def note_maps() -> None:
    """Have code that is being compiled depend on the maps in force."""
    if torch.compiler.is_compiling():
        for each in scopes.maps:
            assert each.text


def _watch_modules() -> None:
    with _Hooks.lock:
        _Hooks.users += 1
        if _Hooks.users == 1:
            hooked._global_forward_pre_hooks[_Hooks.before] = _before
            hooked._global_forward_hooks[_Hooks.after] = _after
            hooked._global_forward_hooks_always_called[_Hooks.after] = True
            # Of compiled modules; they have two entries, and the first is the one that counts.
            warnings.filterwarnings("ignore", r"Using `torch.compile\(module\)` when there are global hooks")


def _unwatch_modules() -> None:
    with _Hooks.lock:
        _Hooks.users -= 1
        if _Hooks.users == 0:
            del hooked._global_forward_pre_hooks[_Hooks.before]
            del hooked._global_forward_hooks[_Hooks.after]
            del hooked._global_forward_hooks_always_called[_Hooks.after]


@run_as_written
def _before(module: nn.Module, _: Any) -> None:
    maps = scopes.maps
    if not maps:
        return
    known = maps
    for each in maps:
        if each.table is None:
            known = _bound(module, maps)
            break
    found: tuple[Any, ...] = ()
    for each in known:
        if each.table is not None:
            found = found + each.table.get(id(module), ())
    if found or known is not maps:
        scopes.mapped = (*scopes.mapped, (id(module), scopes.pols, maps))
        scopes.pols = (*scopes.pols, *found)
        scopes.maps = known


@run_as_written
def _after(module: nn.Module, *_: Any) -> None:
    mapped = scopes.mapped
    if mapped and mapped[-1][0] == id(module):
        scopes.pols, scopes.maps = mapped[-1][1:]
        scopes.mapped = mapped[:-1]


@functools.partial(run_as_written, recursively=True)
def _bound(model: nn.Module, maps: tuple[MapScope, ...]) -> tuple[MapScope, ...]:
    """Return the maps with tables of the model that is called; `maps` itself if none concerns it."""
    if torch.compiler.is_compiling():
        raise NotImplementedError(
            "levels: got a map without its model in code that torch.compile makes, must come with model= as in "
            "precision(levels=..., model=model)"
        )
    new = tuple(
        replace(each, table=each.map.table(model)) if each.table is None and each.map.concerns(model) else each
        for each in maps
    )
    return maps if all(one is other for one, other in zip(new, maps, strict=True)) else new
