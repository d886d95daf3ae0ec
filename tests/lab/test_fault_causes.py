"""The causes for which a faulty copy is caught: a fault for each, and a fault that has none."""

import contextlib

import numpy as np
import pytest
from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lab.faults.gates import gates_of
from lab.faults.machine import Cause, Machine
from lab.netlists.candidates import candidates
from lab.netlists.design import Design, design_of
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario

PORT = Port(Fields({"payload": 4}), Fields({"payload": 4}))
#: Faults of the last answer, or of all: a register each, which stays 0 without a fault.
ODDITIES = ("slow", "drops", "doubles", "flips", "toggles", "falls", "stuck")
LAST = 15


class Odd(wiring.Component):
    """Returns its input, one word at a time."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        is_odd = {name: Signal(name=name) for name in ODDITIES}
        m.d.sync += [signal.eq(signal & self.i.payload[0]) for signal in is_odd.values()]
        busy, left, again, phase, held = Signal(), Signal(7), Signal(), Signal(), Signal(4)
        is_last = held == LAST
        m.d.sync += phase.eq(~phase)
        m.d.comb += [
            self.i.ready.eq(~busy & ~is_odd["stuck"]),
            self.o.valid.eq(busy & (left == 0) & ~(is_odd["falls"] & phase)),
            self.o.payload.eq(held ^ (is_odd["flips"] & is_last) ^ (is_odd["toggles"] & phase)),
        ]
        with m.If(busy & (left != 0)):
            m.d.sync += left.eq(left - 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [again.eq(~again), busy.eq(is_odd["doubles"] & is_last & ~again)]
        with m.If(self.i.valid & self.i.ready):
            dropped = is_odd["drops"] & (self.i.payload == LAST)
            m.d.sync += [again.eq(0), busy.eq(~dropped), held.eq(self.i.payload), left.eq(Mux(is_odd["slow"], 100, 0))]
        return m


@pytest.fixture(scope="module")
def odd() -> Design:
    return design_of(Odd())


def caught(odd: Design, name: str, cycles: int = 0) -> Cause:
    """Run three words through a copy, whose answers are refused for two cycles of three, and the unit beside it."""
    fault = next(each for each in candidates(odd) if each.what == f"{name} is always 1")
    words = np.array([3, 8, LAST], np.uint64)
    machine = Machine(gates_of(odd, [fault]), PORT, {0: 1})
    machine.run(Scenario("three", words, words, np.arange(3), takes=np.array([False, False, True]), cycles=cycles))
    return Cause(int(machine.caught[1]))


@pytest.mark.turns
@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("drops", Cause.MISSING),
        ("doubles", Cause.UNEXPECTED),
        ("flips", Cause.WRONG),
        ("toggles", Cause.UNSTEADY),
        ("falls", Cause.UNSTEADY),
        ("stuck", Cause.STUCK),
        # The bench waits 400 cycles for an answer: it would not catch one that is 100 cycles late.
        ("slow", Cause.SAME),
    ],
)
def test_copy_is_told_by_its_own_cause_and_a_slower_one_by_none(odd: Design, name: str, cause: Cause) -> None:
    assert caught(odd, name) is cause


def test_slower_copy_is_told_where_the_cycles_are_counted(odd: Design) -> None:
    told = []
    for cycles in range(1, 16):
        # The unit itself passes with the number of its cycles alone.
        with contextlib.suppress(RuntimeError):
            told.append(caught(odd, "slow", cycles))
    assert told == [Cause.CYCLES]
