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
                    m.d.comb += [self.q[1:5].eq(self.a), Assert(other[1])]
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
        # Signals in halves: one of two modules, and two of a clock and of none, each of which the other's clock reads.
        m.submodules.half = half = Module()
        half.d.comb += self.u[:2].eq(self.a)
        m.d.comb += [self.u[2:].eq(self.b), self.v[2:].eq(self.b)]
        m.d.sync += self.v[:2].eq(self.w + self.a)
        half.d.comb += self.w[2:].eq(self.a)
        half.d.sync += self.w[:2].eq(self.v + self.w)
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


def waking_no_two(slot, waker, add=simulator._Slot.add_waker):
    if not (isinstance(waker, simulator._Reader) and slot.readers):
        add(slot, waker)


def settled_by_one_pass(engine):
    for level in engine._levels:
        for process in level:
            process.is_queued = False
            process.run()
    for level in engine._levels:
        for process in level:
            process.is_queued = False
        level.clear()


def whole(slot, value, mask=~0, update=simulator._Wire.update):
    update(slot, value)


def of_the_first_alike(code, names, link=simulator._link):
    link(code, names)
    run = names["run"]
    names["run"] = FIRST.setdefault(run.__code__, run)


FIRST = {}
FAULTS = {
    "processes of the same code have the same signals": (simulator, "_link", of_the_first_alike),
    "cases that hold nothing are left out": (simulator, "_part", without_empty_cases),
    "signals assigned together are not joined": (simulator, "_groups", of_one_signal_alone),
    "a signal wakes only the first that reads it": (simulator._Slot, "add_waker", waking_no_two),
    "a loop of processes runs once": (simulator._Engine, "_settle", settled_by_one_pass),
    "a part of a signal overwrites the rest": (simulator._Wire, "update", whole),
    "signals of a clock are seen at once": (simulator._Compiler, "_driven", lambda *_, is_comb: []),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_quick_simulator_is_seen(fault, monkeypatch):
    wanted = outputs(EveryKind(), Simulator, 300)
    monkeypatch.setattr(*FAULTS[fault])
    assert outputs(EveryKind(), simulator_of, 300) != wanted


def test_quick_simulator_writes_no_waveforms(tmp_path):
    run = simulator_of(EveryKind())
    with pytest.raises(NotImplementedError, match=r"writes no waveforms; use amaranth\.sim\.Simulator"):
        run.write_vcd(tmp_path / "waves.vcd").__enter__()
