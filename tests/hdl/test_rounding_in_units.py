"""Units that are built for several rounding modes: each product is rounded in its own, and so is its promotion."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FLOAT8_E4M3FN, FP16, FP32, Rounding
from golden.formats import HALF_FORMATS
from hdl import MultiplyAccumulate, VectorMac
from hdl.axi_stream import AxiStreamMac
from hdl.verilog import to_verilog

from . import vector_bench
from .mac_bench import Product, run
from .rounded_reductions import drawn, reduced
from .simulators import sometimes

EVERY = tuple(Rounding)


def products_of(given, **where):
    end = len(given.a) - 1
    parts = zip(given.a, given.b, given.modes, given.random, given.random_promotion, strict=True)
    return [
        Product(a, b, first=k == 0, last=k == end, rounding=mode.value, random=r, random_promotion=p, **where)
        for k, (a, b, mode, r, p) in enumerate(parts)
    ]


@pytest.mark.turns
@pytest.mark.parametrize(
    ("operands", "given"),
    [
        (HALF_FORMATS, {"stages": 1, "random_bits": 5}),
        ((CBFLOAT16,), {}),
        ((FP16, BF16), {"stages": 9, "random_bits": 20}),
        ((FLOAT8_E4M3FN,), {"stages": 3}),
    ],
    ids=["stages_1", "recommended", "stages_9", "narrow"],
)
def test_reduction_with_a_mode_for_each_product_is_the_references(operands, given):
    unit = MultiplyAccumulate(operands=operands, roundings=EVERY, **given)
    rng = np.random.default_rng(11)
    products, wanted = [], []
    for index, fmt in enumerate(operands):
        for level in (0, 1, 2, 2):
            register = int(rng.integers(8)) * 2
            one = drawn(fmt, 14, EVERY, unit.random_bits, rng)
            products += products_of(one, register=register, level=level, format=index)
            options = {"level": level, "chunk": 4, "random_bits": unit.random_bits, "inner": unit.parameters.widened}
            wanted.append((*reduced(one, fmt, **options), 0, register))
    done = run(unit, products, chunk=4, offer=sometimes(0.8, 1), take=sometimes(0.5, 2))
    assert sorted(done.results) == sorted(wanted)


@pytest.mark.turns
@pytest.mark.parametrize("mode", EVERY, ids=str)
def test_unit_of_a_single_mode_has_no_choice_and_rounds_in_it(mode):
    unit = MultiplyAccumulate(roundings=mode, stages=2, random_bits=4)
    fields = unit.i.payload.shape().members
    assert "rounding" not in fields
    assert ("random" in fields) == ("random_promotion" in fields) == (mode is Rounding.STOCHASTIC)
    one = drawn(CBFLOAT16, 9, (mode,), 4, np.random.default_rng(12))
    (result,) = run(unit, products_of(one, level=1), chunk=2).results
    assert result[:2] == reduced(one, CBFLOAT16, level=1, chunk=2, random_bits=4)


def test_product_in_a_mode_that_is_not_built_is_refused_and_changes_nothing():
    unit = MultiplyAccumulate(roundings=("nearest_even", "up"), stages=3)
    one = CBFLOAT16.one
    products = [Product(one, one, level=2, first=True)]
    products += [Product(one, one, level=2, last=True, rounding=code) for code in (1, 2, 4, 5, 6, 7, 3)]
    results = [result[:3] for result in run(unit, products).results]
    assert results == [(0, 0, 2)] * 6 + [(CBFLOAT16.one + (1 << CBFLOAT16.fraction_bits), 0, 0)]


def test_exact_zero_sum_in_mode_down_is_minus_zero_also_of_a_promotion():
    unit = MultiplyAccumulate(roundings=("nearest_even", "down"), stages=3)
    one, minus = CBFLOAT16.one, CBFLOAT16.sign_mask
    for level, fmt in ((0, FP32), (1, FP32), (2, CBFLOAT16)):
        for rounding, zero in ((0, 0), (2, fmt.sign_mask)):
            where = {"level": level, "rounding": rounding}
            products = [Product(one, one, first=True, **where), Product(one, one | minus, last=True, **where)]
            (result,) = run(unit, products, chunk=1).results
            assert (result.result, result.flags) == (zero, 0)
    # An empty reduction in mode down is the product +0 * 1.0: x + 0 is x there, also for x = -0.
    products = [Product(one, one, level=2, first=True), Product(one, one | minus, level=2, rounding=2, last=True)]
    products += [Product(0, one, level=2, rounding=2, last=True)]
    assert [result.result for result in run(unit, products).results] == [minus, minus]


def test_promotion_takes_mode_and_random_number_of_the_product_that_ends_its_chunk():
    unit = MultiplyAccumulate(roundings=EVERY, stages=3)
    # 1 and, as the partial sum of a chunk, a quarter of an ulp of it: rest * 2**16 is 2**14.
    one, quarter = CBFLOAT16.one, CBFLOAT16.one - (11 << CBFLOAT16.fraction_bits)
    chunks = [Product(one, one, level=2, first=True, rounding=1)]

    def total(first, second):
        halves = [
            Product(quarter - (1 << 9), one, level=2, **first),
            Product(quarter - (1 << 9), one, level=2, **second),
        ]
        (result,) = run(
            unit, [*chunks, Product(0, one, level=2), halves[0], halves[1]._replace(last=True)], chunk=2
        ).results
        return result.result - one

    assert total({"rounding": 3}, {"rounding": 1}) == 0
    assert total({"rounding": 1}, {"rounding": 3}) == 1
    stochastic = {"rounding": 6, "random": 0, "random_promotion": 0xFFFF}
    assert total(stochastic, stochastic | {"random_promotion": 0xBFFF}) == 0
    assert total(stochastic | {"random_promotion": 0}, stochastic | {"random_promotion": 0xC000}) == 1


def test_axi_stream_unit_of_a_single_mode_rounds_in_it():
    assert AxiStreamMac(roundings="toward_zero").unit.parameters.roundings == (Rounding.TOWARD_ZERO,)


def test_verilog_header_names_the_modes_and_the_fields_that_bring_them():
    text = to_verilog(MultiplyAccumulate(roundings=("nearest_even", "stochastic"), stages=1), "mac")
    header = text[: text.index("module")]
    assert "roundings = nearest_even, stochastic" in header
    for field in ("rounding (0 nearest_even, 1 toward_zero", "random", "random_promotion"):
        assert field in header


@pytest.mark.parametrize("modes", [("nearest_even", "stochastic"), ("stochastic",)], ids=["choice", "single"])
def test_unit_of_level_0_alone_is_built_with_stochastic_and_rounds_as_the_reference(modes):
    # Nothing is promoted, so products bring no random_promotion: the unit asked for that field, and was not built.
    modes = [Rounding[mode.upper()] for mode in modes]
    unit = MultiplyAccumulate(levels=(0,), roundings=modes, stages=3)
    fields = unit.i.payload.shape().members
    assert "random" in fields
    assert "random_promotion" not in fields
    one = drawn(CBFLOAT16, 12, modes, 16, np.random.default_rng(14))
    (result,) = run(unit, products_of(one, level=0)).results
    assert result[:2] == reduced(one, CBFLOAT16, level=0, chunk=0, random_bits=16)
    # 1 + 2^-24 is half way between 0x3F800000 and 0x3F800001: 0x8000 carries, 0x7FFF does not.
    small = CBFLOAT16.one - (12 << CBFLOAT16.fraction_bits)
    for random, wanted in ((0x8000, 0x3F800001), (0x7FFF, 0x3F800000)):
        products = [Product(CBFLOAT16.one, CBFLOAT16.one, level=0, first=True, rounding=6)]
        products += [Product(small, small, level=0, last=True, rounding=6, random=random)]
        assert run(unit, products).results[0][:2] == (wanted, 1)


@pytest.mark.turns
@pytest.mark.parametrize(
    "given", [{"stages": 3}, {"lanes": 2, "random_bits": 5, "stages": 1}], ids=["lanes_4", "lanes_2"]
)
def test_vector_unit_takes_a_mode_for_each_beat_and_random_numbers_for_each_lane(given):
    given = {"lanes": 4, **given}
    unit = VectorMac(roundings=EVERY, operands=(CBFLOAT16,), **given)
    rng = np.random.default_rng(13)
    beats, wanted = [], []
    for level in (0, 1, 2, 1):
        register, count = int(rng.integers(8)) * 2, vector_bench.elements(unit, level)
        lanes = [drawn(CBFLOAT16, 11, EVERY, unit.random_bits, rng) for _ in range(count)]
        for lane in lanes:
            lane.modes = lanes[0].modes
        columns = {
            name: [tuple(getattr(lane, name)[k] for lane in lanes) for k in range(11)]
            for name in ("a", "b", "random", "random_promotion")
        }
        beats += [
            vector_bench.Beat(
                **{name: column[k] for name, column in columns.items()},
                register=register, level=level, first=k == 0, last=k == 10, rounding=lanes[0].modes[k].value,
            )
            for k in range(11)
        ]  # fmt: skip
        results = [reduced(lane, CBFLOAT16, level=level, chunk=3, random_bits=unit.random_bits) for lane in lanes]
        codes, flags = ([pair[at] for pair in results] for at in (0, 1))
        wanted += vector_bench.beats_of(unit, codes, flags, level=level, register=register)
    done = vector_bench.run(unit, beats, chunk=3, offer=sometimes(0.8, 1), take=sometimes(0.5, 2))
    assert sorted(done.results) == sorted(wanted)


def test_vector_beat_in_a_mode_that_is_not_built_is_refused():
    unit = VectorMac(operands=(CBFLOAT16,), roundings=("nearest_even", "up"), lanes=2, stages=3)
    ones = (CBFLOAT16.one,) * 2
    beats = [vector_bench.Beat(ones, ones, level=2, first=True, last=True, rounding=code) for code in (1, 3)]
    assert [result.error for result in vector_bench.run(unit, beats).results] == [2, 0]
