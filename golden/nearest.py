"""The name that somebody may have meant, for errors about unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return the end of a message: ``; did you mean NAME?`` with the nearest known name, or nothing if none is near."""
    names = list(known)
    near = difflib.get_close_matches(given.lower(), names, n=1) or difflib.get_close_matches(given, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
