"""Checks of arguments that several parts need; each raises an error that names the argument."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from golden.reduction import LEVELS

__all__ = [
    "check_count",
    "check_flags",
    "check_is",
    "check_items",
    "check_mapping",
    "check_name",
    "checked_level",
    "length_of",
    "naming",
    "unknown_key",
]


def check_flags(**given: object) -> None:
    """Raise TypeError for the first argument that is neither True nor False."""
    for argument, value in given.items():
        if not isinstance(value, bool):
            raise TypeError(f"{argument}: got {value!r}, must be True or False")


def check_items(given: object, argument: str, kind: str) -> list[Any]:
    """Return a list of what an argument holds; TypeError if it is one thing, or text."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | type):
        raise TypeError(f"{argument}: got {given!r}, must be a list of {kind}")
    try:
        return list(given)
    except (TypeError, RuntimeError, NotImplementedError):  # an array or a tensor without axes or values
        raise TypeError(f"{argument}: got {given!r}, must be a list of {kind}") from None


def check_mapping(given: object, argument: str, kind: str) -> dict[str, Any]:
    """Return a copy of a mapping by names; TypeError if it is none."""
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{argument}: got {given!r}, must be a mapping of {kind}")
    return dict(given)


def check_name(given: object, argument: str = "name") -> str | None:
    """Return a name or None; TypeError if it is anything else."""
    if given is not None and not isinstance(given, str):
        raise TypeError(f"{argument}: got {given!r}, must be a string or None")
    return given


@contextmanager
def naming(arguments: str) -> Iterator[None]:
    """Begin what PyTorch says of arguments that it has under other names with the names that they have here."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        raise type(error)(f"{arguments}: {error}") from None
    except OverflowError as error:
        raise ValueError(f"{arguments}: {error}") from None


def checked_level(level: object, argument: str) -> int:
    """Accept a precision optimization level, name what is wrong otherwise."""
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"{argument}: got {level!r}, must be 0, 1 or 2")
    if level not in LEVELS:
        raise ValueError(
            f"{argument}: got {level}, must be 0 (fp32), 1 (16 bits in a chunk, fp32 across) or 2 (16 bits)"
        )
    return level


def unknown_key(place: str, key: object, known: Collection[str]) -> str:
    """Return the message for a key that means nothing: with the nearest known one, or else all of them."""
    near = difflib.get_close_matches(str(key), known, n=1)
    meant = f"; did you mean {near[0]}?" if near else f", must be one of {', '.join(sorted(known))}"
    return f"{place}.{key}: is not a known key{meant}"


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
