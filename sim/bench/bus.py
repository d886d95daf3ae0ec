"""The counters behind an AXI4-Lite bus: traffic while the unit works, and all registers once it is at rest.

Every output of the bus comes from a register: what is seen on a falling edge still holds at the next rising one.
"""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.handle import Immediate

from sim.bench.counting import shown_counts
from sim.bench.levels import is_high
from sim.counts import CLEAR_ADDRESS, COUNTER_ADDRESSES, COUNTERS

__all__ = ["BusCounting", "Manager", "quiet"]

_OKAY, _SLAVE_ERROR = 0, 2
_REGISTERS = range(0, CLEAR_ADDRESS + 4, 4)
_MOST_PAUSES = 4
#: Which transfers clear the counters: soon, so that there is much to count behind the last one.
_CLEARS = (3, 4, 9, 16)


def quiet(dut: Any) -> None:
    """Offer nothing on the bus."""
    for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
        getattr(dut, f"s_axil_{name}").value = 0


class Manager:
    """Read and write registers, with pauses of chance between and within the transfers."""

    def __init__(self, dut: Any, edge: Any, rng: np.random.Generator) -> None:
        self.dut, self._edge, self._rng = dut, edge, rng

    async def read(self, address: int) -> int:
        """Return what a register holds."""
        self._set("araddr", address | int(self._rng.integers(4)))
        await self._offer("ar")
        await self._take("r")
        assert int(self._port("rresp").value) == _OKAY, f"read of {address:#x}: answered with an error"
        return int(self._port("rdata").value)

    async def write(self, address: int, strobes: int = 15) -> int:
        """Write anything into a register, the address first or the data first; return the answer."""
        self._set("awaddr", address | int(self._rng.integers(4)))
        self._set("wdata", int(self._rng.integers(1 << 32)))
        self._set("wstrb", strobes)
        channels = ["aw", "w"] if self._rng.integers(2) else ["w", "aw"]
        for channel in channels:
            await self._offer(channel)
        await self._take("b")
        return int(self._port("bresp").value)

    async def _offer(self, channel: str) -> None:
        """Offer until it is accepted."""
        await self._pause()
        self._set(f"{channel}valid", 1)
        accepted = False
        while not accepted:
            accepted = is_high(self._port(f"{channel}ready"), f"{channel}ready")
            await self._edge
        self._set(f"{channel}valid", 0)

    async def _take(self, channel: str) -> None:
        """Wait for an answer, leave it there for a while, and take it; it must not change meanwhile."""
        names = {"r": ("rdata", "rresp"), "b": ("bresp",)}[channel]
        while not is_high(self._port(f"{channel}valid"), f"{channel}valid"):
            await self._edge
        answer = [str(self._port(name).value) for name in names]
        await self._pause()
        assert is_high(self._port(f"{channel}valid"), f"{channel}valid"), f"{channel}valid fell before it was taken"
        assert answer == [str(self._port(name).value) for name in names], f"answer of {channel} changed"
        self._set(f"{channel}ready", 1)
        await self._edge
        self._set(f"{channel}ready", 0)

    async def _pause(self) -> None:
        for _ in range(int(self._rng.integers(_MOST_PAUSES))):
            await self._edge

    def _port(self, name: str) -> Any:
        return getattr(self.dut, f"s_axil_{name}")

    def _set(self, name: str, value: int) -> None:
        self._port(name).value = Immediate(value)


class BusCounting:
    """Read the counters over the bus: now and then while the unit works, and exactly when it is at rest.

    What is lost to a clear in the middle of work is looked up in the unit, in the cycle of the clear.

    Attributes
    ----------
    sums : list of int
        What the counters held when they were cleared.
    broken : list of str
        What the bus did wrong.
    """

    def __init__(self, dut: Any, edge: Any, seed: int) -> None:
        self._unit, self._rng = dut.dut.unit, np.random.default_rng(seed)
        self._manager = Manager(dut, edge, self._rng)
        self.sums, self.broken, self.met = [0] * len(COUNTERS), list[str](), 0
        self._stops = False
        self._traffic = cocotb.start_soon(self._work())

    def step(self, cycle: int) -> None:
        """Take what is cleared at the coming edge."""
        if is_high(self._unit.clear_counts, "clear_counts"):
            self.sums = [before + more for before, more in zip(self.sums, shown_counts(self._unit), strict=True)]

    def abort(self) -> None:
        """Leave everything as it is: the unit is going to be reset."""
        self._traffic.cancel()
        quiet(self._manager.dut)

    async def finish(self) -> list[int]:
        """Return what was counted in all, when the unit is at rest; try every register."""
        self._stops = True
        await self._traffic
        held = await self._read()
        total = [before + more for before, more in zip(self.sums, held, strict=True)]
        for address in _REGISTERS:
            if address not in COUNTER_ADDRESSES:
                self._check(f"register {address:#x}", await self._manager.read(address), 0)
            if address != CLEAR_ADDRESS:
                self._check(f"write to {address:#x}", await self._manager.write(address), _SLAVE_ERROR)
        self._check("write of no byte", await self._manager.write(CLEAR_ADDRESS, strobes=0), _OKAY)
        self._check("counters after these writes", await self._read(), held)
        self._check("clear", await self._manager.write(CLEAR_ADDRESS, int(self._rng.integers(1, 16))), _OKAY)
        self._check("counters after a clear", await self._read(), [0] * len(COUNTERS))
        return total

    async def _read(self) -> list[int]:
        return [await self._manager.read(address) for address in COUNTER_ADDRESSES]

    async def _work(self) -> None:
        """Read a counter, which never falls, write where nothing is, and clear, but not for long."""
        seen, transfer = [0] * len(COUNTERS), 0
        while not self._stops:
            at, drawn, transfer = int(self._rng.integers(len(COUNTERS))), self._rng.random(), transfer + 1
            if transfer in _CLEARS:
                await self._manager.write(CLEAR_ADDRESS)
                seen = [0] * len(COUNTERS)
            elif drawn < 0.2:
                self._check("write to a counter", await self._manager.write(COUNTER_ADDRESSES[at]), _SLAVE_ERROR)
            else:
                count = await self._manager.read(COUNTER_ADDRESSES[at])
                if count < seen[at]:
                    self.broken.append(f"{COUNTERS[at]} falls from {seen[at]} to {count}")
                seen[at] = count

    def _check(self, what: str, got: Any, must: Any) -> None:
        if got != must:
            self.broken.append(f"{what}: got {got}, must be {must}")
