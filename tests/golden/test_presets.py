"""The numbers of every preset, written down a second time from their sources."""

import pytest

from golden import FusedSum, accumulators
from golden.formats import FP16, FP32, FloatFormat
from golden.rounding import Rounding

ZERO, DOWN, ODD, EVEN = Rounding.TOWARD_ZERO, Rounding.DOWN, Rounding.TO_ODD, Rounding.NEAREST_EVEN
ROUNDED = FusedSum(2, None, ZERO, EVEN, FP32, chain=False, interleaved=False)  # an ordinary addition
TO_ODD = FusedSum(2, rounding=ODD)
BFLOAT16, FLOAT16, BOTH = ("bfloat16",), ("float16",), ("float16", "bfloat16")
OCP_8, FNUZ_8 = ("float8_e4m3fn", "float8_e5m2"), ("float8_e4m3fnuz", "float8_e5m2fnuz")

# NVIDIA, table of MMA-Sim (arXiv 2511.10909): products of a block, fraction bits of a term and of the sum,
# formats. Products and total form one sum, cut toward zero; a product of zero has the exponent -126.
TENSOR_CORES = {
    "nvidia_volta": (4, 23, 23, FLOAT16),
    "nvidia_turing": (8, 24, 23, FLOAT16),
    "nvidia_ampere": (8, 24, 23, BOTH),
    "nvidia_ada": (8, 24, 23, BOTH),
    "nvidia_ada_fp8": (16, 13, 13, OCP_8),
    "nvidia_hopper": (16, 25, 23, BOTH),
    "nvidia_hopper_fp8": (32, 13, 13, OCP_8),
    "nvidia_blackwell": (16, 25, 23, BOTH),
    "nvidia_blackwell_fp8": (32, 25, 23, OCP_8),
    "deepseek_fp8": (32, 13, 13, OCP_8),
}
# The same instructions with totals in float16, rounded to nearest even: products of a block, fraction bits, formats.
INTO_FLOAT16 = {
    "nvidia_volta_into_fp16": (4, 23, FLOAT16),
    "nvidia_turing_into_fp16": (8, 24, FLOAT16),
    "nvidia_ampere_into_fp16": (8, 24, FLOAT16),
    "nvidia_ada_into_fp16": (8, 24, FLOAT16),
    "nvidia_ada_fp8_into_fp16": (16, 13, OCP_8),
    "nvidia_hopper_into_fp16": (16, 25, FLOAT16),
    "nvidia_hopper_fp8_into_fp16": (32, 13, OCP_8),
    "nvidia_blackwell_into_fp16": (16, 25, FLOAT16),
    "nvidia_blackwell_fp8_into_fp16": (32, 25, OCP_8),
}
# AMD before CDNA 3, the same table: products of a tree, its levels, products of an instruction, flushing, formats.
TREES = {
    "amd_cdna1": (4, 2, 16, "none", FLOAT16),
    "amd_cdna1_bf16": (2, 1, 8, "none", BFLOAT16),
    "amd_cdna2": (4, 2, 16, "positive", BOTH),
    "amd_cdna2_bf16": (2, 1, 8, "positive", BFLOAT16),
}
# Spike's batched dot products: width of an operand, formats. 16 products need 4 guard bits.
BATCHED = {"riscv_zvfwbdota16bf": (16, BFLOAT16), "riscv_zvfqwbdota8f": (8, OCP_8)}


def facts(name):
    """Return all numbers of a preset except for join and stages, in the order of `Accumulator`."""
    rule = accumulators[name]
    total = rule.total_fraction_bits, rule.total_reach, rule.zero_exponent, rule.products_overflow
    numbers = (*total, rule.flush, rule.depth, rule.promote_every, rule.nan)
    return (rule.operand_bits, rule.block, rule.order, *numbers, rule.provenance.formats)


def test_presets_are_those_of_the_tables():
    others = {"x86_vdpbf16ps", "x86_tdpbf16ps", "arm_bfdot", "arm_bfdot_ebf16", "amd_cdna3", "amd_cdna3_fp8"}
    assert set(accumulators) == {*others, *TENSOR_CORES, *INTO_FLOAT16, *TREES, *BATCHED}


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_tensor_core_has_the_numbers_of_its_table(name):
    products, kept, result, formats = TENSOR_CORES[name]
    rule, width = accumulators[name], 8 if formats == OCP_8 else 16
    promotion = 128 if name == "deepseek_fp8" else None  # arXiv 2412.19437, section 3.3
    zeros = (None, -133) if name == "nvidia_hopper" else (-126, -126)  # of factors and of totals
    assert facts(name) == (
        width, products, (), None, None, zeros[0], False, "none", None, promotion, 0x7FFFFFFF, formats
    )  # fmt: skip
    assert rule.zero_total_exponent == zeros[1]
    assert rule.stages == ()
    rounded_to = FP32 if result == 23 else FloatFormat("e8m13", 8, 13)
    assert rule.join == FusedSum(products + 1, kept, ZERO, ZERO, rounded_to)


@pytest.mark.parametrize("name", INTO_FLOAT16)
def test_tensor_core_into_float16_has_the_numbers_of_mma_sim(name):
    products, kept, formats = INTO_FLOAT16[name]
    rule, width = accumulators[name], 8 if formats == OCP_8 else 16
    zeros = (None, -133) if name == "nvidia_hopper_into_fp16" else (-126, -126)  # as for its sums in float32
    assert facts(name) == (
        width, products, (), None, None, zeros[0], False, "none", None, None, 0x7FFF, formats
    )  # fmt: skip
    assert rule.zero_total_exponent == zeros[1]
    assert rule.stages == ()
    assert rule.join == FusedSum(products + 1, kept, ZERO, EVEN, FP16)
    assert rule.outer == FP16


@pytest.mark.parametrize("name", TREES)
def test_tree_of_adders_has_the_numbers_of_its_table(name):
    products, levels, depth, flush, formats = TREES[name]
    rule = accumulators[name]
    assert facts(name) == (
        16, products, (), None, None, None, False, flush, depth, None, 0x7FC00000, formats
    )  # fmt: skip
    assert rule.stages == (FusedSum(1, chain=True), *[ROUNDED] * levels)
    assert rule.join == ROUNDED


@pytest.mark.parametrize("name", BATCHED)
def test_batched_dot_product_has_the_numbers_of_spike(name):
    width, formats = BATCHED[name]
    assert facts(name) == (
        width, 16, (), None, None, None, False, "none", None, None, 0x7FC00000, formats
    )  # fmt: skip
    assert accumulators[name].stages == (FusedSum(16, 27, ODD, ODD),)
    assert accumulators[name].join == TO_ODD


@pytest.mark.parametrize(
    ("name", "products", "order", "flush", "stages", "join"),
    [
        ("x86_vdpbf16ps", 2, (1, 0), "signed", (), FusedSum(3, chain=True)),
        ("x86_tdpbf16ps", 32, (), "signed", (FusedSum(16, chain=True, interleaved=True), ROUNDED), ROUNDED),
        ("arm_bfdot", 2, (), "signed", (FusedSum(1, rounding=ODD), TO_ODD), TO_ODD),
        ("arm_bfdot_ebf16", 2, (), "none", (ROUNDED,), ROUNDED),
    ],
)  # fmt: skip
def test_processor_has_the_numbers_of_its_manual(name, products, order, flush, stages, join):
    assert facts(name) == (
        16, products, order, None, None, None, False, flush, None, None, 0x7FC00000, BFLOAT16
    )  # fmt: skip
    assert accumulators[name].stages == stages
    assert accumulators[name].join == join


@pytest.mark.parametrize(
    ("name", "width", "products", "reach", "formats", "stages"),
    [
        ("amd_cdna3", 16, 8, None, BOTH, (FusedSum(8, 24, ZERO, None),)),
        (
            "amd_cdna3_fp8",
            8,
            16,
            25,
            FNUZ_8,
            (FusedSum(8, 24, ZERO, None, interleaved=True), FusedSum(2, 24, DOWN, None)),
        ),
    ],
)
def test_matrix_core_of_cdna3_has_the_numbers_of_mma_sim(name, width, products, reach, formats, stages):
    assert facts(name) == (
        width, products, (), 24, reach, -126, True, "none", None, None, 0x7FC00000, formats
    )  # fmt: skip
    assert accumulators[name].stages == stages
    assert accumulators[name].join == FusedSum(2, 31, DOWN)
