"""The pace of the multiply-accumulate unit: every cycle in rotation, waiting on the same register."""

import numpy as np
import pytest

import golden
from golden import CBFLOAT16
from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate
from hdl.mac.parameters import DEPTHS

from .mac_bench import Product, reduction, run
from .simulators import simulate, unit_of

ONE = Product(CBFLOAT16.one, CBFLOAT16.one, first=True, last=True)


def holds_a_beat(unit):
    """Whether a beat is held before it is issued, so that one more than is issued has been accepted."""
    return unit.stages >= 9


def promotion_cycles(unit):
    """Cycles between the issues of a product and of its promotion: all ranks except for beat and code."""
    return unit.stages - holds_a_beat(unit) - (unit.stages == 13)


def accepted_at(unit, issued):
    """In which cycles products are accepted that may be issued in these, the first offered in cycle 0."""
    return [0, *(cycle + 1 for cycle in issued[:-1])] if holds_a_beat(unit) else issued


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


@pytest.mark.turns
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", DEPTHS)
def test_rotation_accepts_a_product_every_cycle_but_for_one_per_promotion(stages, level):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    length, chunk = 10, 3
    products, wanted = rotation(unit, level, length)
    done = run(unit, products, chunk=chunk)

    # The promotion of a chunk that ends takes one more cycle; nothing else costs anything.
    cycle, promotions, issued = 0, set(), []
    for number in range(len(products)):
        while cycle in promotions:
            cycle += 1
        issued.append(cycle)
        k = number // len(wanted)
        if level and (k % chunk == chunk - 1 or k == length - 1):
            promotions.add(cycle + promotion_cycles(unit))
        cycle += 1
    assert done.accepted_at == accepted_at(unit, issued)
    assert {register: done.of(register) for register in wanted} == wanted


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", DEPTHS)
def test_products_of_one_register_wait_until_the_accumulator_is_written(stages, level):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    rng = np.random.default_rng(9)
    a, b = golden.encode(rng.normal(size=(2, 9)), CBFLOAT16)
    done = run(unit, reduction(a, b, register=2, level=level))
    assert done.accepted_at == accepted_at(unit, [unit.accumulate_latency * k for k in range(9)])
    code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=None, return_flags=True)
    assert done.results == [(int(code), int(flags), 0, 2)]


@pytest.mark.parametrize("stages", DEPTHS)
def test_result_leaves_after_latency_cycles_and_a_promotion_takes_another_pass(stages):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    assert unit.latency == stages + 1
    for level, promotion in ((0, 0), (1, promotion_cycles(unit)), (2, promotion_cycles(unit))):
        done = run(unit, [ONE._replace(level=level)])
        assert done.left_at == [done.accepted_at[0] + unit.latency + promotion]


@pytest.mark.parametrize("operands", [(CBFLOAT16,), HALF_FORMATS])
def test_recommended_depth_has_thirteen_ranks_and_seven_of_them_in_the_loop(operands):
    unit = MultiplyAccumulate(operands=operands)
    assert (unit.stages, unit.latency, unit.accumulate_latency) == (13, 14, 7)


def test_accumulate_latency_counts_the_ranks_of_the_loop():
    assert [MultiplyAccumulate(stages=stages).accumulate_latency for stages in DEPTHS] == [
        2, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7, 7, 7,
    ]  # fmt: skip


@pytest.mark.turns
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("stages", DEPTHS)
@pytest.mark.parametrize("register", [0, 2])
def test_chain_waits_until_everything_of_other_levels_has_left(stages, level, register):
    # Level 0 on register 0 overwrites the pair to whose odd register a level-2 total is still on its way; products of
    # other pairs wait as long.
    unit = unit_of(MultiplyAccumulate, stages=stages)
    other = ONE._replace(register=1 if level == 2 else 0, level=level)
    chain = ONE._replace(register=register, level=0)
    done = run(unit, [other, chain, chain._replace(register=4)])
    # The product passes, then its promotion. The unit knows one cycle after the promotion's last rank that it has gone;
    # a held beat sees this one cycle later.
    left = promotion_cycles(unit) + stages + 2 + holds_a_beat(unit)
    assert done.accepted_at == accepted_at(unit, [0, left, left + 1])
    assert sorted(result.result for result in done.results) == sorted(
        [0x3F800000, 0x3F800000, CBFLOAT16.one if level == 2 else 0x3F800000]
    )


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("stages", DEPTHS)
def test_product_of_another_level_does_not_wait_for_a_chain(stages, level):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    chain, other = ONE._replace(level=0, register=2), ONE._replace(level=level)
    done = run(unit, [chain, other, other._replace(register=4)])
    # With one rank the third product finds the promotion of the second in its place.
    assert done.accepted_at == [0, 1, 3 if promotion_cycles(unit) == 1 else 2]


@pytest.mark.parametrize("stages", [3, 11])
def test_product_without_a_result_enters_while_the_queue_of_results_is_full(stages):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    places, further = unit.parameters.results, 24
    answered = [ONE._replace(register=2 * (at % 8)) for at in range(places)]
    silent = [ONE._replace(register=2 * (at % 8), first=False, last=False) for at in range(further)]
    done = run(unit, [*answered, *silent, ONE], take=lambda cycle: cycle >= 70)
    assert done.accepted_at[: places + further] == list(range(places + further))
    assert len(done.results) == places + 1
    assert min(done.left_at) == 70


@pytest.mark.parametrize("stages", DEPTHS)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_result_refused_for_long_loses_nothing(stages, level):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    rng = np.random.default_rng(10)
    products, wanted = [], []
    for number in range(48):
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
    assert max(done.accepted_at) > 205


def waiting(unit, beat):
    """Products with results for all places of the queue, then others without, then `beat`; in rotation."""
    registers = [2 * (number % 8) for number in range(unit.parameters.results)]
    full = [ONE._replace(level=0, register=register) for register in registers]
    silent = [ONE._replace(level=0, register=2 * (number % 8), last=False) for number in range(40)]
    return full, silent, [beat, ONE._replace(level=0, register=14)]


@pytest.mark.parametrize("stages", DEPTHS)
@pytest.mark.parametrize(
    "beat",
    [ONE._replace(level=0, register=0), ONE._replace(level=0, register=1), ONE._replace(level=3, last=False)],
    ids=["last", "misaligned", "unsupported"],
)
def test_only_products_with_results_wait_while_the_queue_has_no_place_left(stages, beat):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    full, silent, blocked = waiting(unit, beat)
    done = run(unit, [*full, *silent, *blocked], take=lambda cycle: cycle >= 200)
    others = len(full) + len(silent)
    # A place is free again two cycles after a result has been taken. A held beat sees this one cycle later, and needs
    # one place more.
    issued = 202 + holds_a_beat(unit)
    assert done.accepted_at == accepted_at(unit, [*range(others), issued, issued + 1])
    assert done.left_at[: len(full)] == list(range(200, 200 + len(full)))
    assert len(done.results) == len(full) + 2
    is_refused = beat.level == 3 or beat.register == 1
    assert [bool(result.error) for result in done.results] == [False] * len(full) + [is_refused, False]


@pytest.mark.parametrize("stages", DEPTHS)
def test_result_in_every_cycle_finds_a_place_in_the_queue(stages):
    # Depths 1, 2, 3, 6 and 7 stopped for want of places, though every result was taken at once.
    unit = unit_of(MultiplyAccumulate, stages=stages)
    products = [ONE._replace(level=0, register=2 * (number % 8)) for number in range(40)]
    done = run(unit, products)
    assert done.accepted_at == list(range(40))
    assert done.left_at == [cycle + unit.latency for cycle in done.accepted_at]


@pytest.mark.parametrize("stages", [2, 9])
def test_refused_result_stays_as_it_is_until_it_is_taken(stages):
    unit = MultiplyAccumulate(stages=stages)
    cycles = 60
    seen = []

    async def testbench(ctx):
        ctx.set(unit.i.payload, {"a": CBFLOAT16.one, "b": CBFLOAT16.one, "first": 1, "last": 1})
        ctx.set(unit.i.valid, 1)
        for cycle in range(cycles):
            seen.append((ctx.get(unit.o.valid), ctx.get(unit.o.payload).result))
            await ctx.tick()
            # Later products are others, of registers in turn.
            ctx.set(unit.i.payload.a, ctx.get(unit.i.payload.a) + 1)
            ctx.set(unit.i.payload.register, 2 * (cycle % 8))

    simulate(unit, testbench)
    assert seen == [(0, 0)] * unit.latency + [(1, 0x3F800000)] * (cycles - unit.latency)


@pytest.mark.parametrize("stages", range(9, 13))
def test_ready_of_a_unit_that_holds_a_beat_does_not_depend_on_what_is_offered(stages):
    unit = MultiplyAccumulate(stages=stages)
    seen = []

    async def testbench(ctx):
        ctx.set(unit.i.valid, 1)
        for cycle in range(60):
            answers = set()
            for beat in (ONE, ONE._replace(register=4, level=2), ONE._replace(level=3, last=False), ONE._replace(b=0)):
                fields = beat._asdict()
                ctx.set(unit.i.payload, {key: fields[key] for key, part in unit.i.payload.shape() if part.width})
                for valid in (0, 1):
                    ctx.set(unit.i.valid, valid)
                    answers.add(ctx.get(unit.i.ready))
            # A product of register 0 in two cycles of three, whose results nobody takes.
            ctx.set(unit.i.payload.register, 0)
            ctx.set(unit.i.valid, cycle % 3 != 2)
            seen.append(answers)
            await ctx.tick()

    simulate(unit, testbench)
    assert {0} in seen
    assert {1} in seen
    assert {0, 1} not in seen
