"""Functions that torch.compile shall trace where code that it traces calls them, and not compile on their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["run_as_written"]

Function = TypeVar("Function", bound=Callable[..., Any])


def run_as_written(function: Function, *, recursively: bool = False) -> Function:
    """Have the compiler leave calls of this function from code that it does not trace alone.

    Traced, such a function leaves out what concerns the guard; compiled on its own it would do so in running code.
    `recursively`: what it calls is left alone, too. (``torch._dynamo`` need not be imported for it.)
    """
    frames = torch._C._dynamo.eval_frame
    skip, rest = frames._FrameAction.SKIP, frames._FrameAction.SKIP if recursively else frames._FrameAction.DEFAULT
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, rest))
    return function
