"""Counters on an AXI4-Lite bus: traffic while the unit is busy, and all registers and resets once it is idle."""

from __future__ import annotations

from typing import Any

import numpy as np
from cocotb.handle import Immediate

from sim.bench.counting import shown_counts
from sim.bench.manager import Transfers, quiet
from sim.counts import CLEAR_ADDRESS, COUNTER_BITS, COUNTERS

__all__ = ["BusCounting"]

_REGISTERS = range(0, CLEAR_ADDRESS + 4, 4)
_LARGEST = (1 << COUNTER_BITS) - 1
_NOTHING = [0] * len(COUNTERS)
#: For so many cycles the counters are cleared and set, and then as long only read: carries follow each other.
_ON = 128
#: Transfers offered on each channel before a reset, and the number of cycles: each part of a write alone, and answers
#: that wait with the next transfers behind them.
_CUT = (({"aw": 1, "ar": 1}, 1), ({"w": 1, "ar": 2}, 2), ({"aw": 2, "w": 2, "ar": 2}, 3))


def _set(counter: Any, value: int) -> None:
    """Set a counter to a value, and the register with the next value of its high bits to match."""
    low_bits, ones = len(counter.low), (1 << len(counter.high)) - 1
    high = value >> low_bits
    state = {"low": value & (1 << low_bits) - 1, "high": high, "next_high": high + 1 & ones, "carry": int(high == ones)}
    for name, part in (state | {"waits": 0, "adds": 0}).items():
        getattr(counter, name).value = Immediate(part)


class BusCounting:
    """Read and clear the counters over the bus: continuously while the unit is busy, every register when it is idle.

    Now and then the counters are set to values that work does not reach: just below the largest, and where a carry
    passes through many bits. The count is the sum of all increments.

    Attributes
    ----------
    sums : list of int
        Counts up to the last clear or preset.
    broken : list of str
        Errors of the bus or a counter. An error ends the traffic, because everything after it would be wrong, too.
    """

    def __init__(self, dut: Any, edge: Any, seed: int) -> None:
        self._dut, self._edge, self._rng = dut, edge, np.random.default_rng(seed)
        self._unit = dut.dut.unit
        names = [name.replace(".", "_") for name in COUNTERS]
        self._counters = [getattr(self._unit.counting, name) for name in names]
        self._more = [getattr(self._unit.counting, f"counted_{name}") for name in names]
        self.sums, self.broken, self.met = _NOTHING, list[str](), 0
        # The counters' start values, their values in the last cycle, and the steps that full ones missed at its end.
        self._begun, self._before, self._left_out = _NOTHING, _NOTHING, _NOTHING
        self._transfers = Transfers(dut, self._rng, self.broken)

    def step(self, cycle: int) -> None:
        """Keep the bus busy for a cycle."""
        drawn, counts_on = self._rng.random(3), cycle // _ON % 2 == 1
        if self._transfers.has_room("aw", "w") and drawn[0] < 0.4 and not counts_on:
            self._write()
        if self._transfers.has_room("ar") and drawn[1] < 0.6:
            self._transfers.read(int(self._rng.choice(_REGISTERS)))
        self._go_on(presets=bool(drawn[2] < 0.05) and not counts_on)

    def abort(self) -> None:
        """Stop, because the unit is about to be reset."""
        quiet(self._dut)

    async def finish(self) -> list[int] | None:
        """Once the unit is idle, test all registers and return the total counts; None if the bus is broken."""
        await self._rest()
        self._take()
        total, transfers = self.sums, self._transfers
        self._preset()
        for address in _REGISTERS:
            transfers.read(address)
            transfers.write(address, 15 * (address != CLEAR_ADDRESS))
        await self._rest()
        for byte in self._rng.permutation(4):
            self._preset()
            for strobes in (0, 1 << int(byte), 0):
                transfers.write(CLEAR_ADDRESS, strobes)
            await self._rest()
        for offered, cycles in _CUT:
            await self._reset(offered, cycles)
        return None if self.broken else total

    async def _reset(self, offered: dict[str, int], cycles: int) -> None:
        """Reset the unit, which is at rest, during transfers on the bus: the reset ends those, too."""
        self._preset()
        self._transfers.hurry(**offered)
        for _ in range(cycles):
            await self._edge
            self._go_on()
        await self._edge
        quiet(self._dut)
        self._dut.rst.value = 1
        await self._edge
        self._dut.rst.value = 0
        self._begun, self._before, self._left_out = _NOTHING, _NOTHING, _NOTHING
        self._transfers = Transfers(self._dut, self._rng, self.broken)
        self._transfers.write(CLEAR_ADDRESS, 15)
        self._transfers.read(0)
        self._go_on()
        await self._rest()

    async def _rest(self) -> None:
        """Go on until the bus is idle."""
        while not (self._transfers.is_idle or self.broken):
            await self._edge
            self._go_on()

    def _go_on(self, *, presets: bool = False) -> None:
        if self.broken:
            return
        shown, cleared = shown_counts(self._unit), self._transfers.answers()
        self._follow(shown, cleared=cleared)
        if presets:
            self._preset()
        full = [count == _LARGEST for count in self._before]
        self._left_out = [is_full and int(more.value) for is_full, more in zip(full, self._more, strict=True)]
        self._transfers.offers(self._before)
        if self.broken:
            quiet(self._dut)

    def _follow(self, shown: list[int], *, cleared: bool) -> None:
        """Check the increments of the counters in a cycle: at most 1 each, and from 0 if they were cleared."""
        if cleared:
            self._take()
            self._begun = self._before = _NOTHING
        else:
            self.sums = [total + more for total, more in zip(self.sums, self._left_out, strict=True)]
        for name, before, now in zip(COUNTERS, self._before, shown, strict=True):
            if now - before not in (0, 1):
                self.broken.append(f"{name} goes from {before} to {now}{' at a clear' * cleared}")
        self._before = shown

    def _preset(self) -> None:
        """Set the counters. One becomes full only by counting; even values also suit one that has just been full."""
        self._take()
        top = np.where(self._rng.random(len(COUNTERS)) < 0.6, COUNTER_BITS, self._rng.integers(8, 32, len(COUNTERS)))
        self._begun = self._before = [(1 << int(bits)) - int(self._rng.choice([2, 4])) for bits in top]
        for counter, begun in zip(self._counters, self._begun, strict=True):
            _set(counter, begun)

    def _take(self) -> None:
        """Add the counts since the last clear or preset."""
        parts = zip(self.sums, self._before, self._begun, strict=True)
        self.sums = [total + before - begun for total, before, begun in parts]

    def _write(self) -> None:
        """Write random data to the clearing register or a random one; every fourth write strobes no byte."""
        address = CLEAR_ADDRESS if self._rng.random() < 0.5 else int(self._rng.choice(_REGISTERS))
        self._transfers.write(address, int(self._rng.integers(16)) if self._rng.random() < 0.8 else 0)
