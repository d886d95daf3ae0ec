"""Reading handshake signals."""

from __future__ import annotations

from typing import Any

__all__ = ["is_high"]


def is_high(signal: Any, name: str) -> bool:
    """Return whether a signal is 1; an unknown one (X) is a failure of the design, not of the testbench."""
    try:
        return bool(signal.value)
    except ValueError:
        raise AssertionError(f"{name} is unknown (X)") from None
