"""The matrix engine in a LiteX SoC; needs the extra ``litex``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal, Signal
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import axi

from hdl.matrix_engine.matrix_engine import MatrixEngine
from hdl.matrix_engine.registers import ADDRESS_BITS
from hdl.verilog import to_verilog

__all__ = ["LitexEngine"]

_MODULE = "matrix_engine"


class LitexEngine(LiteXModule):
    """A matrix engine as a LiteX module: `attach` connects it.

    Parameters
    ----------
    platform : LiteX platform
        Gets the engine's Verilog as a source.
    folder : Path
        Where that Verilog, ``matrix_engine.v``, is written.
    **parameters
        Of `hdl.MatrixEngine`.

    Attributes
    ----------
    registers : litex AXILiteInterface
        Subordinate, 32 data bits.
    memory : litex AXIInterface
        Manager, `bus_width` data bits.
    ev : module with ``irq``
        The interrupt, level-sensitive.

    Raises
    ------
    TypeError, ValueError
        If a parameter of the engine is wrong.

    Examples
    --------
    >>> soc.engine = LitexEngine(soc.platform, Path("build"), rows=4, columns=4)    # doctest: +SKIP
    >>> soc.engine.attach(soc, "engine", origin=0x9000_0000)                       # doctest: +SKIP
    """

    def __init__(self, platform: Any, folder: Path, **parameters: Any) -> None:
        unit = MatrixEngine(**parameters)
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32)
        self.memory = axi.AXIInterface(data_width=unit.bus_width, address_width=unit.address_bits, id_width=1)
        self.ev = _Interrupt()
        ports = {"i_aclk": ClockSignal("sys"), "i_aresetn": ~ResetSignal("sys"), "o_interrupt": self.ev.irq}
        for prefix, bus in (("s_axil", self.registers), ("m_axi", self.memory)):
            for name, flow in _flows(unit, prefix):
                signal = _signal(bus, name)
                if prefix == "s_axil" and name in ("awaddr", "araddr"):
                    signal = signal[:ADDRESS_BITS]
                ports[f"{flow}_{prefix}_{name}"] = signal
        self.specials += Instance(_MODULE, **ports)
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"{_MODULE}.v"
        source.write_text(to_verilog(unit, _MODULE), encoding="utf-8")
        platform.add_source(str(source.resolve()))

    def attach(self, soc: Any, name: str, origin: int) -> None:
        """Connect registers, memory and interrupt to an SoC, of which this is the attribute `name`.

        Parameters
        ----------
        soc : litex SoC
        name : str
        origin : int
            First address of the registers, in a region that the processor does not cache.
        """
        soc.bus.add_slave(name, self.registers, SoCRegion(origin=origin, size=1 << 12, cached=False))
        soc.bus.add_master(name, self.memory)
        if soc.irq.enabled:
            soc.irq.add(name, use_loc_if_exists=True)


class _Interrupt(LiteXModule):
    """What LiteX looks for in a module: ``ev.irq``. The engine has its own enable bit, and needs no event manager."""

    def __init__(self) -> None:
        self.irq = Signal()


def _flows(unit: MatrixEngine, prefix: str) -> list[tuple[str, str]]:
    """Return the ports of a prefix, each with ``i`` or ``o``."""
    found = []
    for (port,), member in ((path, member) for path, member, _ in unit.signature.flatten(unit)):
        if str(port).startswith(f"{prefix}_"):
            found.append((str(port).removeprefix(f"{prefix}_"), "i" if member.flow.name == "In" else "o"))
    return found


def _signal(bus: Any, name: str) -> Any:
    """Return the signal of a bus for a port such as ``awaddr``."""
    channel = name[:2] if name[:2] in ("aw", "ar") else name[:1]
    return getattr(getattr(bus, channel), name.removeprefix(channel))
