"""The counters of a unit as the testbench sees them: their names, in the order of the port ``counts``."""

from __future__ import annotations

from dataclasses import fields

from golden.counts import Counts, Events

__all__ = ["CLEAR_ADDRESS", "COUNTERS", "COUNTER_ADDRESSES", "COUNTER_BITS", "as_numbers"]

COUNTER_BITS = 32
_KINDS = ("products", "promotions")
#: ``products.steps``, ``products.inexact``, ...
COUNTERS = tuple(f"{kind}.{event.name}" for kind in _KINDS for event in fields(Events))
#: Documented byte addresses on AXI4-Lite: every counter, and the register that clears them.
COUNTER_ADDRESSES = (*range(0x00, 0x18, 4), *range(0x20, 0x38, 4))
CLEAR_ADDRESS = 0x3C


def as_numbers(counts: Counts) -> list[int]:
    """Return golden's counts of one result in the order of `COUNTERS`."""
    return [int(getattr(getattr(counts, kind), each.name)) for kind in _KINDS for each in fields(Events)]
