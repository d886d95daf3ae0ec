"""The arguments of an advice, checked; each error names the argument."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from golden.formats import CBFLOAT16
from golden.reduction import LEVELS, Reduction
from golden.torch.amp.configuration import MixedPrecision
from golden.torch.common.arguments import check_items

__all__ = ["as_batches", "as_budget", "as_chunks", "as_levels", "as_precision"]


def as_batches(batches: object) -> list[Any]:
    """Return the batches as a list."""
    if not isinstance(batches, Iterable) or isinstance(batches, Tensor | Mapping | str | bytes):
        raise TypeError(
            f"batches: got {type(batches).__name__}, must be a list of batches, such as [(inputs, targets)]"
        )
    found = check_items(batches, "batches", "batches")
    if not found:
        raise ValueError("batches: has no batch, must have one at least")
    return found


def as_budget(given: object) -> dict[str, float]:
    """Return the budgets of loss and gradient."""
    both: dict[Any, Any] = dict(given) if isinstance(given, Mapping) else {"loss": given, "gradient": given}
    if set(both) != {"loss", "gradient"}:
        raise ValueError(f"budget: got {given!r}, must be a number, or a mapping with loss and gradient")
    for each in both.values():
        if not isinstance(each, int | float) or isinstance(each, bool):
            raise TypeError(f"budget: got {given!r}, must be a number, or a mapping with loss and gradient")
        if not 0 < each <= sys.float_info.max:
            raise ValueError(f"budget: got {given!r}, must be finite and above 0; 0.01 is one hundredth")
    return {name: float(both[name]) for name in ("loss", "gradient")}


def as_precision(given: object) -> MixedPrecision:
    """Return the precision of the search."""
    if isinstance(given, MixedPrecision):
        if not given.enabled:
            raise ValueError("precision: got one that is not enabled, must be enabled")
        if given.reduction is not None:
            raise ValueError(f"precision: got reduction {given.reduction!r}, which has no levels, must have none")
        return given
    if given is not None and not isinstance(given, str):
        raise TypeError(f"precision: got {given!r}, must be a MixedPrecision or the name of a format")
    return MixedPrecision(fp16_type=given or "cbfloat16", loss_scaling_factor="dynamic")


def as_levels(given: Iterable[int]) -> tuple[int, ...]:
    """Return the levels to choose from, without 0."""
    levels = check_items(given, "levels", "0, 1 and 2")
    found = {each for each in levels if isinstance(each, int)} - {0}
    if not found or not all(isinstance(each, int) and each in LEVELS for each in levels):
        raise ValueError(f"levels: got {given!r}, must be some of 0, 1 and 2, and not 0 alone")
    return tuple(sorted(found))


def as_chunks(given: Iterable[int | None] | None, precision: MixedPrecision) -> tuple[int | None, ...]:
    """Return the chunk lengths to choose from."""
    if given is None:
        return (precision.chunk,)
    found = check_items(given, "chunks", "chunk lengths, such as 16 and 32")
    if not found:
        raise ValueError("chunks: got none, must have one chunk length at least")
    return tuple(dict.fromkeys(Reduction.for_level(1, CBFLOAT16, chunk=each).chunk for each in found))
