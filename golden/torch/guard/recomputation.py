"""Activation checkpointing: a forward pass that is computed again runs in the precision and at the levels of the first.

``torch.utils.checkpoint`` keeps what it needs of PyTorch's own state (random numbers, autocast) and cannot know ours.
The two places where it keeps the function to call again, one for each of its variants, are wrapped when this module is
imported; they are looked up in their module at every call, however ``checkpoint`` itself was imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch.utils.checkpoint as checkpointing

from golden.torch.guard.guard import unwatch, watch
from golden.torch.guard.mode import Interception
from golden.torch.settings.draws import rewound, taken
from golden.torch.settings.mapped import watching_modules
from golden.torch.settings.scopes import scopes

__all__: list[str] = []


class _InItsScopes:
    """A function that runs in the precisions and levels that were in force when it was wrapped."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.precisions, self.pols, self.entries = scopes.precisions, scopes.pols, scopes.entries
        self.maps, self.mapped = scopes.maps, scopes.mapped
        self.taken = taken()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = rewound(self.taken)
        if before == self.taken:  # the first time, or nothing is random
            return self._run(*args, **kwargs)
        try:
            return self._run(*args, **kwargs)
        finally:
            rewound(before)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        precisions, pols, entries = scopes.precisions, scopes.pols, scopes.entries
        maps, mapped = scopes.maps, scopes.mapped
        if precisions is self.precisions and pols is self.pols and maps is self.maps:  # the first time
            return self.function(*args, **kwargs)
        scopes.precisions, scopes.pols, scopes.entries = self.precisions, self.pols, self.entries
        scopes.maps, scopes.mapped = self.maps, self.mapped
        scopes.timeline.note(self.precisions[-1] if self.precisions else None)
        watch()
        try:
            with Interception(), watching_modules() if self.maps else nullcontext():
                return self.function(*args, **kwargs)
        finally:
            unwatch()
            scopes.precisions, scopes.pols, scopes.entries = precisions, pols, entries
            scopes.maps, scopes.mapped = maps, mapped
            scopes.timeline.note(precisions[-1] if precisions else None)


_forward = checkpointing.CheckpointFunction.forward
# PyTorch 2.15 calls the first, and only forwards the second to it.
_GENERATORS = "_checkpoint_without_reentrant_generator_impl", "_checkpoint_without_reentrant_generator"
_GENERATOR = next(name for name in _GENERATORS if hasattr(checkpointing, name))
_generator = getattr(checkpointing, _GENERATOR)


@functools.wraps(_forward)
def _forward_in_scopes(ctx: Any, run_function: Callable[..., Any], *args: Any) -> Any:
    return _forward(ctx, _InItsScopes(run_function), *args)


@functools.wraps(_generator)
def _generator_in_scopes(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return _generator(_InItsScopes(fn), *args, **kwargs)


checkpointing.CheckpointFunction.forward = staticmethod(_forward_in_scopes)  # type: ignore[method-assign]
setattr(checkpointing, _GENERATOR, _generator_in_scopes)
