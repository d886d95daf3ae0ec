"""What single sums show, against devices whose properties are known."""

import numpy as np
import pytest

import golden
from golden import BF16, CB16, DLFLOAT16, FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FP16, FP32, Reduction
from golden.identification.facts import fact_probes, facts


def exact(a, b, operand):
    return golden.decode(golden.matmul(a, b, operand=operand, level=0), FP32)


def of_rounded_products(a, b, operand):
    with np.errstate(all="ignore"):
        products = golden.decode(a, operand)[:, :, np.newaxis] * golden.decode(b, operand)
        return golden.quantize(products, operand).sum(1, dtype=np.float32)


@pytest.mark.parametrize("operand", [FP16, BF16, FLOAT8_E5M2], ids=str)
@pytest.mark.parametrize(("device", "word"), [(exact, "kept"), (of_rounded_products, "lost")])
def test_last_bit_of_a_product_is_said_to_be_kept_or_lost(operand, device, word):
    asked = fact_probes(operand)
    results = [golden.encode(device(each.a, each.b, operand), FP32) for each in asked]
    said = [each.statement for each in facts(asked, results, operand, FP32)]
    assert len([each for each in said if each.startswith(f"The last bit of a product is {word}")]) == 1


def said_of(device, operand, out=FP32):
    asked = fact_probes(operand)
    return [each.statement for each in facts(asked, [device(each.a, each.b) for each in asked], operand, out)]


def test_product_rounded_up_is_said_to_be_rounded():
    model = Reduction(BF16, 1, FP32, operand=BF16, out=FP32, rounding="up")
    said = said_of(lambda a, b: golden.matmul(a, b, operand=BF16, reduction=model), BF16)
    assert "The last bit of a product is rounded: the sum is 0.015625, exactly 6.10352e-05." in said


@pytest.mark.parametrize("flushed", ["first", "second"])
def test_flush_of_one_factor_alone_is_said_of_that_factor(flushed):
    def device(a, b):
        codes = {"first": a, "second": b}
        codes[flushed] = np.where(codes[flushed] & 0x7F80, codes[flushed], 0).astype(np.uint16)
        return golden.matmul(codes["first"], codes["second"], operand=BF16, level=0)

    said = said_of(device, BF16)
    assert f"A subnormal number as the {flushed} factor is flushed to zero." in said
    assert len([each for each in said if each.startswith("A subnormal number")]) == 2
    assert not any(each.startswith("Subnormal operands") for each in said)


@pytest.mark.parametrize(("operand", "out", "level"), [(FP16, FP32, 1), (DLFLOAT16, FP32, 0)], ids=str)
def test_results_that_end_at_the_format_of_a_partial_sum_are_not_said_to_be_flushed(operand, out, level):
    said = said_of(lambda a, b: golden.matmul(a, b, operand=operand, level=level, out=out), operand)
    assert not any("flushed" in each for each in said)
    assert any("smallest power of two" in each for each in said) == (operand == FP16)


@pytest.mark.parametrize(("operand", "out"), [(FP16, FLOAT8_E4M3FN), (CB16, FP16), (BF16, FLOAT8_E4M3FN)], ids=str)
def test_terms_below_the_results_are_not_said_to_be_flushed_or_rounded(operand, out):
    model = Reduction(FP32, None, FP32, operand=operand, out=out)
    said = said_of(lambda a, b: golden.matmul(a, b, operand=operand, reduction=model), operand, out)
    wrong = ("Subnormal operands are flushed", "The last bit of a product is lost")
    assert not any(each.startswith(wrong) for each in said)


def test_products_of_all_bits_but_one_are_said_to_be_rounded():
    fifteen = golden.FloatFormat("fifteen", 8, 14)

    def device(a, b):
        with np.errstate(all="ignore"):
            products = golden.decode(a, BF16)[:, :, np.newaxis] * golden.decode(b, BF16)
            return golden.encode(golden.quantize(products, fifteen).sum(1, dtype=np.float32), FP32)

    assert any(each.startswith("The last bit of a product is lost") for each in said_of(device, BF16))


def test_zero_skipped_beside_infinity_is_said():
    def device(a, b):
        codes = golden.matmul(a, b, operand=FP16, level=0)
        met = (a[:, :, np.newaxis] == 0) & (b == FP16.inf)
        return np.where(met.any(1), 0, codes).astype(np.uint32)

    assert "0 * inf gives no NaN, 0x0." in said_of(device, FP16)
    assert "inf * 0 gives the canonical NaN, 0x7fc00000." in said_of(device, FP16)


def test_terms_smaller_than_any_product_of_normal_numbers_are_said_to_be_untried():
    said = said_of(lambda a, b: golden.matmul(a, b, operand=FLOAT8_E4M3FN, level=0), FLOAT8_E4M3FN)
    untried = "smaller terms were not tried."
    assert f"A sum of 1 keeps a term down to 2^-12: at least 12 fraction bits; {untried}" in said
    assert not any(each.startswith("Sums of 1") for each in said)


def test_lanes_that_round_to_nearest_are_not_said_to_round_toward_zero():
    rule = golden.accumulators["x86_tdpbf16ps"]
    said = said_of(lambda a, b: golden.matmul(a, b, operand=BF16, reduction=rule), BF16)
    assert "Sums of 1 and quarters of its last place round as nearest_even does." in said
    assert "Of the first three products 1, 2^-44, -1 the small term comes out; smaller terms were not tried." in said


def test_last_bit_of_a_product_is_not_asked_for_where_operands_have_one_fraction_bit():
    for operand, wanted in ((FLOAT4_E2M1FN, False), (FLOAT8_E5M2, True)):
        assert wanted == any(("exact product",) in probe.about for probe in fact_probes(operand))
