"""The induction over the control of the multiply-accumulate unit: its assumptions are met, and faults break it."""

import random
from itertools import pairwise

import pytest
from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.mac.issue import Issue
from hdl.mac.parameters import MacParameters
from hdl.parameters import built_from
from lab.proofs.along_model import ghost
from lab.proofs.along_model.induction import component, induction
from lab.proofs.conditions import that_fail
from lab.proofs.engines import bitwuzla_api
from lab.proofs.left_out import OpenMac

pytestmark = pytest.mark.long


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("induction")


def decide(stages, folder, **changes):
    """Return the answer and what does not hold."""
    text = induction(component(stages, **changes), folder)
    answer, model = bitwuzla_api.decide(text)
    ports = {name.partition(".")[2]: int(value, 16) for name, value in model.items() if name.startswith("fails.")}
    return answer, that_fail(text, ports) if ports else ""


def failing(ctx, top):
    """Return the names of the conditions and claims that do not hold."""
    return [
        name
        for kind in ("conditions", "claims")
        for place, name in enumerate(top.names[kind])
        if not ctx.get(getattr(top, kind)) >> place & 1
    ]


class Beats:
    """Beats that a user may send, at all levels and in all registers, one pair more often; some are refused."""

    def __init__(self, rng, registers, formats, often):
        self.rng, self.levels, self.formats, self.often = rng, dict.fromkeys(range(registers)), formats, often
        self.count = 0

    def next(self):
        rng, levels = self.rng, self.levels
        self.count += 1
        register, level = rng.randrange(len(levels)), self.count // 12 % 3
        if rng.random() < 0.8:
            register = 2 * self.often + register % 2
        if rng.random() < 0.2:
            level = rng.randrange(4)
        register &= -1 if level > 1 or rng.random() < 0.2 else ~1
        fmt = rng.randrange(4) if self.formats > 1 else 0
        refused = level == 3 or fmt == 3 or (level != 2 and register % 2)
        pair = [register] if level == 2 else [register, register + 1]
        continues = refused or all(levels[each] == level for each in pair)
        if not refused:
            levels.update(dict.fromkeys(pair, level))
        first = not continues or rng.random() < 0.2
        beat = {"level": level, "register": register, "first": int(first), "last": int(rng.random() < 0.4)}
        return beat | {"a": rng.getrandbits(4), "b": rng.getrandbits(4), "format": fmt}


def any_step(layout, *operands):
    """Return the outputs of some lane, always the same for the same operands."""
    rng = random.Random(repr(operands))
    return {name: rng.getrandbits(layout[name].width) for name, _ in layout}


class Reduction:
    """The results that beats are to have, as README and NUMERICS say it, by `any_step`."""

    def __init__(self, layout):
        self.layout = layout
        self.totals, self.chunks, self.sizes = {}, {}, {}

    def step(self, a, b, fmt, value, flags=0):
        given = any_step(self.layout, a, b, fmt, value[:2])
        return given, (given["number"], given["its_class"], given["flags"] | value[2] | flags)

    def add(self, beat, kinds, chunk):
        """Take a beat when the port says `chunk`; `kinds` are the registers whose results it may have."""
        register, level, fmt = beat["register"], beat["level"], beat.get("format", 0)
        if level == 3 or fmt == 3 or (level != 2 and register % 2):
            error = 2 if level == 3 or fmt == 3 else 1
            kinds[register, True].append((0, 0, error, register))
            return
        if beat["first"]:
            self.totals[register], self.chunks[register] = (0, 0, 0), []
        given, value = {}, self.totals[register]
        if level == 0:
            given, value = self.step(beat["a"], beat["b"], "wide", value)
        else:
            products = self.chunks[register]
            size = self.sizes[register] = self.sizes[register] if products else chunk
            partial = products[-1] if products else (0, 0, 0)
            given, partial = self.step(beat["a"], beat["b"], fmt, partial)
            products.append(partial)
            if beat["last"] or (chunk and len(products) == size):
                products.clear()
                wide = "wide" if level == 1 else fmt
                given, value = self.step(given["promoted"], "one", wide, value, partial[2])
        self.totals[register] = value
        if beat["last"]:
            kinds[register, False].append((given["code"], value[2], 0, register))


def let_lane_give(ctx, top):
    """Drive the lane's outputs for the product that may be issued now, and for its promotion."""
    ghost, layout = top.ghost, top.given.shape()
    beat, new = ctx.get(ghost.beat), ctx.get(ghost.records[0].fields)
    fmt = beat.format
    wide = "wide" if beat.level == 0 else fmt
    given = any_step(layout, beat.a, beat.b, wide, (new.before.number, new.before.its_class))
    total = (new.total_before.number, new.total_before.its_class)
    ctx.set(top.given, given)
    wide = fmt if beat.level == 2 else "wide"
    ctx.set(top.total_given, any_step(layout, given["promoted"], "one", wide, total))


@pytest.mark.parametrize(("stages", "cycles"), [(3, 300), (11, 240), (13, 280)])
def test_simulated_unit_meets_the_invariant_and_gives_the_results(stages, cycles):
    # An invariant that no run met would prove anything. Promotions, refusals, results, stalls, resets and changes of
    # the port for chunks are part of the run.
    rng, top, seen = random.Random(stages), component(stages, registers=4), set()
    registers = top.unit.registers
    kinds = [(register, refused) for register in range(registers) for refused in (False, True)]
    reset, sound = Signal(), []
    simulator = Simulator(ResetInserter(reset)(top))
    simulator.add_clock(1e-6)

    async def bench(ctx):
        # Reset in the middle of work, and again when it has hardly begun; then left alone until everything has left.
        for start, end in pairwise((0, 24, 28, cycles + 80)):
            pair = rng.randrange(registers // 2)
            ctx.set(top.pair, pair)
            beats, reduction = Beats(rng, registers, len(top.unit.operands), pair), Reduction(top.given.shape())
            wanted, accepted = {kind: [] for kind in kinds}, []
            beat = beats.next()
            for cycle in range(start, end):
                chunk = rng.choice((0, 1, 2, 2, 2, 3, 256, 257))
                ctx.set(top.chunk, chunk)
                ctx.set(top.i.payload, beat)
                ctx.set(top.i.valid, cycle < cycles)
                ctx.set(top.o.ready, int(rng.random() < (0.9 if cycle > cycles // 4 else 0.1)))
                ctx.set(top.watch, rng.getrandbits(1))
                ctx.set(reset, cycle == end - 1 < cycles)
                await ctx.delay(1e-8)
                let_lane_give(ctx, top)
                await ctx.delay(1e-8)
                assert (failing(ctx, top), ctx.get(top.legal)) == ([], 1)
                if ctx.get(top.i.ready) and ctx.get(top.i.valid):
                    seen.add((beat["level"], beat["first"]))
                    accepted.append(beat)
                    beat = beats.next()
                elif ctx.get(top.i.valid):
                    seen.add("waits")
                if ctx.get(top.ghost.is_issued):
                    reduction.add(accepted.pop(0), wanted, chunk)
                if ctx.get(top.o.valid) and ctx.get(top.o.ready):
                    o = ctx.get(top.o.payload)
                    got = (o.result, o.flags.as_value().value, o.error.value, o.register)
                    answer = wanted[o.register, o.error.value != 0].pop(0)
                    # The model has no accumulators of the pairs that it does not follow, so nor has the lane.
                    if o.register >> 1 == pair:
                        assert got == answer
                        sound.append(o.error.value == 0)
                await ctx.tick()
            seen.add(("lost", any(wanted.values())))
        assert not accepted
        assert not any(wanted.values())

    simulator.add_testbench(bench)
    simulator.run()
    assert seen >= {"waits", (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), ("lost", True), ("lost", False)}
    assert sound.count(True) >= 10
    assert not all(sound)


def test_unit_of_one_rank_is_proven(folder):
    assert decide(1, folder) == ("unsat", "")


class Hasty(Issue):
    def recent(self):
        return []


class Slow(Issue):
    def recent(self):
        return self.in_flight[: self.parameters.accumulate_latency]


class FourPlaces(MacParameters):
    results = 4


class WithoutHazards(OpenMac):
    issue_type = Hasty


class WithHazardsTooLong(OpenMac):
    issue_type = Slow


class WithShortQueue(OpenMac):
    @built_from(FourPlaces)
    def __init__(self, parameters):
        self.build(parameters)


@pytest.mark.parametrize(
    ("unit_type", "stages", "fails"),
    [(WithoutHazards, 3, "distance"), (WithHazardsTooLong, 3, "waits for a reason in the cycle"),
     (WithShortQueue, 2, "waits for a reason in the cycle")],
)  # fmt: skip
def test_fault_breaks_the_induction(unit_type, stages, fails, folder):
    answer, said = decide(stages, folder, unit_type=unit_type)
    assert answer == "sat"
    assert fails in said


def test_start_outside_the_invariant_is_told(folder, monkeypatch):
    # As if a chunk were open in a register that was never used.
    monkeypatch.setitem(ghost.AT_RESET, "open", 1)
    monkeypatch.setitem(ghost.AT_RESET, "level", 2)
    answer, said = decide(1, folder)
    assert answer == "sat"
    assert "chunk state 0" in said
    assert "at reset" in said
