"""Two things that PyTorch cannot do while a mode such as the guard watches, replaced when this module is imported.

A call into TorchScript ends with the guard's error. `torch.Tensor` makes tensors of a subclass.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

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
