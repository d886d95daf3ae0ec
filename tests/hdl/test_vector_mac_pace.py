"""The pace of the SIMD multiply-accumulate unit: in rotation, a promotion costs its cycles and no more."""

from collections import deque

import numpy as np
import pytest

import golden
from golden import CBFLOAT16
from hdl import VectorMac

from .simulators import unit_of
from .vector_bench import Beat, beats_of, element_results, elements, reduction, run

STAGES = [1, 4, 5, 8, 9, 11, 12, 13]

#: Issue cycles of a promotion, by level.
PROMOTION = {0: 0, 1: 2, 2: 1}


def rotation(unit, level, length, chunk):
    """One reduction in each of `accumulate_latency` rows, the beats in turn; and the expected results."""
    rng = np.random.default_rng(21)
    step = 2 if level == 1 else 1
    queues, wanted = [], {}
    for register in range(0, step * unit.accumulate_latency, step):
        a, b = golden.encode(rng.normal(size=(2, elements(unit, level), length)), CBFLOAT16)
        queues.append(reduction(a, b, register=register, level=level))
        codes, flags = element_results(unit, a, b, level=level, chunk=chunk)
        wanted[register] = beats_of(unit, codes, flags, level=level, register=register)
    return [beat for beats in zip(*queues, strict=True) for beat in beats], wanted


def accepted_at(unit, promotes, cost):
    """The cycles in which beats are accepted, if only promotions cost cycles and go first, one after the other."""
    ready, issued, cycle = deque(), [], 0
    for does in promotes:
        while ready and ready[0] <= cycle:
            ready.popleft()
            cycle += cost
        issued.append(cycle)
        if does:
            ready.append(cycle + unit.promotion_latency)
        cycle += 1
    # A rank ahead of the issue takes a beat as the one before it is issued.
    return [0, *(cycle + 1 for cycle in issued[:-1])] if unit.parameters.has_input_rank else issued


@pytest.mark.turns
@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", STAGES)
def test_vector_mac_in_rotation_accepts_a_beat_every_cycle_but_for_promotions(stages, level, chunk):
    unit = unit_of(VectorMac, lanes=2, stages=stages)
    length = 10
    beats, wanted = rotation(unit, level, length, chunk)
    done = run(unit, beats, chunk=chunk)
    ends = [level and (k % chunk == chunk - 1 or k == length - 1) for k in range(length) for _ in wanted]
    assert done.accepted_at == accepted_at(unit, ends, PROMOTION[level])
    assert {register: done.of(register) for register in wanted} == wanted


@pytest.mark.parametrize("stages", [1, 5, 8, 13])
@pytest.mark.parametrize(
    ("levels", "level"),
    [((0, 1, 2), 0), ((0, 1, 2), 1), ((0, 1, 2), 2), ((0, 2), 0), ((0, 2), 2), ((1, 2), 1), ((2,), 2), ((0,), 0)],
)
def test_vector_mac_on_single_products_at_full_rate_is_not_held_up_by_the_queue_of_results(levels, level, stages):
    unit = unit_of(VectorMac, lanes=2, levels=levels, stages=stages)
    step = 2 if level == 1 else 1
    one = (CBFLOAT16.one,) * 2
    rows = unit.accumulate_latency
    beats = [Beat(one, one, register=step * (n % rows), level=level, first=True, last=True) for n in range(80)]
    done = run(unit, beats)
    assert done.accepted_at == accepted_at(unit, [level > 0] * len(beats), PROMOTION[level])
    assert len(done.results) == len(beats) * (2 if level == 1 else 1)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [1, 5, 8, 11, 13])
def test_vector_mac_on_one_row_waits_until_the_accumulator_is_written(stages, level):
    unit = unit_of(VectorMac, lanes=2, stages=stages)
    a, b = golden.encode(np.random.default_rng(22).normal(size=(2, elements(unit, level), 9)), CBFLOAT16)
    done = run(unit, reduction(a, b, register=2, level=level))
    start = 1 if unit.parameters.has_input_rank else 0
    assert np.diff(done.accepted_at)[start:].tolist() == [unit.accumulate_latency] * (8 - start)
    codes, flags = element_results(unit, a, b, level=level, chunk=None)
    assert done.results == beats_of(unit, codes, flags, level=level, register=2)


@pytest.mark.parametrize("stages", STAGES)
def test_vector_mac_result_leaves_after_latency_and_promotion_latency_cycles(stages):
    unit = unit_of(VectorMac, lanes=2, stages=stages)
    one = (CBFLOAT16.one,) * 2
    left = {level: run(unit, [Beat(one, one, level=level, first=True, last=True)]).left_at for level in (0, 1, 2)}
    total = unit.latency + unit.promotion_latency
    assert left == {0: [unit.latency], 1: [total, total + 1], 2: [total]}


def test_vector_mac_of_default_depth_has_thirteen_stages_and_seven_cycles_of_accumulation():
    unit = VectorMac()
    assert (unit.stages, unit.latency, unit.promotion_latency, unit.accumulate_latency) == (13, 15, 15, 7)


def test_vector_mac_chain_waits_for_every_promotion_and_for_nothing_after_that():
    unit = unit_of(VectorMac, stages=8)
    one = Beat((CBFLOAT16.one,) * 4, (CBFLOAT16.one,) * 4, first=True, last=True)
    done = run(unit, [one._replace(level=1), one._replace(register=1)])
    # Both operations of the promotion, and then the distance to the last of them.
    assert done.accepted_at == [0, unit.promotion_latency + 1 + unit.accumulate_latency]
