"""The quick simulator is Amaranth's: the same outputs in every cycle, on modules of every kind and on real units."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Assert, Cat, Module, Print, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate, VectorMac
from tools import simulator
from tools.simulator import simulator_of


class EveryKind(wiring.Component):
    """Statements of each kind, in an order that matters."""

    a: In(4)
    b: In(3)
    o: Out(4)
    p: Out(4)
    q: Out(8)
    r: Out(4)
    s: Out(3)

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
                    m.d.comb += [self.q[1:5].eq(self.a), Assert(other[1])]
        m.d.comb += chain[0].eq(one - other)
        for before, after in pairwise(chain):
            m.d.comb += after.eq(before * 3 + 1)
        m.d.comb += [self.o.eq(chain[-1]), self.p.eq(other)]
        m.submodules.memory = memory = Memory(shape=4, depth=8, init=range(8))
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [write.addr.eq(self.b), write.data.eq(one), write.en.eq(self.a[3]), read.addr.eq(other)]
        m.d.comb += self.r.eq(read.data)
        with m.If(self.a == 20):
            m.d.comb += Print("never")
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


def outputs(unit, made_by, cycles):
    """Return the outputs of every cycle on random inputs, after a reset in the middle of another run."""
    ports = [(member.flow, Value.cast(port)) for _, member, port in unit.signature.flatten(unit)]
    inputs, outputs = (Cat(port for flow, port in ports if flow is which) for which in (In, Out))
    found = []

    async def bench(ctx):
        found.clear()
        rng = random.Random(5)
        for _ in range(cycles):
            ctx.set(inputs, rng.getrandbits(len(inputs)))
            found.append(ctx.get(outputs))
            await ctx.tick()

    run = made_by(unit)
    run.add_clock(1e-6)
    run.add_testbench(bench)
    for _ in range(cycles):
        run.advance()
    run.reset()
    run.run()
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_quick_simulator_gives_the_outputs_of_amaranths_in_every_cycle(unit):
    cycles = 300 if unit.startswith("every") else 60
    wanted = outputs(UNITS[unit](), Simulator, cycles)
    assert len(set(wanted)) > 10
    assert outputs(UNITS[unit](), simulator_of, cycles) == wanted


def without_empty_cases(statement, groups, group, part=simulator._part):
    found = part(statement, groups, group)
    if not isinstance(found, simulator.Switch):
        return found
    cases = [case for case in found.cases if case[1]]
    return simulator.Switch(found.test, cases, src_loc=found.src_loc)


def of_one_signal_alone(leaves, groups=simulator._groups):
    return {id(leaf): next(iter(groups([leaf]).values())) for leaf in leaves}


def woken_once(process):
    wake = simulator_wakers(process)
    waits = [True]
    return lambda *change: wake(*change) if waits and waits.pop() else True


simulator_wakers = simulator._waker
FAULTS = {
    "cases that hold nothing are left out": ("_part", without_empty_cases),
    "signals assigned together are not joined": ("_groups", of_one_signal_alone),
    "a process wakes once": ("_waker", woken_once),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_quick_simulator_is_seen(fault, monkeypatch):
    wanted = outputs(EveryKind(), Simulator, 300)
    monkeypatch.setattr(simulator, *FAULTS[fault])
    assert outputs(EveryKind(), simulator_of, 300) != wanted


def test_quick_simulator_writes_no_waveforms(tmp_path):
    run = simulator_of(EveryKind())
    with pytest.raises(NotImplementedError, match=r"writes no waveforms; use amaranth\.sim\.Simulator"):
        run.write_vcd(tmp_path / "waves.vcd").__enter__()
