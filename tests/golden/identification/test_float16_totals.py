"""Devices with results in float16 are identified blind, with a total in float16 or in float32."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import FLOAT8_E5M2, FP16, FP32, Accumulator, FusedSum, accumulators, identify
from golden.identification.device import Device
from golden.identification.fit import variations
from golden.identification.order import order_of, structures
from golden.identification.probes import probes, units
from golden.identification.survivors import dissected

VERIFY = 20_000
HOPPER = accumulators["nvidia_hopper_into_fp16"]
#: Unlike every preset: twelve shuffled products in two sums, which join the total one after the other, to odd.
ODD = Accumulator(
    16,
    12,
    FusedSum(3, rounding="to_odd", result=FP16, chain=True),
    stages=(FusedSum(6, 18, rounding="toward_zero"),),
    order=(7, 2, 9, 0, 4, 11, 1, 3, 10, 5, 8, 6),
    nan=0x7E01,
)
NARROW = Accumulator(8, 10, FusedSum(11, 9, rounding="nearest_even", result=FP16), nan=FP16.nan)


def device(rule, operand, **options):
    return lambda a, b: golden.matmul(a, b, operand=operand, reduction=rule, **options)


def test_identify_tensor_core_into_float16_returns_its_preset():
    found = identify(device(HOPPER, FP16), operand=FP16, verify=VERIFY)
    assert (found.model, found.name, found.verified) == (HOPPER, "nvidia_hopper_into_fp16", VERIFY)
    statements = [each.statement for each in found.findings]
    assert not any("A NaN has the code" in each for each in statements)
    assert "Sums of 1 and quarters of its last place round as nearest_even does." in statements


@pytest.mark.long
@pytest.mark.parametrize(("rule", "operand"), [(ODD, FP16), (NARROW, FLOAT8_E5M2)], ids=["shuffled", "fp8"])
def test_identify_rule_into_float16_unlike_every_preset_returns_its_sums(rule, operand):
    found = identify(device(rule, operand), operand=operand, verify=VERIFY)
    assert found.model is not None, found.text()
    assert (found.verified, found.out, found.model.outer, found.model.nan) == (VERIFY, FP16, FP16, rule.nan)
    assert (found.model.block, found.model.join.rounding) == (rule.block, rule.join.rounding)


def test_identify_float32_total_converted_to_float16_is_not_taken_for_one_in_float16():
    rule = accumulators["nvidia_hopper"]
    found = identify(device(rule, FP16, out=FP16), operand=FP16, verify=VERIFY)
    assert found.model == rule
    assert str(found.reduction).endswith("accumulator=nvidia_hopper out=float16")


@pytest.mark.long
def test_identify_tensor_core_with_another_rounding_in_a_thousand_sums_finds_no_model():
    def faulty(a, b):
        result = golden.matmul(a, b, operand=FP16, reduction=HOPPER)
        cut = replace(HOPPER, join=replace(HOPPER.join, rounding="toward_zero"))
        other = golden.matmul(a, b, operand=FP16, reduction=cut)
        return np.where((a[:, -1:] & 0x7F) == 0x7D, other, result)

    assert identify(faulty, operand=FP16, verify=VERIFY).model is None


def test_identify_total_in_float16_that_starts_at_an_initial_value_says_so():
    def multiply(a, b, start):
        return golden.matmul(a, b, operand=FP16, reduction=HOPPER, initial=start)

    found = identify(multiply, operand=FP16, initial="float16", verify=VERIFY)
    assert found.model == HOPPER
    assert "The initial value is where the total starts." in [each.statement for each in found.findings]


def test_identify_nan_of_another_code_becomes_the_models():
    rule = replace(HOPPER, nan=0x7E00)
    found = identify(device(rule, FP16), operand=FP16, verify=VERIFY)
    assert found.model == rule != HOPPER


def test_dissected_total_in_float16_that_large_terms_would_overflow_has_its_tree():
    # With 2^30 at one place the total became infinite behind its block, and every later term counted as lost.
    asked = Device(device(ODD, FP16), FP16, values=False)
    found = list(dissected(asked.product, FP16, FP16))
    assert [each.outer for each in found[:2]] == [FP16, FP32]
    assert all((each.block, [stage.terms for stage in each.stages]) == (12, [6]) for each in found[:2])


def test_structures_leave_out_a_tree_that_no_stages_form():
    # It was a ValueError of Accumulator, and no report: join: got 3 terms, must be 4.
    rule = replace(ODD, join=FusedSum(3, 21, "down", "to_odd", FP16), stages=(FusedSum(6, 18, rounding="toward_zero"),))
    asked = [probe for probe in probes(FP16, 0) if probe.name != "hard"]
    results = [golden.matmul(each.a, each.b, operand=FP16, reduction=rule) for each in asked]
    order = order_of(asked, results, FP16, units(FP16))
    assert order is not None
    assert {each.block for each in structures(order, FP16)} <= {1, 2, 3, 4, 6, 12}


def test_variations_of_a_rule_into_float16_stay_in_float16():
    made = [rule for joint in (False, True) for group in variations(ODD, joint) for rule in group]
    assert {rule.outer for rule in made} == {FP16}
    assert {rule.join.rounding.name for rule in made} == {"NEAREST_EVEN", "TOWARD_ZERO", "TO_ODD"}
