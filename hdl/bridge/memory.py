"""Memory in block RAM behind AXI4, with a second way in."""

from __future__ import annotations

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.bridge.uart_bridge import lite_signature
from hdl.engine.transport import Region
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import axi_ports

__all__ = ["AxiMemory"]

_OKAY, _DECODE_ERROR = 0, 3
_PAGE = 1 << 12
_LITE_BITS = 32


class AxiMemory(wiring.Component):
    """A memory of one read and one write port that an engine and a bridge share.

    The engine's bursts are of type INCR and of whole words, as those of `hdl.MatrixEngine`; a read gives a word in
    every cycle, but for one between two bursts. A word of the bridge takes one cycle of the engine's. An address
    outside of the memory is answered with DECERR, and nothing is written.

    Parameters
    ----------
    parameters : EngineParameters
        Of the engine on the bus.
    region : Region
        Address and size in bytes: powers of two, of 4 KiB or more; the address a multiple of the size.

    Attributes
    ----------
    axi : AXI4 subordinate
    lite : AXI4-Lite subordinate of 32 data bits

    Raises
    ------
    ValueError
        If the region is not of that kind.
    """

    def __init__(self, parameters: EngineParameters, region: Region) -> None:
        base, size = region
        if size < _PAGE or size & (size - 1) or base % size:
            raise ValueError(
                f"region: got {region}, must be a power of two of at least {_PAGE} bytes, its address a multiple of it"
            )
        if base + size > 1 << min(parameters.address_bits, 32):
            raise ValueError(f"region: got {region}, must lie within addresses of {parameters.address_bits} bits")
        self.parameters, self.region = parameters, region
        super().__init__({"axi": In(wiring.Signature(axi_ports(parameters))), "lite": Out(lite_signature(_LITE_BITS))})
        #: A memory for each byte of a word: block RAM is narrow, and deep.
        self.lanes = [Memory(shape=8, depth=size // parameters.bus_bytes, init=[]) for _ in range(parameters.bus_bytes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _index(self, address: Value) -> Value:
        """Return the number of a word."""
        return address[(self.parameters.bus_bytes - 1).bit_length() : (self.region.size - 1).bit_length()]

    def _is_outside(self, address: Value) -> Value:
        shift = (self.region.size - 1).bit_length()
        return address[shift:] != self.region.base >> shift

    def _lane(self, address: Value) -> Value:
        """Return which 32 bits of a word."""
        return address[2 : (self.parameters.bus_bytes - 1).bit_length()]

    def _write(self, m: Module) -> None:
        axi, lite = self.axi, self.lite
        has_burst, is_outside, word = Signal(), Signal(), Signal.like(self._index(axi.awaddr))
        accepts, interrupts = Signal(), Signal()
        m.d.comb += [
            interrupts.eq(lite.awvalid & lite.wvalid & ~lite.bvalid),
            lite.awready.eq(interrupts),
            lite.wready.eq(interrupts),
            axi.awready.eq(~has_burst & ~axi.bvalid),
            axi.wready.eq(has_burst & ~interrupts),
            accepts.eq(axi.wvalid & axi.wready),
        ]
        with m.If(lite.bready):
            m.d.sync += lite.bvalid.eq(0)
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(interrupts):
            m.d.sync += [lite.bvalid.eq(1), lite.bresp.eq(Mux(self._is_outside(lite.awaddr), _DECODE_ERROR, _OKAY))]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [
                has_burst.eq(1),
                word.eq(self._index(axi.awaddr)),
                # A burst does not cross 4 KiB, and so neither an end of the memory.
                is_outside.eq(self._is_outside(axi.awaddr)),
                axi.bid.eq(axi.awid),
            ]
        with m.If(accepts):
            m.d.sync += word.eq(word + 1)
            with m.If(axi.wlast):
                m.d.sync += [has_burst.eq(0), axi.bvalid.eq(1), axi.bresp.eq(Mux(is_outside, _DECODE_ERROR, _OKAY))]
        place, strobes = Signal.like(word), Signal(self.parameters.bus_bytes)
        with m.If(interrupts):
            m.d.comb += place.eq(self._index(lite.awaddr))
            with m.If(~self._is_outside(lite.awaddr)):
                m.d.comb += strobes.eq(lite.wstrb << (self._lane(lite.awaddr) << 2))
        with m.Else():
            m.d.comb += place.eq(word)
            with m.If(accepts & ~is_outside):
                m.d.comb += strobes.eq(axi.wstrb)
        words = self.parameters.bus_width // _LITE_BITS
        for number, lane in enumerate(self.lanes):
            m.submodules[f"lane_{number}"] = lane
            port = lane.write_port()
            m.d.comb += [
                port.addr.eq(place),
                port.data.eq(Mux(interrupts, lite.wdata.replicate(words), axi.wdata).word_select(number, 8)),
                port.en.eq(strobes[number]),
            ]

    def _read(self, m: Module) -> None:
        axi, lite = self.axi, self.lite
        left, is_outside, word = Signal(9), Signal(), Signal.like(self._index(axi.araddr))
        # The port holds a word of the engine until it is taken, and only then may go on.
        is_free, interrupts, issues, comes = Signal(), Signal(), Signal(), Signal()
        lane = Signal.like(self._lane(lite.araddr))
        m.d.comb += [
            is_free.eq(~axi.rvalid | axi.rready),
            lite.arready.eq(is_free & ~comes & ~lite.rvalid),
            interrupts.eq(lite.arvalid & lite.arready),
            axi.arready.eq(left == 0),
            issues.eq((left != 0) & is_free & ~interrupts),
        ]
        with m.If(is_free):
            m.d.sync += axi.rvalid.eq(issues)
        with m.If(issues):
            m.d.sync += [
                left.eq(left - 1),
                word.eq(word + 1),
                axi.rlast.eq(left == 1),
                axi.rresp.eq(Mux(is_outside, _DECODE_ERROR, _OKAY)),
            ]
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [
                left.eq(axi.arlen + 1),
                word.eq(self._index(axi.araddr)),
                is_outside.eq(self._is_outside(axi.araddr)),
                axi.rid.eq(axi.arid),
            ]
        ports = [each.read_port() for each in self.lanes]
        for port in ports:
            m.d.comb += [port.addr.eq(Mux(interrupts, self._index(lite.araddr), word)), port.en.eq(interrupts | issues)]
        m.d.comb += axi.rdata.eq(Cat(port.data for port in ports))
        m.d.sync += comes.eq(interrupts)
        with m.If(lite.rready):
            m.d.sync += lite.rvalid.eq(0)
        with m.If(interrupts):
            m.d.sync += [
                lane.eq(self._lane(lite.araddr)),
                lite.rresp.eq(Mux(self._is_outside(lite.araddr), _DECODE_ERROR, _OKAY)),
            ]
        with m.If(comes):
            words = [axi.rdata.word_select(at, _LITE_BITS) for at in range(self.parameters.bus_width // _LITE_BITS)]
            m.d.sync += [lite.rvalid.eq(1), lite.rdata.eq(Array(words)[lane])]
