"""The counters of a unit as the testbench sees them: their names, in the order of the port ``counts``."""

from __future__ import annotations

from golden.counts import COUNTED, Counts

__all__ = ["CLEAR_ADDRESS", "COUNTERS", "COUNTER_ADDRESSES", "COUNTER_BITS", "as_numbers"]

COUNTER_BITS = 32
_KINDS = ("products", "promotions")
#: ``products.steps``, ``products.inexact``, ...
COUNTERS = tuple(f"{kind}.{event}" for kind in _KINDS for event in COUNTED)
#: Documented byte addresses on AXI4-Lite: every counter, and the register that clears them.
COUNTER_ADDRESSES = tuple(base + 4 * at for base in (0x00, 0x20) for at in range(len(COUNTED)))
CLEAR_ADDRESS = 0x3C


def as_numbers(counts: Counts) -> list[int]:
    """Return golden's counts of one result in the order of `COUNTERS`."""
    return [int(getattr(getattr(counts, kind), name)) for kind in _KINDS for name in COUNTED]
