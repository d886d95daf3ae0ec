"""The SIMD multiply-accumulate unit on streams of reductions: every element and its flags equal `golden.dot`."""

import numpy as np
import pytest

import golden
from golden import CB16, CBFLOAT16, FP16
from hdl import VectorMac
from hdl.parameters import built_from
from hdl.vector.parameters import VectorParameters

from . import vector_bench
from .simulators import unit_of
from .test_multiply_accumulate import assert_results, random_reductions
from .vector_bench import Beat, beats_of, element_results, elements, reduction, run


@pytest.mark.turns
@pytest.mark.parametrize("stages", [1, 4, 8, None])
@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_vector_mac_with_backlogs_of_promotions_keeps_rows_and_order(stages, chunk):
    # Many short chunks at full rate: promotions of one row come close in the queue.
    unit = unit_of(VectorMac, lanes=2, stages=stages, levels=(1, 2))
    beats, wanted = random_reductions(
        vector_bench, unit, np.random.default_rng([12, chunk]), 150, chunk, lengths=(1, 2, 3, 6)
    )
    assert_results(run(unit, beats, chunk=chunk), wanted)


@pytest.mark.turns
@pytest.mark.parametrize("stages", [8, 9, None])
def test_vector_mac_with_a_ragged_tail_behind_a_backlog_adds_the_tail_to_the_right_total(stages):
    # All rows end a chunk one after the other; the last one then ends a tail of one product as soon as it may. At level
    # 1 its full chunk waits for the promotions of the other rows: the tail's would follow it at once.
    unit = unit_of(VectorMac, stages=stages)
    rng = np.random.default_rng(14)
    count, chunk = unit.accumulate_latency - 1, 3
    queues, wanted = [], {}
    for register in range(0, 2 * count, 2):
        length = chunk + 1 if register == 2 * (count - 1) else 2 * chunk
        a, b = golden.encode(rng.normal(size=(2, unit.lanes, length)), CBFLOAT16)
        queues.append(reduction(a, b, register=register, level=1))
        codes, flags = element_results(unit, a, b, level=1, chunk=chunk)
        wanted[register] = beats_of(unit, codes, flags, level=1, register=register)
    full_chunks = [queue[k] for k in range(chunk) for queue in queues]
    beats = [*full_chunks, queues[-1][-1], *(queue[k] for k in range(chunk, 2 * chunk) for queue in queues[:-1])]
    done = run(unit, beats, chunk=chunk)
    assert_results(done, wanted)
    # The tail is issued before the first promotion.
    behind = 1 if unit.parameters.has_input_rank else 0
    first, tail = (done.accepted_at[number + behind] for number in (len(queues) * (chunk - 1), len(queues) * chunk))
    assert tail - first < unit.promotion_latency


class TwoPlaces(VectorParameters):
    promotions = 2


class WithTwoPlaces(VectorMac):
    @built_from(TwoPlaces)
    def __init__(self, parameters):
        self.build(parameters)


@pytest.mark.parametrize("level", [1, 2])
def test_vector_mac_with_a_queue_of_promotions_too_small_waits_and_loses_nothing(level):
    unit = WithTwoPlaces(lanes=2, stages=8)
    step = 2 if level == 1 else 1
    rng = np.random.default_rng(15)
    beats, wanted = [], {}
    for number in range(24):
        register = step * (number % 8)
        a, b = golden.encode(rng.normal(size=(2, unit.lanes, 1)), CBFLOAT16)
        beats += reduction(a, b, register=register, level=level)
        codes, flags = element_results(unit, a, b, level=level, chunk=1)
        wanted.setdefault(register, []).extend(beats_of(unit, codes, flags, level=level, register=register))
    assert_results(run(unit, beats, chunk=1), wanted)


@pytest.mark.turns
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [1, 8, None])
def test_vector_mac_with_results_refused_for_long_stops_and_loses_nothing(stages, level):
    unit = unit_of(VectorMac, lanes=2, stages=stages)
    rng = np.random.default_rng(18)
    beats, wanted = [], {}
    for number in range(64):
        register = 2 * (number % 8)
        a, b = golden.encode(rng.normal(size=(2, elements(unit, level), 1 + number % 2)), CBFLOAT16)
        beats += reduction(a, b, register=register, level=level)
        codes, flags = element_results(unit, a, b, level=level, chunk=4)
        wanted.setdefault(register, []).extend(beats_of(unit, codes, flags, level=level, register=register))
    held_back = range(5, 305)
    done = run(unit, beats, chunk=4, take=lambda cycle: cycle not in held_back)
    assert_results(done, wanted)
    assert not set(done.left_at) & set(held_back)
    # Then the places are taken, and no beat is accepted any more: nothing is in flight that could be lost.
    assert len(done.accepted_at) == len(beats)
    assert not [cycle for cycle in done.accepted_at if 205 <= cycle < 305]


def test_vector_mac_under_back_pressure_forever_accepts_no_more_than_it_has_places_for():
    unit = unit_of(VectorMac, lanes=2)
    one = (CBFLOAT16.one,) * 2
    beats = [Beat(one, one, register=2 * (n % 8), level=1, first=True, last=True) for n in range(100)]
    done = run(unit, beats, take=lambda cycle: False, cycles=400)
    # Two places each. The last two stay free, because places are counted a cycle later. One more beat waits in the rank
    # ahead of the issue.
    assert done.results == []
    assert len(done.accepted_at) == unit.parameters.results // 2 - 1 + 1


def test_vector_mac_attributes_are_its_parameters_and_its_latencies():
    unit = VectorMac(lanes=8, operands=[CB16, FP16], levels=[2, 0], registers=4, stages=3, chunk_bits=5, flags=False)
    assert (unit.lanes, unit.operands, unit.levels, unit.registers) == (8, (CB16, FP16), (0, 2), 4)
    assert (unit.stages, unit.chunk_bits, unit.flags) == (3, 5, False)
    assert (unit.latency, unit.promotion_latency, unit.accumulate_latency) == (4, 6, 3)
