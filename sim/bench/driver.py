"""The source: offers payloads and keeps each one until it is taken."""

from __future__ import annotations

from typing import Any

from cocotb.handle import Immediate

from sim.bench.monitor import is_high
from sim.scenario import Scenario

__all__ = ["Driver"]


class Driver:
    """Drive the input stream, one `step` on every falling edge.

    Everything is set on the falling edge, where no clocked process looks, so it may take effect immediately.
    """

    def __init__(self, dut: Any, scenario: Scenario, span: range) -> None:
        self._accepted, self._valid, self._payload = dut.accepted, dut.valid, dut.payload
        part = slice(span.start, span.stop)
        self._payloads = scenario.payloads[part].tolist()
        self._chunk = dut.chunk if scenario.chunks is not None else None
        self._chunks = scenario.chunks[part].tolist() if scenario.chunks is not None else []
        self._gaps = scenario.gaps[part].tolist() if scenario.gaps is not None else self._chunks
        self._pauses = scenario.pauses[part].tolist() if scenario.pauses is not None else None
        self._pause = self._pauses[0] if self._pauses else 0
        self._offers = scenario.offers.tolist()
        self._next = 0
        self._is_offering = False
        self._shown_chunk: int | None = None
        #: Whether the payload offered in the last cycle was not accepted.
        self.is_blocked = False
        self.first_cycle = self.last_cycle = 0

    @property
    def accepted(self) -> int:
        """Payloads taken so far."""
        return self._next

    @property
    def is_done(self) -> bool:
        """Whether every payload has been taken."""
        return self._next == len(self._payloads)

    def step(self, cycle: int) -> bool:
        """Advance to the next payload if the last one was taken; return whether it was."""
        was_offering = self._is_offering
        self.is_blocked = False
        if was_offering:
            if not is_high(self._accepted, "ready"):
                self.is_blocked = True
                return False
            self.first_cycle = self.first_cycle or cycle
            self.last_cycle = cycle
            self._next += 1
            if self._pauses and not self.is_done:
                self._pause = self._pauses[self._next]
        offers = not self.is_done and self._offers[cycle % len(self._offers)]
        if offers and self._pause:
            self._pause -= 1
            offers = False
        if offers:
            self._payload.value = Immediate(self._payloads[self._next])
            self._show(self._chunks, self._next)
        elif self._next:
            self._show(self._gaps, self._next - 1)
        if offers != was_offering:
            self._valid.value = Immediate(int(offers))
            self._is_offering = offers
        return was_offering

    def _show(self, chunks: list[int], at: int) -> None:
        """Set the chunk length, if there is such a port and the length has changed."""
        if self._chunk is not None and chunks[at] != self._shown_chunk:
            self._shown_chunk = chunks[at]
            self._chunk.value = Immediate(self._shown_chunk)
