"""A serial line with every bit on the pins, and a bridge with a memory and registers behind it."""

from __future__ import annotations

import struct
from types import SimpleNamespace

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.bridge import memory, uart, uart_bridge
from hdl.engine.transport import Region
from hdl.matrix_engine.parameters import EngineParameters

PARTS = SimpleNamespace(uart=uart, uart_bridge=uart_bridge, memory=memory)
BIT, SILENCE = 5, 400
#: The memory, and where the bridge's part of it begins.
STORE, BASE = Region(0x8000, 0x2000), 0x9000
#: The bridge's size of its part: it ends beyond the memory, whose bus then answers with an error, or within it.
BEYOND, WITHIN = 0x2000, 0x800
#: Bytes of the memory from `BASE` on.
SIZE = 0x1000
PARAMETERS = EngineParameters(rows=2, columns=2, address_bits=16, depth=16)
#: Addresses of the bench's registers: one that cannot be written, and how often any was.
READ_ONLY, WRITES = 0xF8, 0xFC


class Line:
    """The host's end of a serial line: what `hdl.engine.serial_line` needs of pyserial's ``Serial``.

    Parameters
    ----------
    ctx
        Of the testbench.
    top : component
        With the pins ``rx`` and ``tx``.
    bit : int
        Cycles of a bit.
    patience : int
        Cycles without a byte after which a read ends.
    """

    def __init__(self, ctx, top, bit=BIT, patience=3000):
        self.ctx, self.top, self.bit, self.patience = ctx, top, bit, patience
        self.tx = top.tx
        ctx.set(top.rx, 1)
        self.received, self.levels, self.beside = bytearray(), [], lambda: None

    def pass_cycles(self, cycles):
        """Let some cycles pass, and listen to the other end."""
        for _ in range(cycles):
            self.beside()
            self.ctx.tick()
            level = self.ctx.get(self.tx)
            if self.levels or not level:
                self.levels.append(level)
                if len(self.levels) == 9 * self.bit + self.bit // 2 + 1:
                    bits = self.levels[self.bit // 2 :: self.bit]
                    assert (bits[0], bits[9]) == (0, 1), "start and stop bit"
                    self.received.append(sum(bit << at for at, bit in enumerate(bits[1:9])))
                    self.levels = []

    def drive(self, level, cycles):
        self.ctx.set(self.top.rx, level)
        self.pass_cycles(cycles)

    def write(self, content):
        for byte in content:
            for level in (0, *(byte >> at & 1 for at in range(8)), 1):
                self.drive(level, self.bit)

    def read(self, size):
        waited, known = 0, 0
        while len(self.received) < size and waited < self.patience:
            waited = 0 if len(self.received) > known else waited + 1
            known = len(self.received)
            self.pass_cycles(1)
        found = bytes(self.received[:size])
        del self.received[:size]
        return found

    def answer(self, content):
        """Return all that comes back for some bytes."""
        self.write(content)
        return self.read(1 << 20)

    def reset_input_buffer(self):
        self.received.clear()

    def close(self):
        pass


class Registers(wiring.Component):
    """64 registers that answer `late` cycles later; `READ_ONLY` answers a write with an error."""

    def __init__(self, signature):
        super().__init__({"bus": Out(signature), "late": In(4)})

    def elaborate(self, platform):
        m = Module()
        bus, words = self.bus, Array(Signal(32, name=f"word_{number}") for number in range(64))
        address, has_address, has_data, data, waited = Signal(6), Signal(), Signal(), Signal(32), Signal(4)
        is_due, is_wrong = waited >= self.late, address == READ_ONLY // 4
        m.d.sync += waited.eq(waited + 1)
        m.d.comb += [
            # The data are taken long before the address, or long after it.
            bus.awready.eq(~has_address & ~bus.bvalid & (has_data | ~self.late[0])),
            bus.wready.eq(~has_data & ~bus.bvalid & (has_address | self.late[0])),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [has_address.eq(1), address.eq(bus.awaddr[2:]), waited.eq(0)]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [has_data.eq(1), data.eq(bus.wdata), waited.eq(0)]
        with m.If(has_address & has_data & is_due):
            m.d.sync += [has_address.eq(0), has_data.eq(0), bus.bvalid.eq(1), bus.bresp.eq(Mux(is_wrong, 2, 0))]
            with m.If(~is_wrong):
                m.d.sync += [words[address].eq(data), words[WRITES // 4].eq(words[WRITES // 4] + 1)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        reads, place = Signal(), Signal(6)
        m.d.comb += bus.arready.eq(~reads & ~bus.rvalid)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [reads.eq(1), place.eq(bus.araddr[2:]), waited.eq(0)]
        with m.If(reads & is_due):
            m.d.sync += [reads.eq(0), bus.rvalid.eq(1), bus.rdata.eq(words[place])]
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        return m


class Bench(wiring.Component):
    """A bridge with registers and memory; the memory's AXI4 side belongs to the testbench.

    While `holds` is 1, the memory does not answer the bridge.
    """

    def __init__(self, parts=PARTS, told=BEYOND):
        self.store = parts.memory.AxiMemory(PARAMETERS, STORE)
        self.bridge = parts.uart_bridge.UartBridge(cycles=BIT, silence=SILENCE, region=Region(BASE, told))
        self.registers = Registers(self.bridge.registers.signature.flip())
        super().__init__(
            {
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "late": In(4),
                "holds": In(1),
                "axi": Out(self.store.axi.signature),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge, m.submodules.store, m.submodules.registers = self.bridge, self.store, self.registers
        wiring.connect(m, self.bridge.registers, self.registers.bus)
        wiring.connect(m, wiring.flipped(self.axi), self.store.axi)
        m.d.comb += [self.bridge.rx.eq(self.rx), self.tx.eq(self.bridge.tx), self.registers.late.eq(self.late)]
        near, far = self.bridge.memory, self.store.lite
        for (name,), member in ((path, member) for path, member, _ in far.signature.flatten(far)):
            source, target = (near, far) if member.flow is In else (far, near)
            value = getattr(source, name)
            is_held = name in ("rvalid", "rready")
            m.d.comb += getattr(target, name).eq(value & ~self.holds if is_held else value)
        return m


class Master:
    """An engine's bus: bursts of reads and writes at once, with pauses. Call it once a cycle, before the clock."""

    def __init__(self, ctx, axi, rng):
        # An interface looks its ports up at every access, which would take most of the time of a run.
        ports = {path[0]: port for path, _, port in axi.signature.flatten(axi)}
        self.ctx, self.axi, self.rng = ctx, SimpleNamespace(**ports), rng
        self.reads, self.writes, self.read, self.answers = [], [], [], []
        self.beats = []

    def burst_read(self, address, words):
        self.reads.append((address, words))

    def burst_write(self, address, words):
        """Words with their strobes."""
        self.writes.append(address)
        self.beats += [(*word, at == len(words) - 1) for at, word in enumerate(words)]

    @property
    def is_idle(self):
        return not (self.reads or self.writes or self.beats)

    def __call__(self):
        ctx, axi, often = self.ctx, self.axi, lambda: int(self.rng.random() < 0.6)
        for name, queue in (("ar", self.reads), ("aw", self.writes)):
            ctx.set(getattr(axi, f"{name}valid"), bool(queue))
        if self.reads:
            ctx.set(axi.araddr, self.reads[0][0])
            ctx.set(axi.arlen, self.reads[0][1] - 1)
        if self.writes:
            ctx.set(axi.awaddr, self.writes[0])
        if self.beats:
            for port, value in zip((axi.wdata, axi.wstrb, axi.wlast), self.beats[0], strict=True):
                ctx.set(port, value)
        ctx.set(axi.wvalid, bool(self.beats))
        ctx.set(axi.rready, often())
        ctx.set(axi.bready, often())
        if ctx.get(axi.rvalid) and ctx.get(axi.rready):
            self.read.append((ctx.get(axi.rdata), ctx.get(axi.rresp), ctx.get(axi.rlast)))
        if ctx.get(axi.bvalid) and ctx.get(axi.bready):
            self.answers.append(ctx.get(axi.bresp))
        for name, queue in (("ar", self.reads), ("aw", self.writes), ("w", self.beats)):
            if queue and ctx.get(getattr(axi, f"{name}ready")):
                queue.pop(0)


def words(*values):
    return struct.pack(f"<{len(values)}I", *values)
