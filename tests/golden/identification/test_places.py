"""Devices whose results depend on M, N, place or chance get no model; the report names the dependence."""

import numpy as np
import pytest

import golden
from golden import BF16, FP16, FP32, Reduction, identify
from golden.identification.consistency import consistency_probes, shaped_probe
from golden.identification.device import Device
from golden.identification.fit import Examples
from golden.identification.probes import KINDS
from golden.identification.verification import LENGTHS, verified

VERIFY = 20_000


def exact(a, b):
    return golden.matmul(a, b, operand=BF16, level=0)


def other_with_one_row(a, b):
    return golden.matmul(a, b, operand=BF16, level=0 if a.shape[0] > 1 else 1)


def other_with_one_column(a, b):
    return golden.matmul(a, b, operand=BF16, level=0 if b.shape[1] > 1 else 1)


def other_in_wide_products(a, b):
    return golden.matmul(a, b, operand=BF16, level=1 if b.shape[1] > 150 else 0)


def other_in_the_last_columns(a, b):
    result = exact(a, b)
    result[:, 16:] = golden.matmul(a, np.ascontiguousarray(b[:, 16:]), operand=BF16, level=1)
    return result


def split_beyond_2048(a, b):
    if a.shape[1] <= 2048:
        return exact(a, b)
    first = exact(a[:, :2048], b[:2048])
    return golden.matmul(a[:, 2048:], b[2048:], operand=BF16, level=0, initial=first) ^ np.uint32(1)


@pytest.mark.parametrize(
    ("device", "statement"),
    [
        (other_with_one_row, "Results depend on M or N"),
        (other_with_one_column, "Results depend on M or N"),
        (other_in_the_last_columns, "Results depend on their place"),
        (other_in_wide_products, "Results depend on M, N or position"),
    ],
)
def test_identify_device_that_depends_on_shape_or_place_says_so_and_gives_no_model(device, statement):
    found = identify(device, operand=BF16, verify=VERIFY)
    assert found.model is None
    assert any(each.statement.startswith(statement) for each in found.findings), found.text()


@pytest.mark.long
def test_identify_device_that_is_other_in_long_sums_gives_no_model():
    assert identify(split_beyond_2048, operand=BF16, verify=0).model is None
    assert identify(exact, operand=BF16, verify=0).model is not None


def rounded_at_random(seed):
    """Return a device that takes its random bits from its place, the same ones in every call; or always others."""
    random = np.random.default_rng(7)

    def device(a, b):
        key = seed if seed is not None else int(random.integers(2**32))
        return golden.matmul(a, b, operand=FP16, level=2, rounding="stochastic", seed=key)

    return device


def test_shaped_probe_repeats_columns_or_rows_after_eight():
    random, seen = np.random.default_rng(3), set()
    for number in range(20):
        probe = shaped_probe(random, BF16, (20, 33, 24), 1 + number % (KINDS - 1))
        assert (probe.a.shape, probe.b.shape) == ((20, 33), (33, 24))
        columns, rows = ((each[8:16] == each[:8]).all() for each in (probe.b.T, probe.a))
        seen.add((bool(columns), bool(rows)))
    assert seen == {(True, False), (False, True)}


@pytest.mark.parametrize("operand", [BF16, FP16], ids=str)
def test_probes_of_chance_are_sums_of_1_and_the_part_that_they_name(operand):
    asked = consistency_probes(operand, np.random.default_rng(1))
    found = [each for each in asked if each.name == "part of a unit"]
    assert [each.about for each in found] == [(bits, part) for bits in (10, 9, 7, 23) for part in (0.25, 0.75)]
    for probe in found:
        bits, part = probe.about
        sums = golden.decode(probe.a, operand).astype(np.float64) @ golden.decode(probe.b, operand).astype(np.float64)
        assert (sums == 1 + part * 2.0**-bits).all()


@pytest.mark.parametrize("seed", [None, 11])
def test_identify_stochastic_device_states_how_often_it_rounds_up(seed):
    found = identify(rounded_at_random(seed), operand=FP16, verify=VERIFY)
    assert found.model is None
    statements = [each.statement for each in found.findings]
    assert ("Results do not repeat." in statements) == (seed is None)
    assert "Results depend on their place." in statements
    chances = [each for each in statements if each.startswith("Rounding is random")]
    assert chances
    assert all(each.endswith("as stochastic rounding does.") for each in chances)


def test_identify_device_that_rounds_at_random_but_not_by_distance_says_so():
    random = np.random.default_rng(5)

    def device(a, b):
        low = golden.matmul(a, b, operand=FP16, level=2, rounding="down")
        high = golden.matmul(a, b, operand=FP16, level=2, rounding="up")
        return np.where(random.random(low.shape) < 0.5, low, high)

    found = identify(device, operand=FP16, verify=VERIFY)
    assert found.model is None
    chances = [each.statement for each in found.findings if each.statement.startswith("Rounding is random")]
    assert chances
    assert all(each.endswith("unlike stochastic rounding.") for each in chances)


def from_the_start(a, b, start):
    return golden.matmul(a, b, operand=BF16, level=1, initial=start)


def behind_the_end(a, b, start):
    with np.errstate(all="ignore"):
        sums = golden.decode(golden.matmul(a, b, operand=BF16, level=1), FP32)
        return golden.encode(sums + golden.decode(start, FP32), FP32)


def never(a, b, start):
    del start
    return golden.matmul(a, b, operand=BF16, level=1)


def behind_one_product(a, b, start):
    rest = golden.matmul(a[:, 1:], b[1:], operand=BF16, level=0)
    ones = golden.matmul(a[:, :1], b[:1], operand=BF16, level=0, initial=start)
    with np.errstate(all="ignore"):
        return golden.encode(golden.decode(rest, FP32) + golden.decode(ones, FP32), FP32)


def test_identify_initial_value_from_which_the_total_starts_is_said_and_verified():
    found = identify(from_the_start, operand=BF16, initial="float32", verify=VERIFY)
    assert found.model == golden.Reduction.parse("operand=bfloat16 inner=bfloat16 chunk=32 outer=float32 out=float32")
    assert "The initial value is where the total starts." in [each.statement for each in found.findings]


@pytest.mark.parametrize(
    ("device", "where"),
    [
        (behind_the_end, "The initial value is added to the finished sum."),
        (never, "The initial value joins neither before the first product nor after the last."),
    ],
)
def test_identify_initial_value_that_joins_elsewhere_is_said_and_gives_no_model(device, where):
    found = identify(device, operand=BF16, initial=FP32, verify=VERIFY)
    assert found.model is None
    assert any(each.statement.startswith(where) for each in found.findings), found.text()


@pytest.mark.long
def test_identify_initial_value_amid_the_sum_gives_no_model():
    assert identify(behind_one_product, operand=BF16, initial=FP32, verify=VERIFY).model is None


def test_identify_initial_value_in_another_format_than_the_total_gives_no_model():
    def device(a, b, start):
        return from_the_start(a, b, golden.convert(start, FP16, FP32))

    found = identify(device, operand=BF16, initial=FP16, verify=VERIFY)
    assert found.model is None
    assert "The initial value is in float16, the total of the model in float32." in found.text()


def test_few_sums_of_verification_are_of_every_length():
    lengths = []

    def asked(a, b):
        lengths.append(a.shape[1])
        return golden.matmul(a, b, operand=BF16, level=1)

    device = Device(asked, BF16, values=False, initial=None)
    count, wrong = verified(
        Reduction.for_level(1, BF16), Examples([], [], BF16, FP32), device, seed=0, verify=20_000, say=str
    )
    assert (count, wrong) == (20_000, None)
    assert len(lengths) > 100
    assert set(LENGTHS) <= set(lengths)
