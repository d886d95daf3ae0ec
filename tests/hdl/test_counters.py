"""The counters of a unit: values, delays, clears, the largest value, and command line and Verilog."""

import itertools

import pytest
from amaranth.sim import Simulator

import golden
from golden import CBFLOAT16, Rounding
from golden.counts import Events
from golden.flags import EVENTS
from hdl import MultiplyAccumulate, VectorMac
from hdl.cli import main
from hdl.mac.counters import COUNTER_BITS, KINDS, Counter, Turns
from sim.counts import COUNTERS
from sim.stimulus.counted import counts_of_segment
from sim.stimulus.counted_events import countable, event_reductions
from sim.stimulus.reductions import Segment

from .mac_bench import reduction, run
from .simulators import simulate, unit_of

LARGEST = (1 << COUNTER_BITS) - 1
SMALL = {"registers": 8, "stages": 3, "counters": True}


def shown(ctx, unit):
    """All counters, in the order of `sim.counts.COUNTERS`."""
    return [ctx.get(unit.counts[kind][name]) for kind in KINDS for name in ("steps", *EVENTS)]


def wanted(a, b, level, chunk=None):
    *_, counts = golden.reference.dot(a, b, operand="cbfloat16", level=level, chunk=chunk, counts=True)
    return [getattr(events, name) for events in (counts.products, counts.promotions) for name in ("steps", *EVENTS)]


def code(value):
    return int(golden.encode(value, "cbfloat16"))


def drive(unit, products, then, chunk=0):
    """Offer products, take results, and call ``then`` with the cycles since the last result was offered."""

    async def bench(ctx):
        waiting, offered, since = list(products), 0, 0
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.chunk, chunk)
        expected = sum(product.last for product in products)
        for _ in range(200 + 20 * len(products)):
            if waiting:
                ctx.set(unit.i.payload, {name: getattr(waiting[0], name) for name in unit.i.payload.shape().members})
            ctx.set(unit.i.valid, bool(waiting))
            offered += ctx.get(unit.o.valid)
            if offered == expected:
                then(ctx, since)
                since += 1
            if since > 3:
                break
            if waiting and ctx.get(unit.i.ready):
                waiting.pop(0)
            await ctx.tick()
        assert since > 2

    simulate(unit, bench)


def test_counters_are_named_as_goldens_events():
    assert tuple(f"{kind}.{name}" for kind in KINDS for name in ("steps", *EVENTS)) == COUNTERS
    assert tuple(Events.__annotations__) == ("steps", *EVENTS)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [3, 11, 13])
def test_counters_two_cycles_after_a_result_is_offered_are_goldens(stages, level):
    unit = unit_of(MultiplyAccumulate, registers=8, stages=stages, counters=True)
    a = [code(x) for x in (256.0, 0.0625, -0.0625, 3.0, 1e9)] + [0xFE00]
    b = [code(x) for x in (1.0, 0.0625, 0.0625, 1.25, 1e9)] + [0]
    seen = {}
    drive(unit, reduction(a, b, level=level), lambda ctx, since: seen.setdefault(since, shown(ctx, unit)))
    assert seen[2] == seen[3] == wanted(a, b, level)
    assert seen[2][0] == 6


def test_counters_stop_at_the_largest_value_of_32_bits_and_go_on_after_a_clear():
    unit = MultiplyAccumulate(**SMALL)
    counting = unit.counting
    assert counting is not None
    one = code(1.0)

    async def bench(ctx):
        # Their values after almost as many steps as can be counted.
        for part in counting.parts.values():
            ctx.set(part.low, (LARGEST - 2) & (1 << part.low_bits) - 1)
            ctx.set(part.high, LARGEST >> part.low_bits)
            ctx.set(part.next_high, 0)
            ctx.set(part.carry, 1)
            ctx.set(part.is_near, 1)
        ctx.set(unit.o.ready, 1)
        ctx.set(unit.i.payload, {"a": one, "b": one, "first": 1, "last": 1})
        ctx.set(unit.i.valid, 1)
        counts = []
        for cycle in range(60):
            ctx.set(unit.clear_counts, cycle == 40)
            counts.append(ctx.get(unit.counts.products.steps))
            await ctx.tick()
        changed = [count for at, count in enumerate(counts[:41]) if not at or count != counts[at - 1]]
        assert changed == [LARGEST - 2, LARGEST - 1, LARGEST]
        assert counts[41] in (0, 1)
        assert 2 < counts[59] < 20

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("most", [1, 3, 8])
@pytest.mark.parametrize("bits", [5, 8])
def test_counter_of_a_few_bits_counts_as_far_as_it_can(most, bits):
    counter = Counter(most, bits)

    async def bench(ctx):
        total = 0
        for cycle in range(400):
            more, clear = (cycle * 7) % (most + 1), cycle % 150 == 120
            ctx.set(counter.more, more)
            ctx.set(counter.clear, clear)
            ctx.set(counter.turn, not counter.high_bits or cycle % counter.high_bits == 0)
            assert ctx.get(counter.value) == total
            total = min((0 if clear else total) + more, (1 << bits) - 1)
            await ctx.tick()

    simulate(counter, bench)


@pytest.mark.parametrize("period", [2, 3, 26])
def test_turns_come_once_in_a_period(period):
    turns = Turns(period)

    async def bench(ctx):
        seen = []
        for _ in range(4 * period):
            seen.append(ctx.get(turns.turn))
            await ctx.tick()
        assert seen == [cycle % period == period - 1 for cycle in range(4 * period)]

    simulate(turns, bench)


@pytest.mark.parametrize(
    ("stages", "mode"), [*((3, mode) for mode in Rounding), (11, Rounding.TOWARD_ZERO), (11, Rounding.STOCHASTIC)]
)
def test_counters_of_a_unit_of_every_mode_are_goldens_in_each(stages, mode):
    unit = unit_of(MultiplyAccumulate, roundings=tuple(Rounding), random_bits=4, stages=stages, counters=True)
    met = set()
    for chunk, random in itertools.product((0, 1), (0, 15) if mode is Rounding.STOCHASTIC else (0,)):
        products, counts = [], [0] * len(COUNTERS)
        for level in (0, 1, 2):
            for a, b, _ in event_reductions(CBFLOAT16, level):
                brought = {"modes": [mode.value] * len(a), "random": [random] * len(a)}
                one = Segment(0, level, a, b, chunk=chunk, **brought, random_promotion=[random] * len(a))
                counts = [*map(sum, zip(counts, counts_of_segment(one, CBFLOAT16, random_bits=4), strict=True))]
                products += reduction(a, b, level=level, rounding=mode.value, random=random, random_promotion=random)
        seen = {}
        drive(unit, products, lambda ctx, since, seen=seen: seen.setdefault(since, shown(ctx, unit)), chunk)
        assert seen[3] == counts
        met |= {name for name, count in zip(COUNTERS, counts, strict=True) if count}
    assert met == set().union(*(countable(CBFLOAT16, level) for level in (0, 1, 2)))


@pytest.mark.parametrize("kind", [MultiplyAccumulate, VectorMac])
def test_counters_without_chunks_leave_promotions_at_0(kind):
    unit = kind(levels=(0,), counters=True)
    assert {name for name, _ in unit.counting.parts} == {"products"}


def test_counters_of_a_unit_without_flags_are_those_of_one_with_flags():
    unit = unit_of(MultiplyAccumulate, flags=False, **SMALL)
    a, b = [0x7C00, 0x7BFF], [0, 0x7BFF]
    seen = {}
    drive(unit, reduction(a, b, level=2), lambda ctx, since: seen.setdefault(since, shown(ctx, unit)))
    assert seen[2] == wanted(a, b, 2)


def test_counters_change_no_result():
    a, b = [code(x) for x in (256.0, 0.0625, 3.0)], [code(x) for x in (1.0, 0.0625, 1.25)]
    products = reduction(a, b, level=1)
    with_counters, without = (unit_of(MultiplyAccumulate, **SMALL | {"counters": has}) for has in (True, False))
    assert run(with_counters, products).results == run(without, products).results


@pytest.mark.parametrize("command", ["mac", "vector-mac"])
def test_counters_on_the_command_line_add_their_ports(command, capsys):
    texts = []
    for option in ([], ["--counters"]):
        assert main(["verilog", command, *option]) == 0
        texts.append(capsys.readouterr().out)
    for words in ("counters = True", "// ".ljust(5) + "counts[383:0]", "clear_counts"):
        assert [words in text for text in texts] == [False, True]
