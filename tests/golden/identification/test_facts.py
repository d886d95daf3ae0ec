"""What single sums show, against devices whose properties are known."""

import numpy as np
import pytest

import golden
from golden import BF16, FLOAT4_E2M1FN, FLOAT8_E5M2, FP16, FP32
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
    said = [each.statement for each in facts(asked, results, FP32)]
    assert len([each for each in said if each.startswith(f"The last bit of a product is {word}")]) == 1


def test_last_bit_of_a_product_is_not_asked_for_where_operands_have_one_fraction_bit():
    for operand, wanted in ((FLOAT4_E2M1FN, False), (FLOAT8_E5M2, True)):
        assert wanted == any(("exact product",) in probe.about for probe in fact_probes(operand))
