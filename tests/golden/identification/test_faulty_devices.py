"""Devices that are right in nearly all sums: none gets a model, and no statement of its report is false."""

import numpy as np
import pytest

import golden
from golden import BF16, FP32, identify
from golden.identification.consistency import SAME
from golden.identification.identify import all_probes, concluded

VERIFY = 20_000
NEGATIVE, INFINITY = BF16.sign_mask, BF16.inf


def product(a, b):
    return golden.matmul(a, b, operand=BF16, level=0)


def without(codes, is_wanted, other=0):
    return np.where(is_wanted, other, codes).astype(codes.dtype)


def with_zeros_skipped(a, b):
    """Skip the terms whose second factor is 0, as the reference BLAS does: 0 * infinity then gives no NaN."""
    values, factors = golden.decode(a, BF16), golden.decode(b, BF16)
    total = np.zeros((len(a), b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for k, row in enumerate(factors):
            sums = (total + values[:, k : k + 1].astype(np.float64) * row).astype(np.float32)
            total = np.where(row == 0, total, sums)
    return golden.encode(total, FP32)


def in_large_tiles(a, b):
    """Promote chunks of 64 where the product is large, as a kernel with another tile would."""
    if min(len(a), b.shape[1]) < 128 or len(b) < 256:
        return product(a, b)
    return golden.matmul(a, b, operand=BF16, reduction=golden.Reduction(inner=FP32, chunk=64))


def in_another_order(a, b):
    order = np.random.default_rng(a.shape[1]).permutation(a.shape[1])
    return product(a[:, order], b[order])


def in_four_chains(a, b):
    one, two, three, four = (
        golden.decode(product(np.ascontiguousarray(a[:, at::4]), np.ascontiguousarray(b[at::4])), FP32)
        for at in range(4)
    )
    with np.errstate(all="ignore"):
        return golden.encode((one + two) + (three + four), FP32)


FAULTY = {
    "sign of b ignored": lambda a, b: product(a, b & ~np.uint16(NEGATIVE)),
    "infinity and NaN in b are 0": lambda a, b: product(a, without(b, (b & ~np.uint16(NEGATIVE)) >= INFINITY)),
    "minus infinity in a is infinity": lambda a, b: product(without(a, a == NEGATIVE | INFINITY, INFINITY), b),
    "zeros in b skipped": with_zeros_skipped,
    "large tiles": in_large_tiles,
    "another order": in_another_order,
    "four chains": in_four_chains,
}


@pytest.mark.turns
@pytest.mark.parametrize("name", FAULTY)
def test_identify_device_with_a_rare_fault_gets_no_model(name):
    found = identify(FAULTY[name], operand=BF16, verify=VERIFY)
    assert found.model is None, found.text()
    assert found.failing is not None or "depend on M, N or position" in found.text()


def test_identify_failing_sum_shows_the_terms_that_make_it_fail():
    failing = identify(FAULTY["infinity and NaN in b are 0"], operand=BF16, verify=VERIFY).failing
    assert failing is not None
    assert any(y & ~NEGATIVE >= INFINITY for _, y in failing.products)


@pytest.mark.parametrize("name", ["another order", "four chains"])
def test_identify_device_with_another_order_is_not_said_to_go_from_the_first_to_the_last(name):
    report = identify(FAULTY[name], operand=BF16, verify=VERIFY).text()
    assert "Order: one product after the other, from the first to the last" not in report


def wrong_in_row_63(a, b):
    results = product(a, b)
    results[63:64] ^= 1
    return results


def test_identify_device_with_a_wrong_row_says_that_the_position_matters():
    found = identify(wrong_in_row_63, operand=BF16, verify=VERIFY)
    assert (found.model, found.failing) == (None, None)
    assert "row 63, column 0 of a product" in found.text()
    assert not {each.statement for each in found.findings} & {*SAME}


def test_identify_device_with_random_errors_says_that_results_do_not_repeat():
    random = np.random.default_rng(1)

    def device(a, b):
        results = product(a, b)
        return results ^ (random.random(results.shape) < 1e-4).astype(results.dtype)

    found = identify(device, operand=BF16, verify=VERIFY)
    assert found.model is None
    assert "not repeat" in found.text()
    assert SAME[0] not in found.text()


def test_identify_device_with_two_codes_of_nan_names_both():
    def device(a, b):
        results = product(a, b)
        is_given = BF16.is_nan(a).any(1)[:, None] | BF16.is_nan(b).any(0)
        return without(results, FP32.is_nan(results) & ~is_given, 0xFFC00000)

    found = identify(device, operand=BF16, verify=VERIFY)
    assert found.model is not None
    assert "NaNs have several codes (0x7fc00000, 0xffc00000), in the model 0x7fc00000" in found.text()


def started(a, b, start):
    return golden.matmul(a, b, operand=BF16, level=0, initial=start)


def test_identify_initial_value_added_last_is_said_to_be_so():
    def device(a, b, start):
        with np.errstate(all="ignore"):
            return golden.encode(golden.decode(product(a, b), FP32) + golden.decode(start, FP32), FP32)

    found = identify(device, operand=BF16, initial=FP32, verify=VERIFY)
    assert found.model is None
    assert "The initial value is added to the finished sum" in found.text()
    assert "Without it, the nearest model is operand=bfloat16 inner=float32 chunk=none" in found.text()


def test_identify_initial_value_wrong_in_few_sums_shows_one_of_them():
    def device(a, b, start):
        return started(a, b, without(start, start % 16384 == 500, 0x3F800000))

    found = identify(device, operand=BF16, initial=FP32, verify=300_000)
    assert found.model is None
    (about,) = (each for each in found.findings if "initial value" in each.statement)
    assert "The total starts from the initial value in all sums but few. From 0x" in about.statement


def test_identify_results_of_a_file_that_contradict_the_model_give_none():
    asked = all_probes(BF16, 0)
    answers = [(probe, product(probe.a, probe.b) * np.uint32(probe.name != "fact")) for probe in asked]
    found = concluded(answers, BF16, FP32)
    assert found.model is None
    assert found.verified == 0
