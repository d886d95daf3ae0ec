# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The matrix engine with a memory and a UART bridge: all that a board needs besides its pins."""

from __future__ import annotations

from typing import Any

from amaranth import ClockSignal, DomainRenamer, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.bridge.memory import AxiMemory
from hdl.bridge.uart_bridge import UartBridge
from hdl.engine.frames import SILENCE
from hdl.engine.transport import Region
from hdl.matrix_engine.control import engine_axi_lite_ports
from hdl.matrix_engine.matrix_engine import MatrixEngine
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import axi_ports

__all__ = ["BAUD", "EngineSystem"]

#: Bits per second on the line, as `hdl.engine.Engine.serial` has them.
BAUD = 1_000_000
#: By how much a bit may be too long or too short: it is sampled in its middle, up to the tenth of a byte.
_OFF = 0.02


class EngineSystem(wiring.Component):
    """A matrix engine behind two pins.

    ::

        rx -> UartBridge --- registers ---> MatrixEngine
        tx <-     '--------- memory ------> AxiMemory <--- m_axi

    Parameters
    ----------
    clock : float
        Frequency of the clock in hertz.
    baud : int
        Bits per second on the line.
    memory : int
        Bytes of memory, a power of two. Its addresses begin at 0.
    **parameters
        Of `hdl.MatrixEngine`.

    Attributes
    ----------
    rx, tx : in, out
        The serial line.
    interrupt : out
        Of the engine.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, or a whole number of cycles misses the time of a bit by more than 2 %.
    """

    def __init__(self, *, clock: float, baud: int = BAUD, memory: int = 1 << 18, **parameters: Any) -> None:
        region, checked, cycles = Region(0, memory), EngineParameters(**parameters), round(clock / baud)
        if abs(cycles * baud / clock - 1) > _OFF:
            raise ValueError(f"baud: got {baud}, which a clock of {clock:g} Hz misses by more than {_OFF:.0%}")
        self.engine, self.store = MatrixEngine(**parameters), AxiMemory(checked, region)
        self.bridge = UartBridge(cycles=cycles, silence=round(clock * SILENCE), region=region)
        self.clock = clock
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "interrupt": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.store, m.submodules.bridge = self.store, self.bridge
        # The engine makes its clock domain itself, of its ports.
        m.submodules.engine = DomainRenamer("engine")(self.engine)
        wiring.connect(m, self.bridge.memory, self.store.lite)
        m.d.comb += [
            self.engine.aclk.eq(ClockSignal()),
            self.engine.aresetn.eq(~ResetSignal(allow_reset_less=True)),
            self.bridge.rx.eq(self.rx),
            self.tx.eq(self.bridge.tx),
            self.interrupt.eq(self.engine.interrupt),
        ]
        _join(m, self.engine, "s_axil", self.bridge.registers, engine_axi_lite_ports())
        _join(m, self.engine, "m_axi", self.store.axi, axi_ports(self.store.parameters))
        return m


def _join(m: Module, engine: Any, prefix: str, bus: Any, ports: dict[str, Any]) -> None:
    """Connect the engine's ports of a prefix to a bus of another part."""
    for name, port in ports.items():
        outside, other = getattr(engine, f"{prefix}_{name}"), getattr(bus, name)
        m.d.comb += outside.eq(other) if port.flow is In else other.eq(outside)
