# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The UART bridge: registers and memory behind a serial line, by the protocol of `hdl.engine.frames`."""

from __future__ import annotations

from amaranth import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from hdl.axi_lite import axi_lite_ports
from hdl.bridge.uart import UartReceiver, UartTransmitter
from hdl.engine.frames import HELLO_WORDS, MAGIC, MOST_WORDS, Operation, Status
from hdl.engine.transport import Region
from hdl.matrix_engine.registers import ADDRESS_BITS

__all__ = ["UartBridge", "lite_signature"]

_WORD_BYTES = 4
_HEAD_BYTES = 7
#: The largest size that ``HELLO`` can tell.
_MOST_SIZE = (1 << 32) - _WORD_BYTES


def lite_signature(address_bits: int) -> wiring.Signature:
    """Return the ports of an AXI4-Lite bus of 32 data bits on the subordinate's side."""
    address = In(address_bits)
    return wiring.Signature({**axi_lite_ports(), "awaddr": address, "araddr": address})


class UartBridge(wiring.Component):
    """Serve requests of the driver: read and write registers and memory, one word after the other.

    ::

        rx -> UartReceiver -> request: operation, address, count -> word -> access -> registers (AXI4-Lite)
                   '-> CRC-8                                         |  '<--------'-> memory    (AXI4-Lite)
        tx <- UartTransmitter <- status, words, CRC-8 <--------------'

    A byte that comes while a word is being written is lost, as if on the line: a bus must answer within the time of a
    byte. If a word in the middle of an answer cannot be read, its check is made wrong, so that the driver does not take
    it.

    Parameters
    ----------
    cycles : int
        Clock cycles of a bit on the line, at least 4.
    silence : int
        Clock cycles in `hdl.engine.frames.SILENCE`.
    region : Region
        The memory behind the bridge, as the engine sees it. No word outside of it is asked for.

    Attributes
    ----------
    rx, tx : in, out
        The line.
    registers : AXI4-Lite manager
        Its addresses are those of the engine's registers.
    memory : AXI4-Lite manager
        Its addresses are those of the engine's bus, 32 bits.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, *, cycles: int, silence: int, region: Region) -> None:
        if silence < 1:
            raise ValueError(f"silence: got {silence}, must be at least 1 cycle")
        base, size = region
        if base % _WORD_BYTES or size % _WORD_BYTES or not 0 <= base < base + min(size, _MOST_SIZE) <= 1 << 32:
            raise ValueError(f"region: got {region}, must be whole words below 2**32, at most {_MOST_SIZE} bytes")
        self.cycles, self.silence, self.region = cycles, silence, region
        self.receiver, self.transmitter = UartReceiver(cycles), UartTransmitter(cycles)
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "registers": In(lite_signature(ADDRESS_BITS)),
                "memory": In(lite_signature(32)),
            }
        )
        self.request = Signal(data.StructLayout({"operation": 8, "address": 32, "count": 16}))
        self.word = Signal(32)
        #: A word is on its way; it has come, without or with an error.
        self.start, self.busy, self.done, self.fails = Signal(), Signal(), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.receiver, m.submodules.transmitter = receiver, transmitter = self.receiver, self.transmitter
        m.submodules.crc = crc = catalog.CRC8_SMBUS(data_width=8).create()
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        request, head, word = self.request, self.request.as_value(), self.word
        is_one_of = request.operation.matches
        reads = is_one_of(Operation.READ_REGISTER, Operation.READ_MEMORY)
        writes = is_one_of(Operation.WRITE_REGISTER, Operation.WRITE_MEMORY)
        in_memory = is_one_of(Operation.READ_MEMORY, Operation.WRITE_MEMORY)
        is_hello = is_one_of(Operation.HELLO)
        self._access(m, writes, in_memory)

        position, status, spoiled = Signal(range(_HEAD_BYTES)), Signal(Status), Signal()
        listens, silent = Signal(), Signal(range(self.silence + 1))
        takes, sends, is_allowed, is_inside = Signal(), Signal(), Signal(), Signal()
        is_last, (base, size) = request.count == 1, self.region
        most = Mux(is_hello, 0, Mux(in_memory, MOST_WORDS, 1))
        m.d.comb += [
            takes.eq(listens & receiver.valid & ~self.busy),
            crc.valid.eq(takes | sends),
            crc.data.eq(Mux(takes, receiver.byte, transmitter.i.payload)),
            sends.eq(transmitter.i.valid & transmitter.i.ready),
            is_allowed.eq(
                (is_hello | reads | writes)
                & (request.address[:2] == 0)
                & (request.count <= most)
                & ((request.count != 0) | is_hello)
            ),
            is_inside.eq(
                Mux(
                    in_memory,
                    (request.address >= base) & (request.address + _WORD_BYTES * request.count <= base + size),
                    (request.address < 1 << ADDRESS_BITS) | is_hello,
                )
            ),
        ]
        m.d.sync += silent.eq(silent + 1)
        with m.If(~listens | receiver.valid):
            m.d.sync += silent.eq(0)
        with m.If(self.done & self.fails):
            m.d.sync += status.eq(Status.BUS_ERROR)

        def listen() -> None:
            """Wait for bytes in this state, and forget the request after a silence."""
            m.d.comb += listens.eq(1)
            with m.If(silent == self.silence):
                m.d.sync += position.eq(0)
                m.next = "HEAD"

        with m.FSM():
            with m.State("HEAD"):
                listen()
                m.d.comb += crc.start.eq(position == 0)
                with m.If(takes):
                    m.d.sync += [
                        head.eq(_shifted(head, receiver.byte)),
                        position.eq(position + 1),
                    ]
                    with m.If(position == _HEAD_BYTES - 1):
                        m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.sync += [
                    position.eq(0),
                    status.eq(Mux(is_inside, Status.DONE, Status.BUS_ERROR)),
                    spoiled.eq(0),
                ]
                with m.If(is_hello):
                    m.d.sync += request.count.eq(HELLO_WORDS)
                m.next = "CHECK"
                with m.If(writes):
                    m.next = "WORDS"
                with m.If(~is_allowed):
                    m.d.sync += status.eq(Status.REFUSED)
                    m.next = "STATUS"
            with m.State("WORDS"):
                listen()
                with m.If(takes):
                    m.d.sync += [word.eq(_shifted(word, receiver.byte)), position.eq(position + 1)]
                    with m.If(position == _WORD_BYTES - 1):
                        m.d.sync += [position.eq(0), request.count.eq(request.count - 1)]
                        m.d.comb += self.start.eq(in_memory & (status == Status.DONE))
                        with m.If(is_last):
                            m.next = "CHECK"
            with m.State("CHECK"):
                listen()
                with m.If(takes):
                    m.next = "DECIDE"
            with m.State("DECIDE"):
                m.next = "STATUS"
                with m.If(~crc.match_detected):
                    m.d.sync += status.eq(Status.DAMAGED)
                with m.Elif((status == Status.DONE) & (reads | (writes & ~in_memory))):
                    m.d.comb += self.start.eq(1)
                    m.next = "WAIT"
                with m.Elif(is_hello):
                    m.d.sync += word.eq(MAGIC)
            with m.State("WAIT"):
                with m.If(self.done):
                    m.next = "STATUS"
            with m.State("STATUS"):
                m.d.comb += [transmitter.i.valid.eq(1), transmitter.i.payload.eq(status), crc.start.eq(1)]
                with m.If(sends):
                    m.next = "END"
                    with m.If((status == Status.DONE) & ~writes):
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [transmitter.i.valid.eq(~self.busy), transmitter.i.payload.eq(word)]
                with m.If(self.done & self.fails):
                    m.d.sync += spoiled.eq(1)
                with m.If(sends):
                    m.d.sync += [word.eq(_shifted(word, C(0, 8))), position.eq(position + 1)]
                    with m.If(position == _WORD_BYTES - 1):
                        m.d.sync += [position.eq(0), request.count.eq(request.count - 1)]
                        with m.If(is_last):
                            m.next = "END"
                        with m.Elif(is_hello):
                            m.d.sync += word.eq(Mux(request.count == HELLO_WORDS, base, min(size, _MOST_SIZE)))
                        with m.Else():
                            m.d.comb += self.start.eq(1)
            with m.State("END"):
                m.d.comb += [transmitter.i.valid.eq(1), transmitter.i.payload.eq(crc.crc ^ spoiled.replicate(8))]
                with m.If(sends):
                    m.next = "HEAD"
                    with m.If(status == Status.REFUSED):
                        m.next = "IGNORE"
            with m.State("IGNORE"):
                listen()
        return m

    def _access(self, m: Module, writes: Value, in_memory: Value) -> None:
        """Read or write one word after `start`, and go on to the next address."""
        asks, gives = Signal(), Signal()  # address and data that no bus has taken yet
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), asks.eq(1), gives.eq(writes)]
        for bus, is_chosen in ((self.registers, ~in_memory), (self.memory, in_memory)):
            m.d.comb += [
                bus.awaddr.eq(self.request.address),
                bus.araddr.eq(self.request.address),
                bus.awvalid.eq(is_chosen & asks & writes),
                bus.arvalid.eq(is_chosen & asks & ~writes),
                bus.wdata.eq(self.word),
                bus.wstrb.eq(-1),
                bus.wvalid.eq(is_chosen & gives),
                bus.bready.eq(is_chosen & self.busy),
                bus.rready.eq(is_chosen & self.busy),
            ]
            with m.If(is_chosen & self.busy):
                with m.If(Mux(writes, bus.awready, bus.arready)):
                    m.d.sync += asks.eq(0)
                with m.If(bus.wready):
                    m.d.sync += gives.eq(0)
                m.d.comb += [
                    self.done.eq(Mux(writes, bus.bvalid, bus.rvalid)),
                    self.fails.eq(Mux(writes, bus.bresp[1], bus.rresp[1])),
                ]
                with m.If(self.done & ~writes):
                    m.d.sync += self.word.eq(bus.rdata)
        with m.If(self.done):
            m.d.sync += [self.busy.eq(0), self.request.address.eq(self.request.address + _WORD_BYTES)]


def _shifted(register: Value, byte: Value) -> Value:
    """Return a register with a byte shifted in at the top: the line brings the lowest byte first."""
    return Cat(register[8:], byte)
