"""Devices of RISC-V's integrated matrix extension are identified, and reports use its words where they fit."""

import numpy as np
import pytest

import golden
from golden import BF16, FLOAT8_E4M3FN, FP16, FP32, FusedSum, Reduction, accumulators, identify
from golden.identification.disclosure import disclosed
from golden.identification.probes import hard_probe


@pytest.mark.long
@pytest.mark.parametrize(
    ("operand", "total", "groups", "rnd", "mode"),
    [("float16", "float32", 2, "xct", "nearest_even"), ("float16", "float16", 4, "rto", "up")],
)
def test_identify_device_of_the_extension_returns_its_disclosure(operand, total, groups, rnd, mode):
    rule = accumulators.riscv_ime(G=groups, psm=0, rnd=rnd, operand=operand, accumulator=total)

    def device(a, b):
        return golden.matmul(a, b, operand=operand, reduction=rule, rounding=mode)

    found = identify(device, operand=operand, verify=2000)
    assert found.model is not None, found.text()
    assert found.disclosure == f"G={groups} psm=0 rnd={rnd}, accumulator {total}, frm {mode}"
    assert found.disclosure in found.text()


EXACT_8 = FusedSum(4, 40)
RULE_8 = golden.Accumulator(8, 4, FusedSum(2), stages=(EXACT_8,))
TWELVE = golden.Accumulator(8, 12, FusedSum(2), stages=(FusedSum(12, 40),))
TOWARD_ZERO = golden.Accumulator(16, 2, FusedSum(2, rounding="toward_zero"), stages=(FusedSum(2),))
TO_ODD = golden.Accumulator(16, 2, FusedSum(2, rounding="to_odd"), stages=(FusedSum(2),))


@pytest.mark.parametrize(
    ("model", "operand", "words"),
    [
        (accumulators["arm_bfdot_ebf16"], BF16, "G=1 psm=0 rnd=frm, accumulator float32, frm nearest_even"),
        (RULE_8, FLOAT8_E4M3FN, "G=1 psm=0 rnd=frm, accumulator float32, frm nearest_even"),
        (accumulators["nvidia_hopper"], BF16, "psm=1: the sum of a group is not exact"),
        (TO_ODD, BF16, "none: the total is rounded to_odd, which is no mode of frm"),
        (TOWARD_ZERO, BF16, "none: the sum of a group is rounded nearest_even, and the total toward_zero"),
        (TWELVE, FLOAT8_E4M3FN, "none: the extension has no groups of 12 products"),
        (golden.Accumulator(16, 4, FusedSum(5, chain=True)), BF16, "none: products join one by one"),
        (accumulators["amd_cdna1"], BF16, "psm=1"),
        (accumulators["x86_vdpbf16ps"], BF16, "none: subnormal numbers are flushed"),
        (accumulators["deepseek_fp8"], FLOAT8_E4M3FN, "none: a second total"),
        (Reduction(FP32, None, FP32), BF16, "none: products join one by one"),
        (Reduction(FP16, 1, FP16), FP16, "G=1 psm=0 rnd=frm, accumulator float16, frm nearest_even"),
        (Reduction(FP16, 32, FP16), FP16, "psm=1"),
    ],
)
def test_disclosed_model_has_the_words_of_the_extension_or_a_reason(model, operand, words):
    said = disclosed(model, operand, model.outer)
    assert said.startswith(words), said
    if not said.startswith("G="):
        return
    probe = hard_probe(np.random.default_rng(1), operand, (500, 33), 2)
    rule = accumulators.riscv_ime(G=1, psm=0, rnd="frm", operand=operand, accumulator=model.outer)
    sums = [golden.matmul(probe.a, probe.b, operand=operand, reduction=each) for each in (model, rule)]
    np.testing.assert_array_equal(*(np.where(model.outer.is_nan(each), 0, each) for each in sums))


def test_disclosed_stage_with_zeros_of_a_large_exponent_is_exact_if_it_cuts_nothing_below_them():
    # Two zeros stand at 2^20, the smallest product at 2^-18: 38 bits below.
    a = golden.encode([[0.0, 2.0**-9, 0.0, 0.0]], FLOAT8_E4M3FN)
    for bits, words, sum_ in ((38, "G=1", 2.0**-18), (37, "psm=1", 0.0)):
        rule = golden.Accumulator(8, 4, FusedSum(2), stages=(FusedSum(4, bits),), zero_exponent=10)
        assert disclosed(rule, FLOAT8_E4M3FN, FP32).startswith(words)
        code = golden.matmul(a, a.T, operand=FLOAT8_E4M3FN, reduction=rule)
        assert golden.decode(code, FP32).item() == sum_


def test_disclosed_stage_that_cuts_a_product_is_not_exact():
    short = golden.Accumulator(8, 4, FusedSum(2), stages=(FusedSum(4, 33),))
    assert disclosed(short, FLOAT8_E4M3FN, FP32).startswith("psm=1")
    assert disclosed(RULE_8, FLOAT8_E4M3FN, FP32).startswith("G=1")
    # 2^16 beside 2^-18, the smallest product: 34 bits below the largest.
    a = golden.encode([[256.0, 2.0**-9, -256.0, 0.0]], FLOAT8_E4M3FN)
    b = golden.encode([[256.0], [2.0**-9], [256.0], [0.0]], FLOAT8_E4M3FN)
    sums = [golden.matmul_values(*(golden.decode(each, FLOAT8_E4M3FN) for each in (a, b)), operand=FLOAT8_E4M3FN,
                                 reduction=rule)[0, 0] for rule in (RULE_8, short)]  # fmt: skip
    assert sums == [2.0**-18, 0.0]
