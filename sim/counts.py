"""The counters of a unit as the testbench sees them: their names, in the order of the port ``counts``."""

from __future__ import annotations

from dataclasses import fields

from golden.counts import Counts, Events

__all__ = ["COUNTERS", "COUNTER_BITS", "as_numbers"]

COUNTER_BITS = 32
#: ``products.steps``, ``products.inexact``, ...
COUNTERS = tuple(f"{kind.name}.{event.name}" for kind in fields(Counts) for event in fields(Events))


def as_numbers(counts: Counts) -> list[int]:
    """Return golden's counts of one result in the order of `COUNTERS`."""
    return [
        int(getattr(events, each.name)) for events in (counts.products, counts.promotions) for each in fields(Events)
    ]
