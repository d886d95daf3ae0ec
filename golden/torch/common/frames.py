"""Marks for torch.compile on functions of the guard, set without importing it, which would take two seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["constant", "run_as_written"]

Function = TypeVar("Function", bound=Callable[..., Any])


def run_as_written(function: Function, *, recursively: bool = False) -> Function:
    """Keep the compiler from compiling this function on its own; where traced code calls it, it is traced.

    Traced, such a function leaves out what concerns the guard; compiled on its own it would do so in running code.
    `recursively`: the functions that it calls are not compiled either.
    """
    frames = torch._C._dynamo.eval_frame
    skip, rest = frames._FrameAction.SKIP, frames._FrameAction.SKIP if recursively else frames._FrameAction.DEFAULT
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, rest))
    return function


def constant(function: Function) -> Function:
    """Mark a function whose result the compiler takes as a constant, as `torch.compiler.assume_constant_result` does.

    Running code calls it as it is written: compiled on its own, it would see other types of some functions.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return run_as_written(function, recursively=True)
