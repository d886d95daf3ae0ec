"""Marks for torch.compile on the functions here, set without importing it, which would take two seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["constant"]

_Function = TypeVar("_Function", bound=Callable[..., object])


def constant(function: _Function) -> _Function:
    """Mark a function whose result torch.compile takes as a constant, as `torch.compiler.assume_constant_result` does.

    That decorator imports the whole compiler and sets this attribute, which the compiler looks for.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
