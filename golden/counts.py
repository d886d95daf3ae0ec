"""The counts of a reduction: steps, the flags that they raised, and lost addends (NUMERICS section 11)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from golden.flags import EVENTS
from golden.nearest import complete

__all__ = ["COUNTED", "NO_EXPONENT", "Counts", "Events"]

#: The counts of each kind of step, in the order of every table.
COUNTED = ("steps", *EVENTS)

#: `Counts.largest_exponent` where no step left anything but zeros, infinities and NaNs: below every exponent.
NO_EXPONENT = -(2**15)


@dataclass(frozen=True)
class Events:
    """How often each event occurred in the steps of one kind: of every result, or summed over them.

    Parameters
    ----------
    steps : int or int64 array of the results' shape
        Here and below: ints in `golden.reference`, of `sum` and of ``counts="sum"``, arrays elsewhere.
    inexact, underflow, overflow, invalid : int or int64 array
        Steps that raised the flag.
    swamped : int or int64 array
        Steps that lost their addend whole: addend and accumulator were finite, the addend was not 0, and the rounded
        result has the value that the accumulator had.
    """

    steps: Any = 0
    inexact: Any = 0
    underflow: Any = 0
    overflow: Any = 0
    invalid: Any = 0
    swamped: Any = 0

    def sum(self) -> Events:
        """Return the counts of all results together."""
        return Events(*(_total(getattr(self, name)) for name in COUNTED))

    def __add__(self, other: Events) -> Events:
        if not isinstance(other, Events):
            return NotImplemented
        return Events(*(getattr(self, name) + getattr(other, name) for name in COUNTED))


complete("golden.Events", [each.name for each in fields(Events)], COUNTED)


@dataclass(frozen=True)
class Counts:
    """The events of a reduction, or of many.

    Parameters
    ----------
    products : Events
        Of the steps that add a product; at level 0 those are all.
    promotions : Events
        Of the steps by which a partial sum joins the total. The final conversion is counted nowhere.
    largest_exponent : int or int64 array
        floor(log2(abs(x))) of the largest finite x that a step left in its accumulator, be it a partial sum or a total;
        `NO_EXPONENT` if every step left a zero, an infinity or a NaN, or there was none. Of many results it is the
        largest.
    """

    products: Events
    promotions: Events
    largest_exponent: Any = NO_EXPONENT

    def sum(self) -> Counts:
        """Return the counts of all results together, as ints."""
        exponent = self.largest_exponent
        largest = int(exponent.max(initial=NO_EXPONENT)) if hasattr(exponent, "max") else int(exponent)
        return Counts(self.products.sum(), self.promotions.sum(), largest)

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        pair = self.largest_exponent, other.largest_exponent
        # The larger, of ints and of arrays alike, without NumPy, which `golden.reference` does without.
        largest = max(pair) if all(isinstance(each, int) for each in pair) else _larger(*pair)
        return Counts(self.products + other.products, self.promotions + other.promotions, largest)


def _larger(x: Any, y: Any) -> Any:
    """Return the larger of two, of which one at least is an array."""
    return x + (y - x) * (y > x)


def _total(count: Any) -> int:
    return int(count.sum()) if hasattr(count, "sum") else int(count)
