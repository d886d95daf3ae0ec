"""Checks of the arguments of a training run, each with an error that names the argument."""

from __future__ import annotations

from typing import Any

__all__ = ["check_count", "check_is", "length_of"]


def check_count(given: Any, argument: str, least: int = 1) -> None:
    """Raise an error unless `given` is an int of at least `least`."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"{argument}: got {given!r}, must be an int from {least}")
    if given < least:
        raise ValueError(f"{argument}: got {given}, must be at least {least}")


def check_is(given: Any, kind: type, argument: str) -> None:
    """Raise an error unless `given` is None or an object of this kind."""
    if given is not None and not isinstance(given, kind):
        raise TypeError(f"{argument}: got {given!r}, must be a {kind.__name__} or None")


def length_of(given: Any) -> int | None:
    """Return a length, None if there is none (a generator, a data loader of a stream)."""
    try:
        return len(given)
    except TypeError:
        return None
