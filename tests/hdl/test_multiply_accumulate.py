"""Both multiply-accumulate units on streams of reductions: every result and its flags equal `golden.dot`."""

import math

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat
from golden.formats import HALF_FORMATS
from hdl import Error, MultiplyAccumulate
from lab.exhaustive.operands import factors

from . import mac_bench, vector_bench
from .mac_bench import reduction, run
from .simulators import sometimes, unit_of

E3M2 = FloatFormat("e3m2", 3, 2)

BUILDS = [
    {},
    {"stages": 1},
    {"stages": 2},
    {"stages": 3, "operands": HALF_FORMATS, "registers": 2},
    {"stages": 4, "registers": 4},
    {"stages": 5, "levels": (1,)},
    {"stages": 6, "operands": (CB16,), "levels": (0, 2)},
    {"stages": 7, "chunk_bits": 2},
    {"stages": 8, "operands": HALF_FORMATS},
    {"stages": 9, "operands": (FP16,), "registers": 4},
    {"stages": 10, "operands": (BF16, CB16), "levels": (1, 2)},
    {"stages": 12, "operands": HALF_FORMATS, "chunk_bits": 3},
    {"levels": (0,), "operands": (BF16, FP16)},
    {"levels": (2,), "operands": (CB16, CBFLOAT16)},
    {"operands": (E3M2,), "inner": "operand", "stages": 4},
    {"operands": (E3M2,), "inner": "operand", "levels": (2,), "registers": 32},
    {"flags": False, "stages": 5},
    {"flags": False, "stages": 11, "registers": 2},
    {"registers": 2, "levels": (0,)},
]
VECTOR_BUILDS = [
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
        return value.UNIT.__name__ if hasattr(value, "UNIT") else f"chunk={value}"
    return "-".join(f"{key}={'+'.join(map(str, x)) if isinstance(x, tuple) else x}" for key, x in value.items())


def random_factors(rng, fmt, shape, length):
    """Factors of every element: some over all codes, some whose sums stay finite."""
    if rng.random() < 0.4:
        return [factors(rng, fmt, math.prod(shape) * length).reshape(*shape, length) for _ in "ab"]
    return [golden.encode(rng.normal(size=(*shape, length)) * 2.0 ** rng.integers(-2, 2), fmt) for _ in "ab"]


def random_reductions(bench, unit, rng, count, chunk, lengths=(1, 1, 2, 3, 4, 5, 7, 9)):
    """Beats of reductions interleaved over the pairs of registers, and the results to expect of each register."""
    queues = [[] for _ in range(unit.registers // 2)]
    wanted = {}
    for _ in range(count):
        pair, level = rng.integers(len(queues)), int(rng.choice(unit.levels))
        number = int(rng.integers(len(unit.operands)))
        register = int(2 * pair + (rng.integers(2) if level in bench.ODD else 0))
        where, state = {"register": register, "level": level, "format": number}, None
        while state is None or rng.random() < 0.3:  # continued after `last`
            length = int(rng.choice(lengths))
            a, b = random_factors(rng, unit.operands[number], bench.rows(unit, level), length)
            beats = bench.reduction(a, b, **where)
            queues[pair] += beats if state is None else [beat._replace(first=False) for beat in beats]
            results, state = bench.answers(unit, a, b, chunk=chunk, state=state, **where)
            wanted.setdefault(register, []).extend(results)
    beats = []
    while queues := [queue for queue in queues if queue]:
        beats.append(queues[rng.integers(len(queues))].pop(0))
    return beats, wanted


def assert_results(done, wanted):
    assert {register: done.of(register) for register in wanted} == wanted
    assert len(done.results) == sum(map(len, wanted.values()))


BENCHES = pytest.mark.parametrize("bench", [mac_bench, vector_bench], ids=name_of)
CASES = [*((mac_bench, build, None) for build in BUILDS), *((vector_bench, *build) for build in VECTOR_BUILDS)]
#: All but the first vector units.
LONG = range(len(BUILDS) + 3, len(CASES))


def ones(bench, unit, level):
    """Return the operands of a reduction of a single product 1 * 1."""
    return [np.full((*bench.rows(unit, level), 1), CBFLOAT16.one, np.uint16) for _ in "ab"]


@pytest.mark.turns
@pytest.mark.parametrize(
    ("bench", "build", "chunk"),
    [pytest.param(*case, marks=[pytest.mark.long] if at in LONG else []) for at, case in enumerate(CASES)],
    ids=name_of,
)
def test_unit_on_random_reductions_gives_goldens_results_in_order(bench, build, chunk):
    unit = unit_of(bench.UNIT, **build)
    seed = CASES.index((bench, build, chunk))
    rng = np.random.default_rng([3, seed])
    if chunk is None:
        chunk = int(rng.choice([chunk for chunk in (0, 1, 2, 3, 5, 32) if chunk < 1 << unit.chunk_bits]))
    beats, wanted = random_reductions(bench, unit, rng, 60, chunk)
    # Without a pause first, then with pauses on both sides.
    idle, refuse = sometimes(0.3, seed), sometimes(0.6, seed + 100)
    done = bench.run(
        unit,
        beats,
        chunk=chunk,
        offer=lambda cycle: cycle < 150 or not idle(cycle),
        take=lambda cycle: cycle < 150 or not refuse(cycle),
    )
    assert_results(done, wanted)


@BENCHES
@pytest.mark.parametrize("chunk", [0, 1, 2, 5])
def test_long_reduction_in_chunks_of_any_length_is_goldens(bench, chunk):
    # A counter of 3 bits, so that one chunk of any length is longer than it counts.
    unit = unit_of(bench.UNIT, stages=3, chunk_bits=3)
    rng = np.random.default_rng(4)
    beats, wanted = [], {}
    for level in (0, 1, 2):
        where = {"register": 2 * level, "level": level}
        a, b = golden.encode(rng.normal(size=(2, *bench.rows(unit, level), 23)), CBFLOAT16)
        beats += bench.reduction(a, b, **where)
        wanted[2 * level], _ = bench.answers(unit, a, b, chunk=chunk, **where)
    assert_results(bench.run(unit, beats, chunk=chunk), wanted)


@pytest.mark.turns
@pytest.mark.parametrize(
    ("bench", "stages"), [(mac_bench, 1), (mac_bench, 8), (mac_bench, 12), *((vector_bench, n) for n in (1, 8, None))]
)
def test_levels_and_formats_in_turn_on_one_pair_do_not_disturb_each_other(bench, stages):
    small = {"registers": 2} if bench is mac_bench else {"lanes": 2}
    unit = unit_of(bench.UNIT, operands=HALF_FORMATS, stages=stages, **small)
    rng = np.random.default_rng(5)
    beats, wanted = [], {0: [], 1: []}
    for level, odd in [(0, 0), (1, 0), (0, 1), (2, 0), (2, 1), (1, 0), (2, 1), (0, 1), (2, 0), (0, 0), (1, 0)] * 2:
        register, number = odd if level in bench.ODD else 0, int(rng.integers(3))
        where = {"register": register, "level": level, "format": number}
        length = int(rng.integers(1, 5))
        a, b = random_factors(rng, unit.operands[number], bench.rows(unit, level), length)
        beats += bench.reduction(a, b, **where)
        wanted[register] += bench.answers(unit, a, b, chunk=2, **where)[0]
    assert_results(bench.run(unit, beats, chunk=2), wanted)


@BENCHES
@pytest.mark.parametrize("level", [0, 1, 2])
def test_empty_reduction_as_a_product_with_minus_zero_is_plus_zero(bench, level):
    unit = unit_of(bench.UNIT, stages=4)
    one, other = ones(bench, unit, level)
    beats, wanted = [], []
    for a in (one, np.full_like(one, CBFLOAT16.sign_mask)):
        beats += bench.reduction(a, other, register=2, level=level)
        wanted += bench.answers(unit, a, other, level=level, chunk=0, register=2)[0]
    assert wanted[-1].result in (0, (0,) * 2)
    assert bench.run(unit, beats).results == wanted


@pytest.mark.turns
@BENCHES
@pytest.mark.parametrize("level", [0, 1, 2])
def test_registers_hold_plus_zero_after_power_up(bench, level):
    unit = bench.UNIT(stages=4)
    # -0 * 1 + x is x, and -0 if x were -0.
    one, _ = ones(bench, unit, level)
    minus_zero = np.full_like(one, CBFLOAT16.sign_mask)
    beats, wanted = [], []
    for register in range(0, unit.registers, 1 if level in bench.ODD else 2):
        beats += [
            beat._replace(first=False) for beat in bench.reduction(minus_zero, one, register=register, level=level)
        ]
        wanted += bench.answers(unit, minus_zero, one, level=level, chunk=0, register=register)[0]
    results = bench.run(unit, beats).results
    assert results == wanted
    assert {result.result for result in results} <= {0, (0, 0)}


@BENCHES
@pytest.mark.parametrize("level", [0, 1, 2])
def test_refused_beat_reports_its_error_and_changes_nothing(bench, level):
    unit = unit_of(bench.UNIT, operands=HALF_FORMATS, stages=5, registers=8)
    rng = np.random.default_rng(7)
    a, b = golden.encode(rng.normal(size=(2, *bench.rows(unit, level), 2 * len(bench.REFUSED))), CBFLOAT16)
    (infinities,) = bench.reduction(*(np.full_like(each[..., :1], FP16.inf) for each in (a, b)))
    beats, errors = [], []
    # Between the beats of a reduction, into the same pair; as the start of a reduction and as a continuation.
    for number, beat in enumerate(bench.reduction(a, b, register=2, level=level)):
        where, error = bench.REFUSED[number % len(bench.REFUSED)]
        beats += [beat, infinities._replace(first=number < len(bench.REFUSED), **where)]
        errors.append(bench.refused(unit, error, where["register"]))
    done = bench.run(unit, beats, chunk=3)
    assert [result for result in done.results if result.error] == errors
    wanted, _ = bench.answers(unit, a, b, level=level, chunk=3, register=2)
    assert [result for result in done.results if not result.error] == wanted


@pytest.mark.turns
@BENCHES
@pytest.mark.parametrize("levels", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_level_that_was_not_built_is_unsupported(bench, levels):
    unit = unit_of(bench.UNIT, levels=levels, stages=2)
    beats, wanted = [], []
    for level in range(4):
        a, b = ones(bench, unit, level)
        beats += bench.reduction(a, b, level=level)
        if level in levels:
            wanted += bench.answers(unit, a, b, level=level, chunk=0, register=0)[0]
        else:
            wanted.append(bench.refused(unit, Error.UNSUPPORTED, 0))
    # Promotions leave later: compare without order.
    assert sorted(bench.run(unit, beats).results) == sorted(wanted)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [1, 4, 8, 11])
def test_product_without_first_after_last_continues_from_the_result(level, stages):
    unit = unit_of(MultiplyAccumulate, stages=stages)
    rng = np.random.default_rng(6)
    products, wanted, initial, raised = [], [], None, 0
    for part in range(4):
        a, b = golden.encode(rng.normal(size=(2, 3)), CBFLOAT16)
        products += [beat._replace(first=beat.first and part == 0) for beat in reduction(a, b, register=4, level=level)]
        initial, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=2, initial=initial, return_flags=True)
        raised |= int(flags)
        wanted.append((int(initial), raised, 0, 4))
    assert run(unit, products, chunk=2).results == wanted


@pytest.mark.parametrize("chunk", [0, 1])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("stages", [1, 4, 8, 11])
def test_opposite_infinity_after_nan_after_infinity_is_no_invalid_operation(stages, level, chunk):
    # A bug: the accumulator held NaN and infinity at once, and another infinity counted as infinity minus infinity.
    unit = unit_of(MultiplyAccumulate, stages=stages)
    inf, nan, minus = CBFLOAT16.inf, CBFLOAT16.nan, CBFLOAT16.sign_mask
    a = [inf, nan, inf | minus, inf]
    done = run(unit, reduction(a, [CBFLOAT16.one] * 4, register=2, level=level), chunk=chunk)
    outer = CBFLOAT16 if level == 2 else FP32
    assert done.results == [(outer.nan, 0, Error.NONE.value, 2)]
    codes = [np.array(column, np.uint16) for column in (a, [CBFLOAT16.one] * 4)]
    code, flags = golden.dot(*codes, operand=CBFLOAT16, level=level, chunk=chunk or None, return_flags=True)
    assert (int(code), int(flags)) == (outer.nan, 0)


@pytest.mark.parametrize("delay", range(14))
def test_partial_sum_read_while_a_promotion_of_its_register_is_written_is_not_the_total(delay):
    # The second product of the second chunk comes at every distance from the promotion of the first chunk.
    unit = unit_of(MultiplyAccumulate)
    rng = np.random.default_rng(21)
    a, b = golden.encode(rng.normal(size=(2, 4)), CBFLOAT16)
    done = run(unit, reduction(a, b, register=2, level=2), chunk=2, offer=lambda cycle: not 9 <= cycle < 15 + delay)
    code, flags = golden.dot(a, b, operand=CBFLOAT16, level=2, chunk=2, return_flags=True)
    assert [tuple(result) for result in done.results] == [(int(code), int(flags), 0, 2)]
