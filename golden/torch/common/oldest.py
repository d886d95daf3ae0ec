"""The oldest PyTorch whose products are all seen; an older one is refused when `golden.torch` is imported."""

from __future__ import annotations

import os
import re

import torch

__all__ = ["OLDEST", "refuse_older"]

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
