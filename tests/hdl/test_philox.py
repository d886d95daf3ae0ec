"""The generator of random numbers against Random123's known answers, and against golden's on Python ints."""

import numpy as np
import pytest
from amaranth import ClockDomain, Module, ResetSignal, Signal
from amaranth.sim import Simulator

from golden.philox import philox4x32_10
from hdl import Philox4x32

ONES = 0xFFFFFFFF
# counter, key, result: the known answers of Random123's philox4x32 with 10 rounds
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def drawn(count, seed):
    """Counters and keys; one word in four is all zeros or all ones."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**32, (count, 6))
    words = np.where(rng.random(words.shape) < 0.25, rng.choice([0, ONES], words.shape), words)
    return [(tuple(row[:4]), tuple(row[4:])) for row in words.tolist()]


def run(unit, given, takes):
    """Drive all that is given; take a result in the cycles of `takes`; return results and when each was there."""
    results, cycles = [], []

    async def source(ctx):
        ctx.set(unit.i.valid, 1)
        for counter, key in given:
            ctx.set(unit.i.payload, {"counter": counter, "key": key})
            await ctx.tick().until(unit.i.ready)
        ctx.set(unit.i.valid, 0)

    async def sink(ctx):
        cycle = 0
        while len(results) < len(given):
            ctx.set(unit.o.ready, takes[cycle % len(takes)])
            _, _, valid, ready, words = await ctx.tick().sample(unit.o.valid, unit.o.ready, unit.o.payload)
            if valid and ready:
                results.append(tuple(words))
                cycles.append(cycle)
            cycle += 1

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(source)
    simulator.add_testbench(sink)
    simulator.run()
    return results, cycles


@pytest.mark.parametrize("stages", range(1, 11))
def test_philox_gives_random123s_known_answers_and_one_word_a_cycle(stages):
    unit = Philox4x32(stages=stages)
    results, cycles = run(unit, [(counter, key) for counter, key, _ in KNOWN], takes=[1])
    assert results == [result for *_, result in KNOWN]
    assert cycles == [unit.latency + number for number in range(len(KNOWN))]


def test_philox_that_waits_loses_nothing():
    given = drawn(60, 1)
    results, _ = run(Philox4x32(), given, takes=[1, 0, 0, 1, 1, 0, 1])
    assert results == [philox4x32_10(*each) for each in given]


@pytest.mark.parametrize("stages", [1, 3, 10])
def test_philox_result_is_offered_before_anybody_is_ready_for_it_and_a_reset_drops_it(stages):
    before, behind = drawn(2, 2)
    unit = Philox4x32(stages=stages)
    offered = []

    async def bench(ctx):
        async def offer(counter, key):
            ctx.set(unit.i.payload, {"counter": counter, "key": key})
            ctx.set(unit.i.valid, 1)
            await ctx.tick()
            ctx.set(unit.i.valid, 0)
            await ctx.tick().repeat(unit.latency)
            offered.append(tuple(ctx.get(unit.o.payload)) if ctx.get(unit.o.valid) else None)

        await offer(*before)
        # So that there is something behind each rank.
        ctx.set(unit.i.valid, 1)
        ctx.set(unit.o.ready, 1)
        await ctx.tick().repeat(unit.latency)
        ctx.set(unit.o.ready, 0)
        ctx.set(reset, 1)
        ctx.set(unit.i.valid, 0)
        await ctx.tick()
        ctx.set(reset, 0)
        for _ in range(unit.latency + 1):
            assert not ctx.get(unit.o.valid)
            await ctx.tick()
        await offer(*behind)

    top, reset = Module(), Signal()
    top.domains.sync = ClockDomain()
    top.submodules.unit = unit
    top.d.comb += ResetSignal().eq(reset)
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert offered == [philox4x32_10(*each) for each in (before, behind)]


@pytest.mark.parametrize("stages", [0, 11, "10"])
def test_philox_with_bad_stages_says_what_is_allowed(stages):
    with pytest.raises((TypeError, ValueError), match=r"^stages: got .*from 1 to 10"):
        Philox4x32(stages=stages)
