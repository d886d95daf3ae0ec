"""`autocast` and `init`, the two ways in which scripts turn mixed precision on."""

from __future__ import annotations

from typing import Any

import torch

from golden.torch.amp.precision import precision
from golden.torch.settings.half import enable_mixed_precision
from golden.torch.settings.half_type import HalfType

__all__ = ["autocast", "init"]


def autocast(
    half: str | torch.dtype | HalfType | None = None, *args: Any, dtype: str | torch.dtype | None = None, **kwargs: Any
) -> precision:
    """Return a context in which products are exact: `golden.torch.precision`.

    Parameters
    ----------
    half : str or torch.dtype, optional
        The half type; that in force unless given.
    *args, **kwargs
        Of `golden.torch.precision`.
    dtype : str or torch.dtype, optional
        `half` under the name of the original.

    Raises
    ------
    TypeError, ValueError
        As `golden.torch.precision` does, or if both names are used.
    """
    if dtype is not None:
        if half is not None:
            raise ValueError("dtype: another name of half, must not be given beside it")
        half = dtype
    return precision(half, *args, **kwargs)


def init(enabled: bool = True, enable_caching: bool = True, verbose: bool = False, allow_banned: bool = False) -> None:
    """Turn mixed precision on, for compiled models and traced steps.

    Parameters
    ----------
    enabled : bool
        False: leave it as it is.
    enable_caching, verbose, allow_banned : bool
        Accepted; there are no casts to cache, report or forbid.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    """
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled: got {enabled!r}, must be True or False")
    if enabled:
        enable_mixed_precision()
