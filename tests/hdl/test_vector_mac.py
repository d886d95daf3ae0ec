"""The SIMD multiply-accumulate unit on streams of reductions: every element and its flags equal `golden.dot`."""

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16
from golden.formats import HALF_FORMATS
from hdl import Error, VectorMac
from hdl.parameters import built_from
from hdl.vector.parameters import VectorParameters
from lab.exhaustive.operands import factors

from .simulators import sometimes, unit_of
from .vector_bench import Beat, beats_of, element_results, elements, reduction, refused, run

# Parameters of a unit, and the chunk length.
BUILDS = [
    ({}, 3),
    ({"operands": HALF_FORMATS}, 2),
    ({"lanes": 2, "stages": 1, "registers": 4}, 1),
    ({"lanes": 2, "operands": HALF_FORMATS, "stages": 4, "registers": 8}, 2),
    ({"lanes": 8, "stages": 4}, 5),
    ({"lanes": 8, "operands": (FP16, BF16), "stages": 8}, 0),
    ({"stages": 9}, 1),
    ({"stages": 1, "registers": 8, "operands": HALF_FORMATS}, 3),
    ({"stages": 2, "registers": 4}, 2),
    ({"stages": 10, "levels": (1,)}, 2),
    ({"levels": (0,), "operands": (BF16, FP16)}, 3),
    ({"levels": (2,), "operands": (CB16, CBFLOAT16), "registers": 8}, 1),
    ({"levels": (0, 2), "stages": 8, "registers": 8}, 2),
    ({"flags": False, "stages": 8, "chunk_bits": 2}, 3),
]


def name_of(value):
    if not isinstance(value, dict):
        return f"chunk={value}"
    return "-".join(f"{key}={'+'.join(map(str, x)) if isinstance(x, tuple) else x}" for key, x in value.items())


def random_elements(rng, fmt, count, length):
    """Factors of every element: some over all codes, some whose sums stay finite."""
    rows = []
    for _ in range(count):
        if rng.random() < 0.4:
            rows.append((factors(rng, fmt, length), factors(rng, fmt, length)))
        else:
            rows.append(tuple(golden.encode(rng.normal(size=length) * 2.0 ** rng.integers(-2, 2), fmt) for _ in "ab"))
    return [a for a, _ in rows], [b for _, b in rows]


def random_reductions(unit, rng, count, chunk, lengths=(1, 1, 2, 3, 4, 5, 7, 9)):
    """Beats of reductions interleaved over the pairs of rows, and the results to expect of each row."""
    queues = [[] for _ in range(unit.registers // 2)]
    wanted = {}
    for _ in range(count):
        pair, level, number = (
            rng.integers(len(queues)),
            int(rng.choice(unit.levels)),
            int(rng.integers(len(unit.operands))),
        )
        register = int(2 * pair + (0 if level == 1 else rng.integers(2)))
        length = int(rng.choice(lengths))
        a, b = random_elements(rng, unit.operands[number], elements(unit, level), length)
        where = {"register": register, "level": level}
        queues[pair] += reduction(a, b, format=number, **where)
        codes, flags = element_results(unit, a, b, format=number, level=level, chunk=chunk)
        wanted.setdefault(register, []).extend(beats_of(unit, codes, flags, **where))
        if rng.random() < 0.3:  # continued after `last`
            a, b = random_elements(rng, unit.operands[number], elements(unit, level), length)
            queues[pair] += reduction(a, b, first=False, format=number, **where)
            codes, further = element_results(unit, a, b, format=number, level=level, chunk=chunk, initial=codes)
            flags = [x | y for x, y in zip(flags, further, strict=True)]
            wanted[register].extend(beats_of(unit, codes, flags, **where))
    beats = []
    while queues := [queue for queue in queues if queue]:
        beats.append(queues[rng.integers(len(queues))].pop(0))
    return beats, wanted


def assert_results(done, wanted):
    assert {register: done.of(register) for register in wanted} == wanted
    assert len(done.results) == sum(map(len, wanted.values()))


@pytest.mark.parametrize(("build", "chunk"), BUILDS, ids=name_of)
def test_vector_mac_on_random_reductions_gives_goldens_elements_in_order(build, chunk):
    unit = unit_of(VectorMac, **build)
    seed = BUILDS.index((build, chunk))
    beats, wanted = random_reductions(unit, np.random.default_rng([11, seed]), 60, chunk)
    # Without a pause first, then with pauses on both sides.
    idle, refuse = sometimes(0.3, seed), sometimes(0.6, seed + 100)
    done = run(
        unit,
        beats,
        chunk=chunk,
        offer=lambda cycle: cycle < 150 or not idle(cycle),
        take=lambda cycle: cycle < 150 or not refuse(cycle),
    )
    assert_results(done, wanted)


@pytest.mark.parametrize("stages", [1, 4, 8, None])
@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_vector_mac_with_backlogs_of_promotions_keeps_rows_and_order(stages, chunk):
    # Many short chunks at full rate: promotions of one row come close in the queue.
    unit = unit_of(VectorMac, lanes=2, stages=stages, levels=(1, 2))
    beats, wanted = random_reductions(unit, np.random.default_rng([12, chunk]), 150, chunk, lengths=(1, 2, 3, 6))
    assert_results(run(unit, beats, chunk=chunk), wanted)


@pytest.mark.parametrize("stages", [1, 8, None])
def test_vector_mac_with_levels_in_turn_on_one_pair_of_rows_keeps_them_apart(stages):
    unit = unit_of(VectorMac, lanes=2, operands=HALF_FORMATS, stages=stages)
    rng = np.random.default_rng(13)
    beats, wanted = [], {0: [], 1: []}
    for level, register in [(0, 0), (1, 0), (0, 1), (2, 0), (2, 1), (1, 0), (2, 1), (0, 1), (2, 0), (1, 0), (0, 0)] * 2:
        number, length = int(rng.integers(3)), int(rng.integers(1, 5))
        a, b = random_elements(rng, unit.operands[number], elements(unit, level), length)
        beats += reduction(a, b, register=register, level=level, format=number)
        codes, flags = element_results(unit, a, b, format=number, level=level, chunk=2)
        wanted[register] += beats_of(unit, codes, flags, level=level, register=register)
    assert_results(run(unit, beats, chunk=2), wanted)


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


@pytest.mark.parametrize("chunk", [0, 1, 2, 5])
def test_vector_mac_on_long_reductions_in_chunks_of_any_length_is_golden(chunk):
    # A counter of 3 bits, so that one chunk of any length is longer than it counts.
    unit = unit_of(VectorMac, stages=3, chunk_bits=3)
    rng = np.random.default_rng(16)
    beats, wanted = [], {}
    for level in (0, 1, 2):
        a, b = golden.encode(rng.normal(size=(2, elements(unit, level), 23)), CBFLOAT16)
        beats += reduction(a, b, register=2 * level, level=level)
        codes, flags = element_results(unit, a, b, level=level, chunk=chunk)
        wanted[2 * level] = beats_of(unit, codes, flags, level=level, register=2 * level)
    assert_results(run(unit, beats, chunk=chunk), wanted)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_vector_mac_on_an_empty_reduction_gives_plus_zero(level):
    unit = unit_of(VectorMac, stages=4)
    minus_zero, one = (CBFLOAT16.sign_mask,) * 4, (CBFLOAT16.one,) * 4
    empty = Beat(minus_zero, one, register=2, level=level, first=True, last=True)
    results = run(unit, [empty._replace(a=one), empty]).results
    count = len(results) // 2
    value = 0x3F800000 if level < 2 else CBFLOAT16.one * 0x10001
    assert [result.result for result in results] == [(value, value)] * count + [(0, 0)] * count
    assert all(result.flags == (0,) * 4 for result in results)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_vector_mac_after_power_up_holds_plus_zero(level):
    unit = VectorMac(stages=4)
    minus_zero, one = (CBFLOAT16.sign_mask,) * 4, (CBFLOAT16.one,) * 4
    registers = range(0, 16, 2 if level == 1 else 1)
    # -0 * 1 + x is x, and -0 if x were -0.
    results = run(unit, [Beat(minus_zero, one, register, level, last=True) for register in registers]).results
    assert [result.register for result in results] == [r for r in registers for _ in range(2 if level == 1 else 1)]
    assert all(result.result == (0, 0) for result in results)


# Where the beat goes that is refused, and why.
REFUSED = [
    ({"level": 1, "register": 3}, Error.ALIGNMENT),
    ({"level": 3, "register": 2}, Error.UNSUPPORTED),
    ({"level": 2, "register": 2, "format": 3}, Error.UNSUPPORTED),
    ({"level": 1, "register": 3, "format": 3}, Error.UNSUPPORTED),
]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_vector_mac_refusing_a_beat_reports_the_error_and_changes_nothing(level):
    unit = unit_of(VectorMac, operands=HALF_FORMATS, stages=5, registers=8)
    rng = np.random.default_rng(17)
    a, b = golden.encode(rng.normal(size=(2, elements(unit, level), 2 * len(REFUSED))), CBFLOAT16)
    infinities = Beat((FP16.inf,) * 4, (FP16.inf,) * 4, last=True)
    beats, errors = [], []
    # Between the beats of a reduction, into the same rows; as the start of a reduction and as a continuation.
    for number, beat in enumerate(reduction(a, b, register=2, level=level)):
        where, error = REFUSED[number % len(REFUSED)]
        beats += [beat, infinities._replace(first=number < len(REFUSED), **where)]
        errors.append(refused(unit, error, where["register"]))
    done = run(unit, beats, chunk=3)
    assert [result for result in done.results if result.error] == errors
    codes, flags = element_results(unit, a, b, level=level, chunk=3)
    assert [result for result in done.results if not result.error] == beats_of(
        unit, codes, flags, level=level, register=2
    )


@pytest.mark.parametrize("levels", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_vector_mac_without_a_level_refuses_it(levels):
    unit = unit_of(VectorMac, levels=levels, stages=2)
    ones = (CBFLOAT16.one,) * 4
    results = run(unit, [Beat(ones, ones, level=level, first=True, last=True) for level in range(4)]).results
    assert [result.error for result in results if result.error] == [Error.UNSUPPORTED.value] * (4 - len(levels))
    values = {level: 0x3F800000 if level < 2 else CBFLOAT16.one * 0x10001 for level in levels}
    assert {result.result[0] for result in results if not result.error} == set(values.values())


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
    # Two places each; one more beat waits in the rank ahead of the issue.
    assert done.results == []
    assert len(done.accepted_at) == unit.parameters.results // 2 + 1


def test_vector_mac_attributes_are_its_parameters_and_its_latencies():
    unit = VectorMac(lanes=8, operands=[CB16, FP16], levels=[2, 0], registers=4, stages=3, chunk_bits=5, flags=False)
    assert (unit.lanes, unit.operands, unit.levels, unit.registers) == (8, (CB16, FP16), (0, 2), 4)
    assert (unit.stages, unit.chunk_bits, unit.flags) == (3, 5, False)
    assert (unit.latency, unit.promotion_latency, unit.accumulate_latency) == (4, 6, 3)
