"""The tree of a sum is found from single small terms, for any order of the products and any rounding of sums."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import Accumulator, FusedSum
from golden.identification.climb import Search, sparse_probe
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
