"""The multiply-accumulate unit on streams of reductions: every result and its flags equal `golden.dot`."""

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat
from golden.formats import HALF_FORMATS
from hdl import Error, MultiplyAccumulate
from lab.exhaustive.operands import factors

from .mac_bench import Product, reduction, run
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
]


def name_of(build):
    return "-".join(
        f"{key}={'+'.join(map(str, value)) if isinstance(value, tuple) else value}" for key, value in build.items()
    )


def random_reductions(unit, rng, count, chunk):
    """Products of reductions interleaved over the pairs of registers, and the results to expect of each register."""
    queues = [[] for _ in range(unit.registers // 2)]
    wanted = {}
    for _ in range(count):
        pair, level, number = rng.integers(len(queues)), int(rng.choice(unit.levels)), rng.integers(len(unit.operands))
        register = int(2 * pair + (rng.integers(2) if level == 2 else 0))
        fmt, length = unit.operands[number], int(rng.choice([1, 1, 2, 3, 5, 9]))
        if rng.random() < 0.5:
            a, b = factors(rng, fmt, length), factors(rng, fmt, length)
        else:  # results that stay finite
            a, b = (golden.encode(rng.normal(size=length) * 2.0 ** rng.integers(-2, 2), fmt) for _ in "ab")
        queues[pair] += reduction(a, b, register=register, level=level, format=int(number))
        plan = golden.Reduction.for_level(level, fmt, chunk=chunk or None, inner=fmt)
        code, flags = golden.dot(a, b, operand=fmt, reduction=plan, return_flags=True)
        wanted.setdefault(register, []).append((int(code), int(flags) if unit.flags else 0, Error.NONE.value, register))
    products = []
    while queues := [queue for queue in queues if queue]:
        products.append(queues[rng.integers(len(queues))].pop(0))
    return products, wanted


@pytest.mark.parametrize("build", BUILDS, ids=name_of)
def test_unit_on_random_reductions_gives_goldens_results_in_order(build):
    unit = unit_of(MultiplyAccumulate, **build)
    seed = BUILDS.index(build)
    rng = np.random.default_rng([3, seed])
    chunk = int(rng.choice([chunk for chunk in (0, 1, 2, 3, 5, 32) if chunk < 1 << unit.chunk_bits]))
    products, wanted = random_reductions(unit, rng, 60, chunk)
    # Without a pause first, then with pauses on both sides.
    idle, refuse = sometimes(0.3, seed), sometimes(0.6, seed + 100)
    done = run(
        unit,
        products,
        chunk=chunk,
        offer=lambda cycle: cycle < 150 or not idle(cycle),
        take=lambda cycle: cycle < 150 or not refuse(cycle),
    )
    assert {register: done.of(register) for register in wanted} == wanted
    assert len(done.results) == sum(map(len, wanted.values()))


@pytest.mark.parametrize("chunk", [0, 1, 2, 5])
def test_long_reduction_in_chunks_of_any_length_is_goldens(chunk):
    # A counter of 3 bits, so that one chunk of any length is longer than it counts.
    unit = unit_of(MultiplyAccumulate, stages=3, chunk_bits=3)
    rng = np.random.default_rng(4)
    products, wanted = [], []
    for level in (0, 1, 2):
        a, b = golden.encode(rng.normal(size=(2, 23)), CBFLOAT16)
        products += reduction(a, b, register=2 * level, level=level)
        code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=chunk or None, return_flags=True)
        wanted.append((int(code), int(flags), 0, 2 * level))
    assert run(unit, products, chunk=chunk).results == wanted


@pytest.mark.parametrize("stages", [1, 8, 12])
def test_levels_and_formats_in_turn_on_one_pair_do_not_disturb_each_other(stages):
    unit = unit_of(MultiplyAccumulate, operands=HALF_FORMATS, stages=stages, registers=2)
    rng = np.random.default_rng(5)
    products, wanted = [], {0: [], 1: []}
    for level, register in [(0, 0), (1, 0), (0, 0), (2, 0), (2, 1), (1, 0), (2, 1), (0, 0), (2, 0), (0, 0), (1, 0)] * 2:
        number = int(rng.integers(3))
        a, b = golden.encode(rng.normal(size=(2, int(rng.integers(1, 5)))), unit.operands[number])
        products += reduction(a, b, register=register, level=level, format=number)
        code, flags = golden.dot(a, b, operand=unit.operands[number], level=level, chunk=2, return_flags=True)
        wanted[register].append((int(code), int(flags), 0, register))
    done = run(unit, products, chunk=2)
    assert {register: done.of(register) for register in wanted} == wanted


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
    # The accumulator held NaN and infinity at once, and one more infinity was taken for infinity minus infinity.
    unit = unit_of(MultiplyAccumulate, stages=stages)
    inf, nan, minus = CBFLOAT16.inf, CBFLOAT16.nan, CBFLOAT16.sign_mask
    a = [inf, nan, inf | minus, inf]
    done = run(unit, reduction(a, [CBFLOAT16.one] * 4, register=2, level=level), chunk=chunk)
    outer = CBFLOAT16 if level == 2 else FP32
    assert done.results == [(outer.nan, 0, Error.NONE.value, 2)]
    codes = [np.array(column, np.uint16) for column in (a, [CBFLOAT16.one] * 4)]
    code, flags = golden.dot(*codes, operand=CBFLOAT16, level=level, chunk=chunk or None, return_flags=True)
    assert (int(code), int(flags)) == (outer.nan, 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_empty_reduction_as_a_product_with_minus_zero_is_plus_zero(level):
    unit = unit_of(MultiplyAccumulate, stages=4)
    empty = Product(CBFLOAT16.sign_mask, CBFLOAT16.one, register=2, level=level, first=True, last=True)
    one = empty._replace(a=CBFLOAT16.one)
    done = run(unit, [one, empty])
    assert [result[:2] for result in done.results] == [(0x3F800000 if level < 2 else CBFLOAT16.one, 0), (0, 0)]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_registers_hold_plus_zero_after_power_up(level):
    unit = MultiplyAccumulate(stages=4, registers=8)
    registers = range(0, 8, 1 if level == 2 else 2)
    # -0 * 1 + x is x, and -0 if x were -0.
    minus_zero = [Product(CBFLOAT16.sign_mask, CBFLOAT16.one, register, level, last=True) for register in registers]
    assert run(unit, minus_zero).results == [(0, 0, 0, register) for register in registers]


# Where the product goes that is refused, and why.
REFUSED = [
    ({"level": 0, "register": 3}, Error.ALIGNMENT),
    ({"level": 1, "register": 3}, Error.ALIGNMENT),
    ({"level": 3, "register": 2}, Error.UNSUPPORTED),
    ({"level": 2, "register": 2, "format": 3}, Error.UNSUPPORTED),
    ({"level": 0, "register": 3, "format": 3}, Error.UNSUPPORTED),
]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_refused_product_reports_its_error_and_changes_nothing(level):
    unit = unit_of(MultiplyAccumulate, operands=HALF_FORMATS, stages=5, registers=4)
    rng = np.random.default_rng(7)
    a, b = golden.encode(rng.normal(size=(2, 2 * len(REFUSED))), CBFLOAT16)
    infinities = Product(FP16.inf, FP16.inf, last=True)
    products, errors = [], []
    # Between the products of a reduction, into the same pair; as the start of a reduction and as a continuation.
    for number, beat in enumerate(reduction(a, b, register=2, level=level)):
        where, error = REFUSED[number % len(REFUSED)]
        products += [beat, infinities._replace(first=number < len(REFUSED), **where)]
        errors.append((0, 0, error.value, where["register"]))
    done = run(unit, products, chunk=3)
    assert [result for result in done.results if result.error] == errors
    code, flags = golden.dot(a, b, operand=CBFLOAT16, level=level, chunk=3, return_flags=True)
    assert [result for result in done.results if not result.error] == [(int(code), int(flags), 0, 2)]


@pytest.mark.parametrize("levels", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_level_that_was_not_built_is_unsupported(levels):
    unit = unit_of(MultiplyAccumulate, levels=levels, stages=2)
    one = CBFLOAT16.one
    products = [Product(one, one, level=level, first=True, last=True) for level in range(4)]
    results = run(unit, products).results
    errors = {level: Error.NONE if level in levels else Error.UNSUPPORTED for level in range(4)}
    # Promotions leave later: compare without order.
    assert sorted(result.error for result in results) == sorted(error.value for error in errors.values())
    wanted = {0x3F800000 if level < 2 else one for level in levels}
    assert {result.result for result in results if not result.error} == wanted


@pytest.mark.parametrize("delay", range(14))
def test_partial_sum_read_while_a_promotion_of_its_register_is_written_is_not_the_total(delay):
    # The second product of the second chunk comes at every distance from the promotion of the first chunk.
    unit = unit_of(MultiplyAccumulate)
    rng = np.random.default_rng(21)
    a, b = golden.encode(rng.normal(size=(2, 4)), CBFLOAT16)
    done = run(unit, reduction(a, b, register=2, level=2), chunk=2, offer=lambda cycle: not 9 <= cycle < 15 + delay)
    code, flags = golden.dot(a, b, operand=CBFLOAT16, level=2, chunk=2, return_flags=True)
    assert [tuple(result) for result in done.results] == [(int(code), int(flags), 0, 2)]
