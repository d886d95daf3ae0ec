"""A station on the pins of a board: another board with an ECP5 is a line in `BOARDS`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.build import ResourceError
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from tools.errors import ToolMissing

__all__ = ["BOARDS", "PllSettings", "Top", "engine_of", "platform_of"]

#: Module and class in amaranth_boards, by the board's name on the command line.
BOARDS = {
    "ulx3s": "ulx3s:ULX3S_85F_Platform",
    "ulx3s-12f": "ulx3s:ULX3S_12F_Platform",
    "ulx3s-25f": "ulx3s:ULX3S_25F_Platform",
    "ulx3s-45f": "ulx3s:ULX3S_45F_Platform",
    "ulx3s-85f": "ulx3s:ULX3S_85F_Platform",
    "icepi-zero": "icepi_zero:IcepiZero1_3Platform",
}

#: The engine of a board, by its device: the largest array that fits with a memory.
_ENGINES: Mapping[str, Mapping[str, int]] = {
    "LFE5U-12F": {"rows": 2, "columns": 2, "memory": 1 << 15},
    "LFE5U-25F": {"rows": 2, "columns": 2, "memory": 1 << 16},
    "LFE5U-45F": {"rows": 4, "columns": 4, "memory": 1 << 17},
    "LFE5U-85F": {"rows": 4, "columns": 4, "memory": 1 << 18},
}
#: Addresses reach beyond the memory, and no further than needed: each bit costs area.
_ADDRESS_BITS, _SIZE_BITS = 20, 12


def engine_of(board: str) -> dict[str, Any]:
    """Return the parameters of `hdl.bridge.system.EngineSystem` for a board; `board` as for `platform_of`."""
    sizes = _ENGINES[platform_of(board).device]
    return {**sizes, "address_bits": _ADDRESS_BITS, "size_bits": _SIZE_BITS, "multiplier": "ecp5"}


def platform_of(board: str) -> Any:
    """Return a new platform for a board.

    Raises
    ------
    ValueError
        If there is no board of that name; the message lists them.
    ToolMissing
        If amaranth-boards is not installed.
    """
    if board not in BOARDS:
        raise ValueError(f"board: got {board!r}, must be one of {', '.join(BOARDS)}")
    module, _, name = BOARDS[board].partition(":")
    try:
        return getattr(import_module(f"amaranth_boards.{module}"), name)()
    except ModuleNotFoundError:
        raise ToolMissing(
            "amaranth-boards is not installed: run `make bitstream`, which installs it, "
            "or pip install -e '.[board]' -c constraints.txt"
        ) from None


# Megahertz, from the data sheet: the oscillator, and the phase detector behind the input divider.
_OSCILLATOR = (400.0, 800.0)
_DETECTOR = (3.125, 400.0)
_DIVIDERS = range(1, 129)


@dataclass(frozen=True)
class PllSettings:
    """The three dividers of an EHXPLLL: output = input * `feedback` / `input`, oscillator = output * `output`.

    Parameters
    ----------
    given, wanted : float
        Megahertz in and out.
    input, feedback, output : int
        Dividers, 1 to 128.
    """

    given: float
    wanted: float
    input: int
    feedback: int
    output: int

    @classmethod
    def find(cls, given: float, wanted: float) -> PllSettings:
        """Return the settings that give exactly a frequency.

        Raises
        ------
        ValueError
            If no setting gives the frequency.
        """
        low, high = _OSCILLATOR
        for divider, feedback in itertools.product(range(1, 17), range(1, 81)):
            if abs(given * feedback / divider - wanted) > 1e-6 or not _DETECTOR[0] <= given / divider <= _DETECTOR[1]:
                continue
            fitting = [output for output in _DIVIDERS if low <= wanted * output <= high]
            if fitting:
                # The middle setting keeps the oscillator farthest from its limits.
                return cls(given, wanted, divider, feedback, fitting[len(fitting) // 2])
        raise ValueError(
            f"clock: got {wanted:g} MHz, must be one that a PLL makes of {given:g} MHz: {given:g} * n / m with n up to "
            f"80, m up to 16, at least {low / _DIVIDERS[-1]:g} and at most {high:g} MHz"
        )

    def instance(self, clock_in: Signal, clock_out: Signal, locked: Signal) -> Instance:
        """Return the loop between two clock signals; `locked` tells that the output is steady."""
        return Instance(
            "EHXPLLL",
            # Parameters of the loop filter, as the vendor's tools write them.
            a_FREQUENCY_PIN_CLKI=f"{self.given:g}",
            a_FREQUENCY_PIN_CLKOP=f"{self.wanted:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_OUTDIVIDER_MUXA="DIVA",
            p_CLKI_DIV=self.input,
            p_CLKFB_DIV=self.feedback,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=self.output,
            p_CLKOP_CPHASE=self.output - 1,
            p_CLKOP_FPHASE=0,
            p_FEEDBK_PATH="CLKOP",
            i_RST=0,
            i_STDBY=0,
            i_CLKI=clock_in,
            i_CLKFB=clock_out,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=1,
            i_PHASESTEP=1,
            i_PHASELOADREG=1,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=clock_out,
            o_LOCK=locked,
        )


class Top(Elaboratable):
    """Connect a station to the resources ``led`` 0 to 3 and ``uart`` 0. A board that has fewer of them shows less.

    Parameters
    ----------
    station : callable
        Makes the station for a clock in hertz: a component with ``tx``, perhaps ``rx``, and four ``lamps``.
    megahertz : float, optional
        Of the clock, made by a PLL; the board's clock unless given.
    """

    def __init__(self, station: Callable[..., Any], *, megahertz: float | None = None) -> None:
        self.station, self.megahertz = station, megahertz

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        board = platform.default_clk_frequency / 1e6
        megahertz = self.megahertz or board
        if megahertz != board:
            self._add_pll(m, platform, PllSettings.find(board, megahertz))
        m.submodules.station = station = self.station(clock=megahertz * 1e6)

        for number, value in enumerate(station.lamps):
            if port := _requested(platform, "led", number):
                m.submodules[f"led_{number}"] = lamp = io.Buffer("o", port)
                m.d.comb += lamp.o.eq(value)
        if uart := _requested(platform, "uart", 0):
            m.submodules.uart_tx = tx = io.Buffer("o", uart.tx)
            m.d.comb += tx.o.eq(station.tx)
            if hasattr(station, "rx"):
                m.submodules.uart_rx = rx = io.Buffer("i", uart.rx)
                m.d.comb += station.rx.eq(rx.i)
        return m

    def _add_pll(self, m: Module, platform: Any, settings: PllSettings) -> None:
        clock, locked = Signal(name="pll_clock"), Signal(name="pll_locked")
        m.submodules.clock_in = clock_in = io.Buffer("i", platform.request(platform.default_clk, dir="-"))
        # nextpnr derives the new clock's constraint from the old one's.
        m.submodules.pll = settings.instance(clock_in.i, clock, locked)
        m.domains.sync = ClockDomain("sync")
        m.d.comb += ClockSignal("sync").eq(clock)
        m.submodules.reset = ResetSynchronizer(~locked, domain="sync")


def _requested(platform: Any, *resource: Any) -> Any:
    """Return the pins of a resource; None if the board lacks it."""
    try:
        return platform.request(*resource, dir="-")
    except ResourceError:
        return None
