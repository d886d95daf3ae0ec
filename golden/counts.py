"""What is counted in a reduction: its steps, what they raised, and the addends that were lost (NUMERICS section 11)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Counts", "Events"]


@dataclass(frozen=True)
class Events:
    """How often each event occurred in the steps of one kind: of every result, or summed over them.

    Parameters
    ----------
    steps : int or int64 array of the results' shape
        Here and below: ints in `golden.reference` and of `sum`, arrays elsewhere.
    inexact, underflow, overflow, invalid : int or int64 array
        Steps that raised the flag.
    swamped : int or int64 array
        Steps that lost their addend whole: addend and accumulator were finite, the addend was not 0, and the rounded
        result has the value that the accumulator had.
    """

    steps: Any
    inexact: Any
    underflow: Any
    overflow: Any
    invalid: Any
    swamped: Any

    def sum(self) -> Events:
        """Return the counts of all results together."""
        return Events(*(_total(getattr(self, each.name)) for each in fields(self)))

    def __add__(self, other: Events) -> Events:
        if not isinstance(other, Events):
            return NotImplemented
        return Events(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True)
class Counts:
    """What occurred in a reduction, or in many.

    Parameters
    ----------
    products : Events
        Of the steps that add a product; at level 0 those are all.
    promotions : Events
        Of the steps by which a partial sum joins the total. The final conversion is counted nowhere.
    """

    products: Events
    promotions: Events

    def sum(self) -> Counts:
        """Return the counts of all results together, as ints."""
        return Counts(self.products.sum(), self.promotions.sum())

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(self.products + other.products, self.promotions + other.promotions)


def _total(count: Any) -> int:
    return int(count.sum()) if hasattr(count, "sum") else int(count)
