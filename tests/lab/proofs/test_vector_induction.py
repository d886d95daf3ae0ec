"""The inductions over values in a vector unit and over how long a beat waits: assumptions are met, faults show."""

import random
from itertools import pairwise

import pytest
from amaranth import ResetInserter, Signal
from amaranth.sim import Simulator

from hdl.vector.promotions import QueuedPromotions
from lab.proofs.along_model.induction import induction
from lab.proofs.along_vector.values import values_component
from lab.proofs.along_vector.waiting import waiting_component
from lab.proofs.conditions import that_fail
from lab.proofs.engines import bitwuzla_api
from lab.proofs.left_out import OpenVectorMac
from lab.proofs.vector_steady import SIZES
from tests.lab.proofs.test_induction import any_step, failing

pytestmark = pytest.mark.long


def fails(top, folder):
    """Return the conditions of a unit that fail."""
    text = induction(top, folder)
    answer, model = bitwuzla_api.decide(text)
    ports = {name.partition(".")[2]: int(value, 16) for name, value in model.items() if name.startswith("fails.")}
    return that_fail(text, ports) if answer == "sat" else ""


class Beats:
    """Beats that a user may send, at all levels, one row and the other row of its pair more often; some are refused."""

    def __init__(self, rng, lanes, formats, often):
        self.rng, self.lanes, self.formats, self.often = rng, lanes, formats, often
        self.levels, self.count = dict.fromkeys(range(16)), 0

    def next(self):
        rng, levels = self.rng, self.levels
        self.count += 1
        row = rng.choice((self.often, self.often, self.often, self.often ^ 1, rng.randrange(16)))
        level = rng.randrange(4) if rng.random() < 0.1 else (1, 2, 1, 0)[self.count // 10 % 4]
        row &= -1 if level != 1 or rng.random() < 0.1 else ~1
        fmt = rng.randrange(4) if self.formats > 1 and rng.random() < 0.3 else 0
        is_sound = level < 3 and fmt < self.formats and not (level == 1 and row % 2)
        rows = [row, row + 1] if level == 1 else [row]
        continues = is_sound and all(levels[each] == level for each in rows)
        if is_sound:
            levels.update(dict.fromkeys(rows, level))
        codes = {name: [rng.getrandbits(4) for _ in range(self.lanes)] for name in ("a", "b")}
        first = is_sound and (not continues or rng.random() < 0.2)
        beat = {"level": level, "register": row, "first": int(first), "last": int(rng.random() < 0.5), "format": fmt}
        return beat | codes, is_sound


class Reduction:
    """The results that beats are to have in one row of one lane, as README and NUMERICS say it, by `any_step`."""

    def __init__(self, layout, row, lane):
        self.layout, self.row, self.lane = layout, row, lane
        self.total, self.chunk, self.size = (0, 0, 0), [], 0
        #: By kind: refused, part 0, part 1; None says nothing of the lane.
        self.wanted = ([], [], [])

    def step(self, a, b, wide, value, flags=0):
        given = any_step(self.layout, a, b, wide, value[:2])
        return given, (given["number"], given["its_class"], given["flags"] | value[2] | flags)

    def add(self, beat, is_sound, chunk):
        level, lane = beat["level"], self.lane
        if beat["register"] != self.row:
            return
        if not is_sound:
            self.wanted[0].append((0, 0, False))
            return
        if beat["first"]:
            self.total, self.chunk = (0, 0, 0), []
        at = lane // 2 if level == 0 else lane
        a, b = beat["a"][at], beat["b"][at]
        if level == 0:
            given, self.total = self.step(a, b, 1, self.total)
        else:
            self.size = self.size if self.chunk else chunk
            given, partial = self.step(a, b, 0, self.chunk[-1] if self.chunk else (0, 0, 0))
            self.chunk.append(partial)
            if beat["last"] or (chunk and len(self.chunk) == self.size):
                self.chunk = []
                given, self.total = self.step(given["promoted"], "one", int(level == 1), self.total, partial[2])
        if beat["last"]:
            code = given["code"] & ((0xF if lane % 2 else 0xFFFF) if level == 2 else -1)
            answer = (code, self.total[2], level == 2)
            self.wanted[1].append(answer if (level == 2 or lane % 2 == 0) else None)
            if level == 1:
                self.wanted[2].append(answer if lane % 2 else None)


def let_lane_give(ctx, top):
    """Drive the lane's outputs for the product that may be issued now, and for its promotion; noise from others."""
    layout, lane = top.given.shape(), top.lane
    beat, new = ctx.get(top.beats.beat), ctx.get(top.element.records[0].fields)
    at = lane // 2 if beat.level == 0 else lane
    given = any_step(layout, beat.a[at], beat.b[at], int(beat.level == 0), (new.before.number, new.before.its_class))
    total = (new.total_before.number, new.total_before.its_class)
    ctx.set(top.given, given)
    ctx.set(top.total_given, any_step(layout, given["promoted"], "one", int(beat.level == 1), total))


@pytest.mark.parametrize(("size", "lane", "cycles"), [(SIZES[0], 1, 150), ((2, 13, SIZES[2][2]), 0, 200)])
def test_simulated_vector_unit_meets_the_invariant_and_gives_the_results(size, lane, cycles):
    # Refusals, results that are not taken, resets and changes of the port for chunks are part of the run.
    rng, top, seen = random.Random(lane), values_component(lane, *size), set()
    reset, sound = Signal(), []
    simulator = Simulator(ResetInserter(reset)(top))
    simulator.add_clock(1e-6)

    async def bench(ctx):
        for start, end in pairwise((0, 20, 24, cycles + 80)):
            row = rng.randrange(16) & (~1 if end > cycles else -1)
            ctx.set(top.pair, row // 2)
            ctx.set(top.half, row % 2)
            beats, reduction = Beats(rng, size[0], len(size[2]), row), Reduction(top.given.shape(), row, lane)
            accepted, beat = [], beats.next()
            for cycle in range(start, end):
                chunk = rng.choice((0, 1, 2, 2, 3, 3, 257))
                ctx.set(top.chunk, chunk)
                ctx.set(top.i.payload, beat[0])
                ctx.set(top.i.valid, cycle < cycles)
                ctx.set(top.o.ready, int(rng.random() < (0.9 if cycle > cycles // 4 else 0.1)))
                ctx.set(top.watch, rng.getrandbits(1))
                ctx.set(reset, cycle == end - 1 < cycles)
                for each in range(size[0]):
                    for name in ("number", "its_class", "flags", "code", "promoted"):
                        ctx.set(top.noise[each][name], rng.getrandbits(len(top.noise[each][name])))
                await ctx.delay(1e-8)
                let_lane_give(ctx, top)
                await ctx.delay(1e-8)
                assert (failing(ctx, top), ctx.get(top.legal)) == ([], 1)
                if ctx.get(top.i.ready) and ctx.get(top.i.valid):
                    accepted.append(beat)
                    beat = beats.next()
                elif ctx.get(top.i.valid):
                    seen.add("waits")
                if ctx.get(top.beats.is_issued):
                    reduction.add(*accepted.pop(0), chunk)
                if ctx.get(top.o.valid) and ctx.get(top.o.ready) and ctx.get(top.o.payload.register) == row:
                    o = ctx.get(top.o.payload)
                    kind = 0 if o.error.value else 1 + o.part
                    if answer := reduction.wanted[kind].pop(0):
                        code, flags, is_narrow = answer
                        word = o.result[lane // 2]
                        shown = (word >> 16 * (lane % 2)) & 0xFFFF if is_narrow else word
                        its = lane if is_narrow else lane & ~1
                        assert (shown, o.flags[its].as_value().value) == (code, flags)
                        seen.add((kind, is_narrow))
                        sound.append(kind)
                await ctx.tick()
            seen.add(("lost", any(reduction.wanted)))
        assert not accepted
        assert not any(reduction.wanted)

    simulator.add_testbench(bench)
    simulator.run()
    assert seen >= {"waits", ("lost", True), ("lost", False), (1, True), (2 if lane % 2 else 1, False)}
    assert len(sound) >= 6


class NeverSettled(QueuedPromotions):
    def count(self, m, leaves):
        super().count(m, leaves)
        m.d.comb += self.are_settled.eq(0)


class Forgetful(QueuedPromotions):
    def give(self, m, *arguments):
        super().give(m, *arguments)
        m.d.comb += self.operand_flags[1].eq(0)


class WithoutLevel0(OpenVectorMac):
    promotions_type = NeverSettled


class WithForgetfulPromotions(OpenVectorMac):
    promotions_type = Forgetful


def test_level_0_that_waits_for_ever_is_told(tmp_path):
    told_of_it = fails(waiting_component(*SIZES[0], unit_type=WithoutLevel0), tmp_path)
    assert "waits for something in the cycle" in told_of_it


def test_flags_lost_at_a_promotion_break_the_induction(tmp_path):
    told_of_it = fails(values_component(1, *SIZES[0], unit_type=WithForgetfulPromotions), tmp_path)
    assert "flags 1 behind it" in told_of_it
