# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The counters of a unit as registers on an AXI4-Lite bus."""

from __future__ import annotations

from typing import Any

from amaranth import Array, C, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.flags import EVENTS
from hdl.mac.counters import KINDS, counts_layout

__all__ = ["CLEAR_ADDRESS", "CounterRegisters", "address_of", "axi_lite_ports"]

_WORD_BYTES, _ADDRESS_BITS = 4, 6
_NAMES = ("steps", *EVENTS)
#: Register addresses reserved for a kind of step; some are unused.
_PLACES = 8
if len(_NAMES) >= _PLACES:  # the last place of promotions is `CLEAR_ADDRESS`
    raise ValueError(f"_PLACES: got {_PLACES}, must be more than the counters of a kind: {', '.join(_NAMES)}")
#: Address of the last register: any write to it clears all counters.
CLEAR_ADDRESS = (1 << _ADDRESS_BITS) - _WORD_BYTES
#: Answers of the bus.
_OKAY, _SLAVE_ERROR = 0, 2


def address_of(kind: str, name: str) -> int:
    """Return the byte address of a counter: ``"products"`` from 0x00, ``"promotions"`` from 0x20.

    Raises
    ------
    ValueError
        If there is no such counter.
    """
    for argument, given, known in (("kind", kind, KINDS), ("name", name, _NAMES)):
        if given not in known:
            raise ValueError(f"{argument}: got {given!r}, must be one of {', '.join(known)}")
    return _WORD_BYTES * (_PLACES * KINDS.index(kind) + _NAMES.index(name))


def axi_lite_ports() -> dict[str, Any]:
    """Return the ports of the bus on the subordinate's side, without prefix."""
    return {
        "awaddr": In(_ADDRESS_BITS),
        "awprot": In(3),
        "awvalid": In(1),
        "awready": Out(1),
        "wdata": In(8 * _WORD_BYTES),
        "wstrb": In(_WORD_BYTES),
        "wvalid": In(1),
        "wready": Out(1),
        "bresp": Out(2),
        "bvalid": Out(1),
        "bready": In(1),
        "araddr": In(_ADDRESS_BITS),
        "arprot": In(3),
        "arvalid": In(1),
        "arready": Out(1),
        "rdata": Out(8 * _WORD_BYTES),
        "rresp": Out(2),
        "rvalid": Out(1),
        "rready": In(1),
    }


class CounterRegisters(wiring.Component):
    """Let an AXI4-Lite bus read the counters, and clear them.

    ==============  ==============================================================================================
    byte address    register
    ==============  ==============================================================================================
    0x00 to 0x14    for steps that added a product: ``steps``, ``inexact``, ``underflow``, ``overflow``,
                    ``invalid``, ``swamped``; read only
    0x20 to 0x34    the same for promotions; read only
    0x3c            any write clears all counters; reads as 0
    ==============  ==============================================================================================

    A read returns the value of a counter in one cycle; other registers read as 0. For a consistent set of counters,
    let the unit become idle first. A write to any other register changes nothing and is answered with SLVERR; neither
    does a write without byte strobes. The lowest two bits of an address are ignored. Two reads and two writes can be
    outstanding: one that is answered, and one that waits for that answer to be taken. Reads and writes do not wait for
    each other. Every output of the bus comes from a register. `axi_lite_ports` lists the ports.

    Attributes
    ----------
    counts : counts_layout, in
        Counters that the bus reads.
    clear : out
        The counters restart at the clock edge.
    address, has_address, strobes, has_data, read_address, reads : Signal
        State that proofs refer to: the address and strobes of a write and their valid bits; the address of a read and
        its valid bit. The outputs ``bvalid``, ``bresp``, ``rvalid``, ``rdata`` are state, too.
    """

    def __init__(self) -> None:
        super().__init__({**axi_lite_ports(), "counts": In(counts_layout()), "clear": Out(1)})
        register_bits = _ADDRESS_BITS - 2
        self.address = Signal(register_bits, reset_less=True)
        self.strobes = Signal(_WORD_BYTES, reset_less=True)
        self.read_address = Signal(register_bits, reset_less=True)
        self.has_address, self.has_data, self.reads = Signal(), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m: Module) -> None:
        writes, is_clear = Signal(), self.address == CLEAR_ADDRESS // _WORD_BYTES
        m.d.comb += [
            self.awready.eq(~self.has_address),
            self.wready.eq(~self.has_data),
            writes.eq(self.has_address & self.has_data & (~self.bvalid | self.bready)),
            self.clear.eq(writes & is_clear & self.strobes.any()),
        ]
        with m.If(self.awready):
            m.d.sync += [self.address.eq(self.awaddr[2:]), self.has_address.eq(self.awvalid)]
        with m.If(self.wready):
            m.d.sync += [self.strobes.eq(self.wstrb), self.has_data.eq(self.wvalid)]
        with m.If(self.bready):
            m.d.sync += self.bvalid.eq(0)
        with m.If(writes):
            m.d.sync += [
                self.has_address.eq(0),
                self.has_data.eq(0),
                self.bvalid.eq(1),
                self.bresp.eq(Mux(is_clear, _OKAY, _SLAVE_ERROR)),
            ]

    def _read(self, m: Module) -> None:
        zero = C(0, 8 * _WORD_BYTES)
        registers = [zero] * (1 << len(self.read_address))
        for kind in KINDS:
            for name in _NAMES:
                registers[address_of(kind, name) // _WORD_BYTES] = self.counts[kind][name]
        m.d.comb += [self.arready.eq(~self.reads), self.rresp.eq(_OKAY)]
        with m.If(self.arready):
            m.d.sync += [self.read_address.eq(self.araddr[2:]), self.reads.eq(self.arvalid)]
        with m.If(self.rready):
            m.d.sync += self.rvalid.eq(0)
        with m.If(self.reads & (~self.rvalid | self.rready)):
            m.d.sync += [
                self.reads.eq(0),
                self.rvalid.eq(1),
                self.rdata.eq(Array(registers)[self.read_address]),
            ]
