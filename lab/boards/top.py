"""The self-test on the pins of a board."""

from __future__ import annotations

from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.build import ResourceError
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from lab.boards.plan import Plan
from lab.boards.pll import PllSettings
from lab.boards.station import Station

__all__ = ["Top"]


class Top(Elaboratable):
    """Connect a `Station` to the resources ``led`` 0 to 3 (running, passed, failed, heartbeat) and ``uart`` 0.

    A board that has fewer of them shows less.

    Parameters
    ----------
    expected : int
        The signature that a round must have, 32 bits.
    megahertz : float, optional
        Of the clock, made by a PLL; that of the board unless given.
    plan : Plan, optional
        What a round consists of.
    """

    def __init__(self, expected: int, *, megahertz: float | None = None, plan: Plan | None = None) -> None:
        self.expected, self.megahertz, self.plan = expected, megahertz, plan

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        board = platform.default_clk_frequency / 1e6
        megahertz = self.megahertz or board
        if megahertz != board:
            self._add_pll(m, platform, PllSettings.find(board, megahertz))
        m.submodules.station = station = Station(self.expected, clock=megahertz * 1e6, plan=self.plan)

        shown = (station.running, station.passed, station.failed, station.heartbeat)
        for number, value in enumerate(shown):
            _drive(m, platform, f"led_{number}", ("led", number), value)
        _drive(m, platform, "uart_tx", ("uart", 0), station.tx, part="tx")
        return m

    def _add_pll(self, m: Module, platform: Any, settings: PllSettings) -> None:
        clock, locked = Signal(name="pll_clock"), Signal(name="pll_locked")
        m.submodules.clock_in = clock_in = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        # nextpnr derives the constraint of the new clock from that of the old one.
        m.submodules.pll = settings.instance(clock_in.i, clock, locked)
        m.domains.sync = ClockDomain("sync")
        m.d.comb += ClockSignal("sync").eq(clock)
        m.submodules.reset = ResetSynchronizer(~locked, domain="sync")


def _drive(m: Module, platform: Any, name: str, resource: tuple[str, int], value: Any, part: str = "") -> None:
    try:
        port = platform.request(*resource, dir="-")
    except ResourceError:
        return
    m.submodules[name] = buffer = io.Buffer("o", getattr(port, part) if part else port)
    m.d.comb += buffer.o.eq(value)
