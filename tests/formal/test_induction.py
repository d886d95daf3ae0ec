"""The induction over the control of the multiply-accumulate unit: what it assumes is met, and faults break it."""

import random
from unittest.mock import PropertyMock, patch

import pytest
from amaranth.sim import Simulator

from hdl.mac.issue import Issue
from hdl.mac.parameters import MacParameters
from sim.formal.along_model import ghost
from sim.formal.along_model.induction import component, induction, told
from sim.formal.engines import bitwuzla_api


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("induction")


def decide(stages, folder):
    """Return the answer and what does not hold."""
    top = component(stages)
    answer, model = bitwuzla_api.decide(induction(top, folder))
    ports = {name.partition(".")[2]: int(value, 16) for name, value in model.items() if name.startswith("fails.")}
    return answer, told(top, ports) if ports else ""


def failing(ctx, top):
    """Return the names of the conditions and claims that do not hold."""
    return [
        name
        for kind in ("conditions", "claims")
        for place, name in enumerate(top.names[kind])
        if not ctx.get(getattr(top, kind)) >> place & 1
    ]


class Beats:
    """Beats that a user may send, of all levels and registers, now and then one that is refused."""

    def __init__(self, rng, registers):
        self.rng, self.levels = rng, dict.fromkeys(range(registers))

    def next(self):
        rng, levels = self.rng, self.levels
        register, level = rng.randrange(len(levels)), rng.choice([0, 1, 1, 2, 2, 2, 3])
        if levels[register] is not None and rng.random() < 0.8:
            level = levels[register]
        register &= -1 if level > 1 or rng.random() < 0.2 else ~1
        refused = level == 3 or (level != 2 and register % 2)
        pair = [register] if level == 2 else [register, register + 1]
        continues = refused or all(levels[each] == level for each in pair)
        if not refused:
            levels.update(dict.fromkeys(pair, level))
        first = not continues or rng.random() < 0.2
        beat = {"level": level, "register": register, "first": int(first), "last": int(rng.random() < 0.4)}
        return beat | {"a": rng.getrandbits(4), "b": rng.getrandbits(4)}


@pytest.mark.parametrize(("stages", "cycles"), [(3, 300), (11, 250), (13, 250)])
def test_simulated_unit_meets_the_invariant(stages, cycles):
    # An invariant that no run met would prove anything. Promotions, refusals, results and stalls are among what is run.
    rng, top, seen = random.Random(stages), component(stages), set()
    beats, results = Beats(rng, top.unit.registers), []
    simulator = Simulator(top)
    simulator.add_clock(1e-6)

    async def bench(ctx):
        ctx.set(top.chunk, 2)
        beat = beats.next()
        for cycle in range(cycles):
            ctx.set(top.i.payload, beat)
            ctx.set(top.i.valid, 1)
            ctx.set(top.o.ready, int(rng.random() < (0.9 if cycle > cycles // 2 else 0.1)))
            ctx.set(top.watch, rng.getrandbits(1))
            for given in (top.given, top.total_given):
                ctx.set(given.as_value(), rng.getrandbits(len(given.as_value())))
            await ctx.delay(1e-8)
            assert (failing(ctx, top), ctx.get(top.legal)) == ([], 1)
            if ctx.get(top.o.valid) and ctx.get(top.o.ready):
                results.append(ctx.get(top.o.payload).error.value)
            if ctx.get(top.i.ready):
                seen.add((beat["level"], beat["first"]))
                beat = beats.next()
            else:
                seen.add("waits")
            await ctx.tick()

    simulator.add_testbench(bench)
    simulator.run()
    assert seen >= {"waits", (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)}
    assert results.count(0) >= 10
    assert any(results)


def test_unit_of_one_rank_is_proven(folder):
    assert decide(1, folder) == ("unsat", "")


def without_hazards():
    return patch.object(Issue, "_recent", lambda self: [])


def with_hazards_too_long():
    recent = lambda self: self.in_flight[: self.parameters.accumulate_latency]  # noqa: E731
    return patch.object(Issue, "_recent", recent)


def with_short_queue():
    return patch.object(MacParameters, "results", PropertyMock(return_value=4))


@pytest.mark.parametrize(
    ("fault", "stages", "fails"),
    [(without_hazards, 3, "distance"), (with_hazards_too_long, 3, "waits for a reason in the cycle"),
     (with_short_queue, 2, "waits for a reason in the cycle")],
)  # fmt: skip
def test_fault_breaks_the_induction(fault, stages, fails, folder):
    with fault():
        answer, said = decide(stages, folder)
    assert answer == "sat"
    assert fails in said


def test_start_outside_the_invariant_is_told(folder):
    # As if a chunk were open in a register that was never used.
    with patch.dict(ghost.AT_RESET, open=1):
        answer, said = decide(1, folder)
    assert answer == "sat"
    assert "chunk state 0" in said
    assert "at reset" in said
