"""The tree of a sum is found from single small terms, for any order of the products and any rounding of sums."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import Accumulator, FusedSum
from golden.identification.climb import Search, _Near, sparse_probe
from golden.identification.device import Device
from golden.identification.fit import Examples, variations
from golden.identification.probes import Probe, probes
from golden.identification.survivors import dissected
from golden.kernels.accumulators import _MOST_STAGES, serves

ORDER = (7, 2, 9, 0, 4, 11, 1, 3, 10, 5, 8, 6)
TO_ODD = {"rounding": "to_odd"}
RULE = Accumulator(
    16,
    12,
    FusedSum(3, chain=True, rounding="toward_zero"),
    stages=(FusedSum(3, 24, "to_odd", None), FusedSum(2, **TO_ODD)),
    order=ORDER,
    promote_every=96,
)


def device_of(rule, operand=golden.BF16):
    def multiply(a, b):
        return golden.matmul(a, b, operand=operand, reduction=rule)

    return Device(multiply, operand, values=False)


def groups(rule, size):
    order = rule.order or tuple(range(rule.block))
    return {frozenset(order[at : at + size]) for at in range(0, rule.block, size)}


def test_dissected_device_with_shuffled_products_and_stages_to_odd_has_its_tree():
    found = next(dissected(device_of(RULE).product, golden.BF16, golden.FP32))
    assert (found.block, found.promote_every, found.join.terms) == (12, 96, 3)
    assert [stage.terms for stage in found.stages] == [3, 2]
    assert groups(found, 3) == groups(RULE, 3)
    assert groups(found, 6) == groups(RULE, 6)


@pytest.mark.parametrize("operand", [golden.FLOAT8_E5M2, golden.FLOAT8_E4M3FN])
def test_dissected_device_that_loses_subnormal_factors_has_its_tree(operand):
    rule = Accumulator(8, 10, FusedSum(2), stages=(FusedSum(10, 20, rounding="to_odd"),), flush="signed")
    found = next(dissected(device_of(rule, operand).product, operand, golden.FP32))
    assert (found.block, [stage.terms for stage in found.stages]) == (10, [10])


def test_dissected_device_whose_results_are_all_zero_has_no_tree():
    def zeros(a, b):
        return np.zeros((a.shape[0], b.shape[1]), np.uint32)

    device = Device(zeros, golden.BF16, values=False)
    assert list(dissected(device.product, golden.BF16, golden.FP32)) == []


@pytest.mark.parametrize("blocks", [1, 3])
def test_sparse_probe_of_one_node_has_its_terms_alone(blocks):
    random = np.random.default_rng(1)
    probe = sparse_probe(random, golden.BF16, RULE, [3], blocks)
    assert probe.a.shape[1] == 12 * blocks
    for row in probe.a:
        places = np.nonzero(row)[0]
        assert len(places) >= 1
        if blocks == 1:
            assert any(set(places) <= group for group in groups(RULE, 3))


def test_sparse_probe_has_rows_of_long_fractions_and_rows_of_half_ones():
    probe = sparse_probe(np.random.default_rng(1), golden.BF16, RULE, [3], 1)
    fractions = [row[row != 0] & 0x7F for row in probe.a]
    are_short = [(each & 0x3F == 0).all() for each in fractions]
    assert 0 < sum(are_short) < len(are_short) / 2


def test_distance_of_results_is_0_if_equal_and_up_to_1_the_more_bits_differ():
    near = _Near([], [], golden.BF16, golden.FP32)
    one, largest, minus = golden.FP32.one, golden.FP32.max_finite, golden.FP32.sign_mask
    given = np.array([one, one, one, one, minus | largest], np.uint32)
    wanted = np.array([one, one + 1, one + 255, minus | one, largest], np.uint32)
    distances = near.distances(given, wanted)
    assert distances[0] == 0
    assert distances[1] == pytest.approx(0.25 + 0.75 / 32)
    assert distances[2] == pytest.approx(0.25 + 0.75 * 8 / 32)
    assert 0.9 < distances[3] < distances[4] <= 1


def test_search_asks_for_sums_within_a_block_and_then_of_several_blocks():
    lengths, device = [], device_of(Accumulator(16, 4, FusedSum(5, 24)))

    def recorded(probe):
        if probe.name == "sparse":
            lengths.append(probe.a.shape[1])
        return Device.product(device, probe)

    device.product = recorded
    asked = [each for each in probes(golden.BF16, 0) if each.name == "hard"][:2]
    examples = Examples(asked, [Device.product(device, each) for each in asked], golden.BF16, golden.FP32)
    assert Search(device, golden.BF16, golden.FP32).found(examples).share == 1.0
    assert (set(lengths), lengths[0], lengths[-1]) == ({4, 12}, 4, 12)


@pytest.mark.parametrize("count", [_MOST_STAGES - 1, _MOST_STAGES])
def test_variations_of_a_rule_with_the_most_stages_are_served_by_the_kernels(count):
    rule = replace(RULE, stages=(FusedSum(1, chain=True),) * (count - 2) + RULE.stages)
    made = [each for joint in (False, True) for group in variations(rule, joint) for each in group]
    assert max(len(each.stages) for each in made) == _MOST_STAGES
    assert all(map(serves, made))
    assert not serves(replace(rule, stages=(FusedSum(1, chain=True),) * (_MOST_STAGES - 1) + RULE.stages))


def test_search_of_a_device_of_the_family_computes_its_sums_and_that_of_another_does_not():
    device = device_of(RULE)
    asked = [each for each in probes(golden.BF16, 0) if each.name == "hard"][:20]
    examples = Examples(asked, [device.product(each) for each in asked], golden.BF16, golden.FP32)
    found = Search(device, golden.BF16, golden.FP32).found(examples)
    assert found.share == 1.0

    def other(a, b):  # the sum of an even code has one ulp more
        codes = device.product(Probe("hard", a, b))
        return codes + (codes % 2 == 0) * (codes > 0)

    outside = Device(other, golden.BF16, values=False)
    wrong = Examples(asked, [outside.product(each) for each in asked], golden.BF16, golden.FP32)
    found = Search(outside, golden.BF16, golden.FP32).found(wrong)
    assert found is None or found.share < 1.0
