"""Errors about names: the one that somebody may have meant, and tables that lack one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import TypeVar

__all__ = ["complete", "did_you_mean"]

Table = TypeVar("Table", bound=Collection[object])


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return the end of a message: ``; did you mean NAME?`` with the nearest known name, or nothing if none is near."""
    names = list(known)
    near = difflib.get_close_matches(given.lower(), names, n=1) or difflib.get_close_matches(given, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def complete(name: str, table: Table, axis: Iterable[object]) -> Table:
    """Return a table, once it has an entry for each point of its axis and for nothing else.

    Parameters
    ----------
    name : str
        Name of the table in errors.
    table : collection
        Its keys are the points, such as rounding modes or events.
    axis : iterable
        The points in their order; the table may have another.

    Raises
    ------
    ValueError
        Naming the table, the points that it has and those that it must have.
    """
    points = list(axis)
    if set(table) != set(points) or len(table) != len(points):
        got, must = (", ".join(map(str, each)) for each in (table, points))
        raise ValueError(f"{name}: got entries for {got}; must have one for each of {must}")
    return table
