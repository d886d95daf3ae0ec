"""The counters: read before every clear and at the end, and added up."""

from __future__ import annotations

from typing import Any

import numpy as np
from cocotb.handle import Immediate

from sim.counts import COUNTER_BITS, COUNTERS
from sim.scenario import Scenario

__all__ = ["Counting", "shown_counts"]


def shown_counts(unit: Any) -> list[int]:
    """Return the values of a unit's port ``counts``, in the order of `COUNTERS`."""
    try:
        word = int(str(unit.counts.value), 2)
    except ValueError:
        raise AssertionError("counts are unknown (X)") from None
    return [word >> COUNTER_BITS * at & (1 << COUNTER_BITS) - 1 for at in range(len(COUNTERS))]


class Counting:
    """Clear the counters in some cycles, one `step` on every falling edge.

    Attributes
    ----------
    sums : list of int
        Counts so far, for every counter.
    met : int
        Clears in the same cycle as a counted step.
    broken : list of str
        Always empty: a port has no protocol to break.
    """

    def __init__(self, dut: Any, scenario: Scenario) -> None:
        self._dut = dut
        self._clears = np.zeros(1, np.bool_) if scenario.clears is None else scenario.clears
        self._is_clearing = False
        self.sums, self.met, self.broken = [0] * len(COUNTERS), 0, list[str]()

    def step(self, cycle: int) -> None:
        """Decide whether to clear at the coming edge; if so, add the current values."""
        clears = bool(self._clears[cycle % len(self._clears)])
        if clears or self._is_clearing:
            shown = shown_counts(self._dut)
            self.met += self._is_clearing and any(shown)
            if clears:
                self._add(shown)
        if clears != self._is_clearing:
            self._clear(clears)

    def abort(self) -> None:
        """Stop clearing, because the unit is about to be reset."""
        self._clear(False)

    async def finish(self) -> list[int]:
        """Add the final values, and return the total counts."""
        if not self._is_clearing:
            self._add(shown_counts(self._dut))
        self._clear(False)
        return self.sums

    def _clear(self, clears: bool) -> None:
        self._dut.clear_counts.value = Immediate(int(clears))
        self._is_clearing = clears

    def _add(self, shown: list[int]) -> None:
        self.sums = [before + more for before, more in zip(self.sums, shown, strict=True)]
