"""The compiled simulator gives the outputs of Amaranth's in every cycle, on modules of every kind and on real units."""

import random
import re
from itertools import pairwise

import pytest
from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate, VectorMac
from tools.simulator import Bench, CompiledSimulator


class EveryKind(wiring.Component):
    """Statements of each kind, in an order that matters."""

    a: In(4)
    b: In(3)
    o: Out(4)
    p: Out(4)
    q: Out(8)
    r: Out(4)
    s: Out(3)
    t: Out(4)
    u: Out(4)
    v: Out(4)
    w: Out(4)

    def elaborate(self, platform):
        m = Module()
        one, other, chain = Signal(4), Signal(4, init=9), [Signal(4, name=f"chain_{k}") for k in range(5)]
        m.d.comb += [one.eq(self.a + 1), other.eq(one ^ self.b)]
        with m.Switch(self.b):
            with m.Case(1):  # nothing of `one`, which keeps its value here though the default would change it
                m.d.comb += other.eq(3)
            with m.Case("1-0"):
                m.d.comb += Cat(one[:2], other[2:]).eq(self.a)  # joins the two
            with m.Case():
                m.d.comb += self.q[6:].eq(3)
            with m.Default():
                m.d.comb += one.eq(self.a)
                with m.If(self.a[0]):
                    m.d.comb += self.q[:2].eq(2)
                with m.Elif(other[1]):
                    m.d.comb += self.q[1:5].eq(self.a)
        m.d.comb += chain[0].eq(one - other)
        for before, after in pairwise(chain):
            m.d.comb += after.eq(before * 3 + 1)
        m.d.comb += [self.o.eq(chain[-1]), self.p.eq(other)]
        m.submodules.memory = memory = Memory(shape=4, depth=8, init=range(8))
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [write.addr.eq(self.b), write.data.eq(one), write.en.eq(self.a[3]), read.addr.eq(other)]
        m.d.comb += self.r.eq(read.data)
        # Each of two signals reads a part of the other.
        to, fro = Signal(2), Signal(2)
        m.d.comb += [to.eq(Cat(fro[1], self.a[2])), fro.eq(Cat(to[0], to[1])), self.t.eq(Cat(to, fro))]
        # Signals in halves: one with halves in two modules; two with one half clocked and one not, each of which feeds
        # the clocked half of the other.
        m.submodules.half = half = Module()
        half.d.comb += self.u[:2].eq(self.a)
        m.d.comb += [self.u[2:].eq(self.b), self.v[2:].eq(self.b)]
        m.d.sync += self.v[:2].eq(self.w + self.a)
        half.d.comb += self.w[2:].eq(self.a)
        half.d.sync += self.w[:2].eq(self.v + self.w)
        count = Signal(3)
        m.d.sync += count.eq(count + self.a)
        m.d.comb += self.s.eq(count)
        m.d.comb += self.s[2].eq(one[0])  # the last assignment wins
        return m


UNITS = {
    "every kind of statement": EveryKind,
    "scalar": lambda: MultiplyAccumulate(stages=1, registers=4, operands=HALF_FORMATS),
    "vector": lambda: VectorMac(lanes=2, stages=3, registers=8),
}


def in_amaranth(unit, testbench):
    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def compiled(unit, testbench):
    """Run it twice, the second time from power-up again."""
    simulator = CompiledSimulator(unit)
    simulator.run(testbench)
    simulator.run(testbench)


def outputs(unit, simulate, cycles):
    """Return the outputs of every cycle on random inputs, all at once and one by one."""
    ports = [(member.flow, port) for _, member, port in unit.signature.flatten(unit)]
    inputs = Cat(Value.cast(port) for flow, port in ports if flow is In)
    found = []

    async def bench(ctx):
        found.clear()
        rng = random.Random(5)
        for _ in range(cycles):
            ctx.set(inputs, rng.getrandbits(len(inputs)))
            one = next(port for flow, port in ports if flow is In)
            ctx.set(Value.cast(one)[:1], rng.getrandbits(1))
            # `get` of a part of an input, of a record, and of outputs that follow the inputs without a clock.
            found.append([ctx.get(inputs[3:9]), *(ctx.get(port) for flow, port in ports)])
            await ctx.tick()

    simulate(unit, bench)
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_compiled_simulator_gives_the_outputs_of_amaranths_in_every_cycle(unit):
    cycles = 300 if unit.startswith("every") else 60
    wanted = outputs(UNITS[unit](), in_amaranth, cycles)
    assert len(set(map(str, wanted))) > 10
    assert outputs(UNITS[unit](), compiled, cycles) == wanted


def forgotten(bench, expression, value, drive=Bench.set):
    settled = bench._is_settled
    drive(bench, expression, value)
    bench._is_settled = settled


def clobbering(bench, expression, value, drive=Bench.set):
    if len(expression) == 1:
        drive(bench, expression.value, 0)
    drive(bench, expression, value)


def without_an_edge(bench, tick=Bench.tick):
    return bench.delay(0)


FAULTS = {
    "a value that is set changes nothing before the next edge": ("set", forgotten),
    "a part of an input clears the rest": ("set", clobbering),
    "the clock stands still": ("tick", without_an_edge),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_compiled_simulator_is_seen(fault, monkeypatch):
    wanted = outputs(EveryKind(), in_amaranth, 100)
    monkeypatch.setattr(Bench, *FAULTS[fault])
    assert outputs(EveryKind(), compiled, 100) != wanted


def test_compiled_simulator_refuses_what_is_no_port():
    async def bench(ctx):
        ctx.get(Signal(3))

    with pytest.raises(TypeError, match=re.escape("expression: got (sig $signal), must be a port, a part of one")):
        CompiledSimulator(EveryKind()).run(bench)
