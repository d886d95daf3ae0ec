"""Whether the latest step of an optimizer was made: what a schedule asks before it goes on."""

from __future__ import annotations

from weakref import WeakSet

from torch.optim import Optimizer

__all__ = ["isfinite", "note_step"]

_skipped: WeakSet[Optimizer] = WeakSet()


def note_step(optimizer: Optimizer, *, made: bool) -> None:
    """Remember whether the gradient scaler made the step of an optimizer, or skipped it."""
    if made:
        _skipped.discard(optimizer)
    else:
        _skipped.add(optimizer)


def isfinite(optimizer: Optimizer) -> bool:
    """Tell whether the latest step of an optimizer was made, and not skipped because its gradients overflowed."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer: got {type(optimizer).__name__}, must be a torch.optim.Optimizer")
    return optimizer not in _skipped
