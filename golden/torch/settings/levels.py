"""The precision optimization levels in force.

The level in force when a product runs forward decides both its passes: the backward level is kept with the product,
so that ``loss.backward()`` may run anywhere. Matrix products obey a level (NUMERICS section 5), and so does the softmax
of attention between two of them (section 6); its gradient is fp32 at every level.
"""

from __future__ import annotations

from typing import NamedTuple

from golden.torch.common.arguments import checked_level
from golden.torch.settings.scopes import scopes

__all__ = ["Levels", "current_pol", "model_level", "set_model_level"]


class Levels(NamedTuple):
    """The levels of the two passes, 0 to 2 each."""

    fwd: int
    bwd: int


class _Process:
    """The model-wide level of the process; a precision context overrides it in its thread."""

    level = 1


def set_model_level(level: int) -> None:
    """Set the model-wide level of the process, 1 at first; a precision context and `pol` override it.

    Raises
    ------
    TypeError
        If `level` is not an int.
    ValueError
        If `level` is not 0, 1 or 2.
    """
    _Process.level = checked_level(level, "level")


def model_level() -> int:
    """Return the model-wide level in force."""
    return scopes.precisions[-1].level if scopes.precisions else _Process.level


def current_pol() -> Levels:
    """Return the levels at which a product would run here: forward, and backward of the same product."""
    fwd = bwd = None
    for scope in reversed(scopes.pols):
        fwd = scope.fwd if fwd is None else fwd
        bwd = scope.bwd if bwd is None else bwd
    model = model_level()
    return Levels(model if fwd is None else fwd, model if bwd is None else bwd)
