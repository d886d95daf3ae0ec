"""Code that depends on the release of PyTorch: the oldest one supported, and marks for its compiler.

The marks are set without an import of the compiler, which would take two seconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["OLDEST", "constant", "refuse_older", "run_as_written"]


OLDEST = (2, 12)
_ANYWAY = "CBFLOAT_OLDER_PYTORCH"


def refuse_older(version: str) -> None:
    """Raise an error for a PyTorch in which a compiled function, called inside a precision, computes in fp32 unseen.

    Parameters
    ----------
    version : str
        As in ``torch.__version__``.

    Raises
    ------
    ImportError
        If it is older than `OLDEST`, unless the environment says ``CBFLOAT_OLDER_PYTORCH=1``.
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if not numbers or (int(numbers[1]), int(numbers[2])) >= OLDEST or os.environ.get(_ANYWAY) == "1":
        return
    needed = ".".join(map(str, OLDEST))
    raise ImportError(
        f"golden.torch needs PyTorch {needed} or later, and this is {version}, in which compiled functions compute in "
        f"fp32 unseen: pip install 'torch>={needed}'. Without torch.compile it serves with {_ANYWAY}=1 set",
        name="torch",
    )


refuse_older(torch.__version__)


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
