"""When the multiply-accumulate unit accepts and delivers: every cycle in rotation, waiting on the same register."""

import numpy as np
import pytest
from amaranth.sim import Simulator

import golden
from golden import CBFLOAT16
from hdl import MultiplyAccumulate

from .mac_bench import Product, reduction, run

STAGES = range(1, 9)


def rotation(unit, level, length):
    """One reduction in each of `accumulate_latency` accumulators, the products in turn; and the expected results."""
    rng = np.random.default_rng(8)
    step = 1 if level == 2 else 2
    queues, wanted = [], {}
    for register in range(0, step * unit.accumulate_latency, step):
        a, b = golden.encode(rng.normal(size=(2, length)), CBFLOAT16)
        queues.append(reduction(a, b, register=register, level=level))
        code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=3, return_flags=True)
        wanted[register] = [(int(code), int(flags), 0, register)]
    return [beat for beats in zip(*queues, strict=True) for beat in beats], wanted


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", STAGES)
def test_rotation_accepts_a_product_every_cycle_but_for_one_per_promotion(stages, level):
    unit = MultiplyAccumulate(stages=stages)
    length, chunk = 10, 3
    products, wanted = rotation(unit, level, length)
    done = run(unit, products, chunk=chunk)

    # A chunk that ends takes the cycle `latency` later for its promotion; nothing else costs anything.
    cycle, promotions, expected = 0, set(), []
    for number in range(len(products)):
        while cycle in promotions:
            cycle += 1
        expected.append(cycle)
        k = number // len(wanted)
        if level and (k % chunk == chunk - 1 or k == length - 1):
            promotions.add(cycle + unit.latency)
        cycle += 1
    assert done.accepted_at == expected
    assert {register: done.of(register) for register in wanted} == wanted


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [1, 3, 5, 8])
def test_products_of_one_register_wait_until_the_accumulator_is_written(stages, level):
    unit = MultiplyAccumulate(stages=stages)
    rng = np.random.default_rng(9)
    a, b = golden.encode(rng.normal(size=(2, 9)), CBFLOAT16)
    done = run(unit, reduction(a, b, register=2, level=level))
    assert np.diff(done.accepted_at).tolist() == [unit.accumulate_latency] * 8
    code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=None, return_flags=True)
    assert done.results == [(int(code), int(flags), 0, 2)]


@pytest.mark.parametrize("stages", STAGES)
def test_result_leaves_after_latency_cycles_and_a_promotion_takes_as_many_again(stages):
    unit = MultiplyAccumulate(stages=stages)
    one = Product(CBFLOAT16.one, CBFLOAT16.one, first=True, last=True)
    for level, trips in ((0, 1), (2, 2)):
        done = run(unit, [one._replace(level=level)])
        assert done.left_at == [done.accepted_at[0] + trips * unit.latency]


def test_recommended_depth_has_eight_ranks_and_six_of_them_in_the_loop():
    unit = MultiplyAccumulate()
    assert (unit.stages, unit.latency, unit.accumulate_latency) == (8, 8, 6)
    assert [MultiplyAccumulate(stages=stages).accumulate_latency for stages in STAGES] == [1, 1, 2, 3, 4, 5, 6, 6]


def test_chain_waits_for_the_promotion_of_its_pair():
    # Level 0 on register 0 overwrites the pair to whose odd register a level-2 total is still on its way.
    unit = MultiplyAccumulate(stages=8)
    one = Product(CBFLOAT16.one, CBFLOAT16.one, register=1, level=2, first=True, last=True)
    done = run(unit, [one, one._replace(register=0, level=0)])
    # The promotion enters when its product comes out of the last rank; the chain then waits for the total as usual.
    assert done.accepted_at == [0, unit.latency + unit.accumulate_latency]
    other_pair = run(MultiplyAccumulate(stages=8), [one, one._replace(register=2, level=0)])
    assert other_pair.accepted_at == [0, 1]


@pytest.mark.parametrize("stages", [1, 4, 8])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_result_refused_for_long_stops_everything_and_loses_nothing(stages, level):
    unit = MultiplyAccumulate(stages=stages)
    rng = np.random.default_rng(10)
    products, wanted = [], []
    for number in range(24):
        register = 2 * (number % 8)
        a, b = golden.encode(rng.normal(size=(2, 1 + number % 2)), CBFLOAT16)
        products += reduction(a, b, register=register, level=level)
        code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=4, return_flags=True)
        wanted.append((int(code), int(flags), 0, register))
    refused = range(5, 205)
    done = run(unit, products, chunk=4, take=lambda cycle: cycle not in refused)
    assert sorted(done.results) == sorted(wanted)
    assert all(done.of(register) == [x for x in wanted if x[3] == register] for register in range(0, 16, 2))
    assert not set(done.left_at) & set(refused)
    # What is in flight when the first result is refused fits the ranks; then nothing is accepted any more.
    assert len([cycle for cycle in done.accepted_at if cycle in refused]) <= 2 * unit.latency


def test_refused_result_stays_as_it_is_until_it_is_taken():
    unit = MultiplyAccumulate(stages=2)
    seen = []

    async def testbench(ctx):
        ctx.set(unit.i.payload, {"a": CBFLOAT16.one, "b": CBFLOAT16.one, "first": 1, "last": 1})
        ctx.set(unit.i.valid, 1)
        for _ in range(20):
            await ctx.tick()
            ctx.set(unit.i.payload.a, ctx.get(unit.i.payload.a) + 1)
            seen.append((ctx.get(unit.o.valid), ctx.get(unit.o.payload).result, ctx.get(unit.i.ready)))

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen[1:] == [(1, 0x3F800000, 0)] * 19
