"""The half type in force, and whether mixed precision is on; a precision context goes before the process."""

from __future__ import annotations

import torch

from golden.torch.common.arguments import check_flags
from golden.torch.common.terminal import say_once
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.scopes import scopes

__all__ = [
    "current_half",
    "enable_mixed_precision",
    "expected_half",
    "is_asked_for",
    "mixed_precision",
    "running_half",
    "set_half",
    "wants_mixed_precision",
]


class _Process:
    """The defaults of the process; a precision context overrides them in its thread."""

    half = half_named("float16")
    half_is_set = False
    mixed_precision = False
    initialized: HalfType | None = None  # of the last initialised model


def set_half(half: HalfType) -> None:
    """Set the half type of the process, and ask for mixed precision."""
    _Process.half, _Process.half_is_set = half, True
    _Process.mixed_precision = True
    _Process.initialized = None


def current_half() -> HalfType:
    """Return the half type in force: from a level map, else the innermost precision context, else the process."""
    if scopes.mapped:
        for scope in reversed(scopes.pols):
            if scope.half is not None:
                return scope.half
    return scopes.precisions[-1].half if scopes.precisions else _Process.half


def running_half(enabled: bool = True) -> HalfType:
    """Return the half type in force where products begin to run; if nobody has chosen one, say once which it is."""
    if enabled and not (_Process.half_is_set or scopes.precisions or torch.compiler.is_compiling()):
        say_once(
            f"half type: none was chosen, so products run in {_Process.half.name}; "
            "cstorch.amp.set_half_dtype('cbfloat16') chooses another"
        )
    return current_half()


def expected_half() -> HalfType:
    """Return the half type that a loss will have as far as one can know: in force, else of the initialised model."""
    known = scopes.precisions or _Process.mixed_precision
    return current_half() if known else _Process.initialized or current_half()


def mixed_precision() -> bool:
    """Return whether mixed precision is on here, so that products of PyTorch's functions run exactly."""
    return bool(scopes.precisions) and scopes.precisions[-1].enabled


def wants_mixed_precision() -> bool:
    """Return whether mixed precision is on here, or, outside of precision contexts, asked for by `set_half_dtype`."""
    return scopes.precisions[-1].enabled if scopes.precisions else _Process.mixed_precision


def is_asked_for() -> bool:
    """Return whether `set_half_dtype` has asked for mixed precision, whatever context is around."""
    return _Process.mixed_precision


def enable_mixed_precision(enable: bool = True) -> bool:
    """Turn mixed precision on in this process, as `set_half_dtype` does, or off; return `enable`.

    While it is on, `GradScaler.scale` demands exact products, and `get_floating_point_dtype` gives the half dtype.

    Raises
    ------
    TypeError
        If `enable` is not a bool.
    """
    check_flags(enable=enable)
    _Process.mixed_precision = enable
    return enable
