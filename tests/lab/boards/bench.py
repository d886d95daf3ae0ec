"""A small round, units with a fault, and the simulation of the self-test."""

from amaranth import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl import MultiplyAccumulate
from lab.boards.expectation import expect
from lab.boards.plan import Plan
from lab.boards.self_test import SelfTest

from ...hdl.simulators import simulate

#: Every level meets every kind of operand, and both registers of a pair are used.
SMALL = Plan(windows=12, length=7, chunk=3)
SIGNATURE = expect(SMALL).signature


class Faulty(wiring.Component):
    """A multiply-accumulate unit whose answer number `number` is lost, or has fields with some bits flipped.

    A testbench says which by setting the signals of `fault`, so that all faults share one simulator.
    """

    def __init__(self):
        self.unit = MultiplyAccumulate()
        layout = self.unit.o.payload.shape()
        self.masks = {name: Signal(layout[name].width) for name in ("result", "flags", "register", "error")}
        self.fault = {"number": Signal(16), "lost": Signal(), **self.masks}
        super().__init__(
            {
                "i": In(stream.Signature(self.unit.i.payload.shape())),
                "o": Out(stream.Signature(self.unit.o.payload.shape())),
                "chunk": In(self.unit.chunk_bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        wiring.connect(m, wiring.flipped(self.i), unit.i)
        count = m.submodules.count = _Counter(unit.o)
        is_faulty = count.value == self.fault["number"]
        m.d.comb += [
            unit.chunk.eq(self.chunk),
            self.o.payload.eq(unit.o.payload),
            self.o.valid.eq(unit.o.valid),
            unit.o.ready.eq(self.o.ready),
        ]
        with m.If(is_faulty):
            with m.If(self.fault["lost"]):
                m.d.comb += [self.o.valid.eq(0), unit.o.ready.eq(1)]
            for field, mask in self.masks.items():
                changed, right = (Value.cast(getattr(payload, field)) for payload in (self.o.payload, unit.o.payload))
                m.d.comb += changed.eq(right ^ mask)
        return m


class _Counter(wiring.Component):
    """Count what goes through a stream."""

    value: Out(16)

    def __init__(self, watched):
        self.watched = watched
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        with m.If(self.watched.valid & self.watched.ready):
            m.d.sync += self.value.eq(self.value + 1)
        return m


def rounds(test: SelfTest, count: int = 1, limit: int = 20_000, **fault: int) -> list[tuple[int, bool]]:
    """Simulate some rounds; return the signature of each and whether it passed. Only a `Faulty` unit has a fault."""
    ended = []

    async def testbench(ctx):
        for name, value in fault.items():
            ctx.set(test.unit.fault[name], value)
        ctx.set(test.proceed, 1)
        for _ in range(limit):
            await ctx.tick()
            if ctx.get(test.done):
                ended.append((ctx.get(test.found), bool(ctx.get(test.passed))))
                if len(ended) == count:
                    return

    simulate(test, testbench, *getattr(test.unit, "fault", {}).values())
    return ended
