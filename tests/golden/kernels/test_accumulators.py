"""Compiled accumulators of other machines: every path, shape and format gives the bits of NumPy's."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import (
    BF16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    Accumulator,
    FloatFormat,
    FusedSum,
    Rounding,
    accumulators,
    kernels,
    reference,
)
from golden.arrays import by_numpy
from lab.suites.accumulators.cases import draw, draw_edges

from ..judges import assert_same_bits

NAMES = pytest.mark.parametrize("name", accumulators)
#: Products of these do not fit a float.
LONG = FloatFormat("e3m12", 3, 12), FloatFormat("e2m13", 2, 13)

#: Pairs are added, and rounded once more each time, the last time to bfloat16.
EIGHT_STAGES = replace(
    accumulators["arm_bfdot_ebf16"],
    block=16,
    stages=(FusedSum(2), FusedSum(1)) * 3 + (FusedSum(2), FusedSum(1, rounding=Rounding.TOWARD_ZERO, result=BF16)),
)
#: Operands of 19 bits: their products fit a float's significand, and their subnormals are smaller than bfloat16's.
TF32 = FloatFormat("tf32", 8, 10)


def with_tf32(name, products):
    rule = accumulators[name]
    return replace(rule, operand_bits=19, block=products, join=replace(rule.join, terms=products + 1))


TF32_RULES = {
    "nvidia_ampere": with_tf32("nvidia_ampere", 4),
    "nvidia_hopper": with_tf32("nvidia_hopper", 8),
    "amd_cdna2": replace(accumulators["amd_cdna2"], operand_bits=19),
}


def formats(rule):
    return (BF16, FP16, *LONG) if rule.operand_bits == 16 else (FLOAT8_E4M3FN, FloatFormat("e5m2", 5, 2))


@pytest.fixture
def without_numpy(monkeypatch):
    def refuse(*_):
        raise AssertionError("NumPy serves what the library should")

    monkeypatch.setattr(by_numpy, "accumulate_codes", refuse)


def on_numpy(a, b, **options):
    with kernels.use("numpy"):
        return golden.matmul(a, b, **options)


@pytest.fixture(params=[path for path in kernels.paths() if path != "numpy"])
def path(request):
    with kernels.use(request.param):
        yield request.param


@pytest.mark.turns
@NAMES
def test_every_path_gives_the_bits_of_numpy(path, name):
    rule = accumulators[name]
    rng = np.random.default_rng(5)
    for fmt in formats(rule):
        for m, k, n in ((3, 37, 40), (9, 150, 5), (1, 64, 33)):
            a, b, totals = draw(rng, fmt, m, k, n, rule.outer)
            options = {"operand": fmt, "reduction": rule, "initial": totals}
            assert_same_bits(golden.matmul(a, b, **options), on_numpy(a, b, **options))


@NAMES
def test_every_path_is_served_by_the_library_and_not_by_numpy(path, without_numpy, name):
    rule = accumulators[name]
    for fmt in formats(rule):
        a, b, totals = draw(np.random.default_rng(10), fmt, 5, 40, 20, rule.outer)
        product = golden.matmul(a, b, operand=fmt, reduction=rule, initial=totals)
        dots = golden.dot(a, b[:, 0], operand=fmt, reduction=rule, initial=totals[:, 0])
        assert_same_bits(product[:, 0], dots)


def test_numpy_that_serves_instead_of_the_library_is_told(without_numpy):
    a, b, totals = draw(np.random.default_rng(10), BF16, 5, 40, 20)
    with pytest.raises(AssertionError, match="NumPy serves"):
        on_numpy(a, b, operand=BF16, reduction=accumulators["nvidia_ampere"], initial=totals)


@NAMES
def test_every_path_gives_the_bits_of_numpy_at_zeros_subnormals_and_the_smallest_normal(path, name):
    rule = accumulators[name]
    rng = np.random.default_rng(8)
    for fmt in formats(rule):
        for length in (1, rule.block, 2 * rule.block + 1):
            a, b, totals = draw_edges(rng, fmt, 40, length, 40, rule.outer)
            options = {"operand": fmt, "reduction": rule, "initial": totals}
            assert_same_bits(golden.matmul(a, b, **options), on_numpy(a, b, **options))


def test_rule_of_as_many_stages_as_the_library_takes_gives_the_bits_of_numpy(path):
    a, b, totals = draw(np.random.default_rng(9), BF16, 5, 70, 40)
    options = {"operand": BF16, "reduction": EIGHT_STAGES, "initial": totals}
    assert_same_bits(golden.matmul(a, b, **options), on_numpy(a, b, **options))


@pytest.mark.parametrize("rule", TF32_RULES.values(), ids=TF32_RULES)
def test_every_path_gives_the_references_bits_with_operands_in_tf32(path, rule):
    rng = np.random.default_rng(19)
    compared = 0
    for drawn in (draw, draw, draw, draw_edges):
        a, b, totals = drawn(rng, TF32, 6, 2 * rule.block + 1, 20)
        options = {"operand": TF32, "reduction": rule, "initial": totals}
        got = golden.matmul(a, b, **options)
        assert_same_bits(got, on_numpy(a, b, **options))
        assert_same_bits(got, golden.matmul(a, b, backend="exact", **options))
        compared += got.size
    assert compared == 4 * 6 * 20


@pytest.mark.parametrize("fmt", [FP16, FloatFormat("e8m11", 8, 11)], ids=str)
def test_operands_of_another_width_than_tf32_are_refused(fmt):
    codes = np.zeros((2, 2), np.uint16 if fmt.width == 16 else np.uint32)
    with pytest.raises(ValueError, match=rf"operand: got {fmt} of {fmt.width} bits, must have 17 to 19 bits"):
        golden.matmul(codes, codes, operand=fmt, reduction=TF32_RULES["nvidia_hopper"])


@pytest.mark.turns
@NAMES
def test_long_sums_over_several_segments_and_threads_give_the_bits_of_numpy(name):
    rule = accumulators[name]
    fmt = formats(rule)[0]
    a, b, totals = draw(np.random.default_rng(6), fmt, 70, 700, 33, rule.outer)
    options = {"operand": fmt, "reduction": rule}
    wanted = on_numpy(a[:, :], b, initial=totals, **options)
    for threads in (1, 2, 3):
        with kernels.use(threads=threads):
            assert_same_bits(golden.matmul(a, b, initial=totals, **options), wanted)
            assert_same_bits(golden.dot(a, b[:, 0], initial=totals[:, 0], **options), wanted[:, 0])
            assert_same_bits(golden.dot(a[3], b[:, 1], **options), on_numpy(a[3:4], b[:, 1:2], **options)[0, 0])


def test_batches_strides_and_broadcasting_give_the_bits_of_numpy():
    rng = np.random.default_rng(7)
    a = golden.encode(rng.normal(size=(2, 1, 5, 20)).astype(np.float32), BF16)
    b = golden.encode(rng.normal(size=(3, 20, 6)).astype(np.float32), BF16)
    options = {"operand": BF16, "reduction": accumulators["nvidia_ampere"]}
    start = golden.encode(rng.normal(size=(3, 1, 6)).astype(np.float32), "fp32")
    for x, y in ((a, b), (a[:, :, ::-2], b[:, :, ::3]), (a.swapaxes(-1, -2)[..., :3, :], b[:, :5])):
        got = golden.matmul(x, y, **options)
        assert got.shape == (2, 3, x.shape[-2], y.shape[-1])
        assert_same_bits(got, on_numpy(x, y, **options))
    assert_same_bits(golden.matmul(a, b, initial=start, **options), on_numpy(a, b, initial=start, **options))
    before = start.copy()
    golden.matmul(a, b, initial=start, **options)
    assert_same_bits(start, before)  # the initial totals are the caller's


def test_products_that_no_float_holds_are_still_added_once_rounded(path):
    # 1 + 2^-24 + 2^-26, of which the last comes from a product of 26 bits: rounded twice it would be 1.
    fmt = FloatFormat("e3m12", 3, 12)
    x = int(golden.encode(1 + 2.0**-12, fmt))
    options = {"operand": fmt, "reduction": accumulators["x86_vdpbf16ps"]}
    got = golden.dot(np.uint16([x, 0]), np.uint16([x, 0]), initial=np.uint32(0xBA000000), **options)
    assert got == reference.dot([x, 0], [x, 0], initial=0xBA000000, **options)[0]


@NAMES
def test_signs_of_zeros_are_those_of_numpy_where_a_row_is_broadcast(path, name):
    # 0x8000 as a factor of the first operand was +0 in the lanes: -0 + (-0 * 1) came out as +0.
    rule = accumulators[name]
    fmt = formats(rule)[0]
    zero, one = fmt.sign_mask, fmt.one
    dtype = np.uint16 if fmt.width > 8 else np.uint8
    a, b = np.full((2, 8), zero, dtype), np.full((8, 20), one, dtype)
    minus = rule.outer.sign_mask
    totals = np.full((2, 20), minus, np.uint32)
    options = {"operand": fmt, "reduction": rule, "initial": totals}
    got = golden.matmul(a, b, **options)
    assert_same_bits(got, on_numpy(a, b, **options))
    assert got[0, 0] == reference.dot([zero] * 8, [one] * 8, operand=fmt, reduction=rule, initial=minus)[0]


def test_fault_in_the_numbers_of_a_rule_changes_the_results():
    rng = np.random.default_rng(8)
    a, b, totals = draw(rng, BF16, 16, 64, 16)
    results = [golden.matmul(a, b, operand=BF16, reduction=accumulators[name], initial=totals) for name in accumulators
               if accumulators[name].operand_bits == 16 and accumulators[name].outer == FP32]  # fmt: skip
    distinct = {each.tobytes() for each in results}
    assert len(distinct) >= 8


def dot_on_arrays(a, b, total, fmt, rule):
    codes = (np.array(each, np.uint8 if fmt.width <= 8 else np.uint16) for each in (a, b))
    return int(golden.dot(*codes, operand=fmt, reduction=rule, initial=np.uint32(total)))


def test_order_of_products_before_a_stage_is_that_of_the_rule(path):
    # (1 + 2^-24) + (1 - 1). The kernels ordered the remaining terms of the stage, and gave 0x40000000.
    rule = Accumulator(
        operand_bits=16, block=4, order=(0, 2, 1, 3), stages=(FusedSum(2),), join=FusedSum(3, chain=True)
    )
    a, b = [0x3F80, 0x3F80, 0x3380, 0xBF80], [0x3F80] * 4
    wanted = reference.dot(a, b, operand=BF16, reduction=rule)[0]
    assert dot_on_arrays(a, b, 0, BF16, rule) == 0x3F800000 == wanted


@pytest.mark.parametrize("join", [FusedSum(2), FusedSum(2, chain=True)], ids=["sum", "chain"])
def test_total_beside_a_sum_that_is_not_rounded_is_rounded_once(path, join):
    # 1 + 2^-24, a tie, and a total of 2^-60 above it. The kernels lost the total first and gave 0x3F800000.
    rule = Accumulator(operand_bits=8, block=2, stages=(FusedSum(2, 40, rounding=None),), join=join)
    codes = [0x3C, 0x0C]
    wanted = reference.dot(codes, codes, operand=FLOAT8_E5M2, reduction=rule, initial=0x21800000)[0]
    assert dot_on_arrays(codes, codes, 0x21800000, FLOAT8_E5M2, rule) == 0x3F800001 == wanted


def test_instruction_after_a_promotion_begins_anew(path):
    # The kernels flushed the total -0 of the fourth product before the fifth, and gave +0.
    rule = Accumulator(operand_bits=16, block=1, join=FusedSum(2), flush="positive", depth=2, promote_every=3)
    a, b = [0x1C80, 0, 0x1C80, 0x1C80, 0], [0x9C80] * 5
    wanted = reference.dot(a, b, operand=BF16, reduction=rule, initial=0x80000000)[0]
    assert dot_on_arrays(a, b, 0x80000000, BF16, rule) == 0x80000000 == wanted


def test_instruction_of_two_billion_products_takes_no_memory_for_them(path):
    # It was a MemoryError: no memory for the product of shapes (1, 1) and (1, 1).
    rule = Accumulator(operand_bits=16, block=1, join=FusedSum(2), flush="signed", depth=2**31)
    assert dot_on_arrays([0x3F80], [0x3F80], 0x00000001, BF16, rule) == 0x3F800000


@pytest.mark.parametrize("cut", ["toward_zero", "down", "to_odd"])
@pytest.mark.parametrize("length", [1, 2])
def test_terms_beside_a_zero_of_the_largest_exponent_are_the_references(cut, length):
    # With an exponent of 1000 (0 * 0: 2000) NumPy gave +0 where the rule says 0xFF800000: the limit is 256 since.
    join = FusedSum(3, 8, cut=cut, rounding="toward_zero")
    rule = Accumulator(operand_bits=16, block=2, join=join, zero_exponent=256)
    a, b = [0x8001, 0x0001][:length], [0x0001, 0][:length]
    wanted = reference.dot(a, b, operand=BF16, reduction=rule, initial=0x80000001)[0]
    for path in kernels.paths():
        with kernels.use(path):
            assert dot_on_arrays(a, b, 0x80000001, BF16, rule) == wanted


def test_infinity_that_a_stage_rounds_to_stays_one_where_the_next_cuts_to_one_bit(path):
    # 2^127 * 2 is infinite after the first stage. The kernels scaled it by 0 and gave 0x7FC00000.
    rule = Accumulator(operand_bits=16, block=1, stages=(FusedSum(1),), join=FusedSum(2, 1))
    a, b = [0x7F00], [0x4000]
    wanted = reference.dot(a, b, operand=BF16, reduction=rule)[0]
    assert dot_on_arrays(a, b, 0, BF16, rule) == 0x7F800000 == wanted
