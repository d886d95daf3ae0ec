"""Replacements in PyTorch that the import of `golden.torch` makes, for the guard and for activation checkpointing.

PyTorch cannot do two things while a mode such as the guard watches. A call into TorchScript now ends with the error of
the guard, and `torch.Tensor` makes tensors of a subclass.

``torch.utils.checkpoint`` keeps PyTorch's own state (random numbers, autocast), and cannot know ours. Its two variants
keep the function to call again in one place each. Both places are wrapped here, so that a recomputed forward pass runs
in the precision and at the levels of the first. PyTorch looks them up at every call, however ``checkpoint`` itself was
imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.utils.checkpoint as checkpointing

from golden.torch.guard.guard import unwatch, watch
from golden.torch.guard.mode import Interception
from golden.torch.settings.draws import rewound, taken
from golden.torch.settings.mapped import watching_modules
from golden.torch.settings.scopes import scopes

__all__: list[str] = []


def _telling(call: Any) -> Any:
    """Return a call into TorchScript that ends with the error of the guard, whose text TorchScript drops."""

    @functools.wraps(call)
    def run(*args: Any, **kwargs: Any) -> Any:
        outside, scopes.errors = scopes.errors, []
        try:
            return call(*args, **kwargs)
        except RuntimeError as error:
            if not scopes.errors or "TorchScript interpreter" not in str(error):
                raise
            raise scopes.errors[-1] from error
        finally:
            scopes.errors = outside

    return run


for _kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
    _kind.__call__ = _telling(_kind.__call__)  # type: ignore[method-assign]


_new_tensor = torch.Tensor.__new__


# A signature that the compiler takes for any: it replaces this function in its graphs.
def _made_while_watched(*args: Any, **kwargs: Any) -> Any:
    """Make a tensor as `torch.Tensor` does, which fails for a subclass while a mode is on."""
    if not scopes.watchers or args[0] is torch.Tensor:
        return _new_tensor(*args, **kwargs)
    with torch._C.DisableTorchFunction():
        return _new_tensor(torch.Tensor, *args[1:], **kwargs).as_subclass(args[0])


torch.Tensor.__new__ = staticmethod(_made_while_watched)  # type: ignore[method-assign]


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
