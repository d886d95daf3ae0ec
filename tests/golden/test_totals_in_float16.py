"""Accumulators whose total is in float16: rules drawn at random, sums written out by hand, and refusals."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import BF16, FP16, FP32, Accumulator, FusedSum, Reduction, accumulators, kernels, reference
from golden.formats import FLOAT8_E4M3FN, FLOAT8_E5M2
from lab.devices.family import drawn
from lab.suites.accumulators.cases import draw, draw_edges

from .judges import assert_same_bits

HOPPER = accumulators["nvidia_hopper_into_fp16"]
PATHS = pytest.mark.parametrize("path", kernels.paths())
INFINITE, NAN, MINUS = FP16.inf, 0x7FFF, FP16.sign_mask


def half(*values):
    """Return codes of values that float16 has."""
    codes = golden.encode(np.array(values, np.float64), FP16)
    assert (golden.decode(codes, FP16) == values).all()
    return codes.tolist()


@pytest.mark.parametrize("number", range(32))
def test_rule_drawn_at_random_has_the_references_codes_on_every_path(number):
    random = np.random.default_rng([16, number])
    bits = (8, 16)[number % 2]
    rule = drawn(random, bits, FP16)
    for operand in (FP16, BF16) if bits == 16 else (FLOAT8_E4M3FN, FLOAT8_E5M2):
        for length, made in ((3, draw), (rule.block + 1, draw), (2, draw_edges), (2 * rule.block, draw_edges)):
            a, b, totals = made(random, operand, 2, length, 4, FP16)
            options = {"operand": operand, "reduction": rule}
            wanted = [
                [reference.dot(x, y, initial=int(totals[i, j]), **options)[0] for j, y in enumerate(b.T.tolist())]
                for i, x in enumerate(a.tolist())
            ]
            for path in kernels.paths():
                with kernels.use(path):
                    got = golden.matmul(a, b, initial=totals, **options)
                assert_same_bits(got, np.array(wanted, np.uint16))


# Factors, initial total and result of sums on Hopper. Other numbers of the rule give the results in the last column.
TINY = 2.0**-24
SUMS = {
    "tie to even": ([1, 2**-11], [1, 1], 0, 0x3C00, {}),
    "tie to odd's neighbour": ([1, 3 * 2**-11], [1, 1], 0, 0x3C02, {"rounding": 0x3C01}),
    "above a tie by the last bit that is kept": ([1, 2**-11, 2**-13], [1, 1, 2**-12], 0, 0x3C01, {"24": 0x3C00}),
    "above a tie by a bit that is cut": ([1, 2**-11, 2**-13], [1, 1, 2**-13], 0, 0x3C00, {"26": 0x3C01}),
    "cancelled": ([1, -1, 2**-12], [1, 1, 2**-12], 0, 0x0001, {}),
    "total of the other sign": ([1, TINY], [1, 1], 0xBC00, 0x0001, {}),
    "half of the smallest number": ([TINY], [0.5], 0, 0, {}),
    "minus half of the smallest number": ([-TINY], [0.5], 0, 0, {}),
    "three quarters of the smallest number": ([-TINY, -TINY], [0.5, 0.25], 0, 0x8001, {"rounding": 0}),
    "zeros of one sign": ([-0.0, -0.0], [1, 1], MINUS, 0, {}),
    # 2^-25 - 2^-48 beside a subnormal total, which stands at 2^-14 and cuts 2^-48 off: a tie.
    "subnormal total": ([2**-12, -TINY], [2**-13, TINY], 0x0001, 0x0002, {"rounding": 0x0001}),
    "total of 0": ([2**-12, TINY], [2**-13, TINY], 0, 0x0001, {"zeros at -14": 0, "rounding": 0}),
    "total of 0 that loses a tie": ([2**-12, -TINY], [2**-13, TINY], 0, 0, {}),
    "largest number": ([65504, 15], [1, 1], 0, 0x7BFF, {}),
    "first number that overflows": ([65504, 16], [1, 1], 0, INFINITE, {"rounding": 0x7BFF}),
    "negative overflow": ([-65504, -2048], [1, 256], 0, INFINITE | MINUS, {}),
    "large products that cancel": ([65504, -65504], [65504, 65504], 0x3C00, 0, {}),
    "infinite product": ([np.inf, 1], [-1, 1], 0, INFINITE | MINUS, {}),
    "infinite total": ([-65504], [65504], INFINITE, INFINITE, {}),
    "infinities of both signs": ([np.inf, np.inf], [1, -1], 0, NAN, {}),
    "infinity times 0": ([np.inf], [0], 0, NAN, {}),
    "total that is a NaN": ([1], [1], 0x7C01, NAN, {}),
}
WRONG = {
    "rounding": replace(HOPPER, join=replace(HOPPER.join, rounding="toward_zero")),
    "24": replace(HOPPER, join=replace(HOPPER.join, fraction_bits=24)),
    "26": replace(HOPPER, join=replace(HOPPER.join, fraction_bits=26)),
    "zeros at -14": replace(HOPPER, zero_total_exponent=-14),
}


@PATHS
@pytest.mark.parametrize("name", SUMS)
def test_sum_of_hopper_in_float16_is_the_one_written_out(name, path):
    x, y, total, wanted, others = SUMS[name]
    a, b = half(*x), half(*y)
    for rule, code in ((HOPPER, wanted), *((WRONG[fault], code) for fault, code in others.items())):
        options = {"operand": FP16, "reduction": rule}
        assert reference.dot(a, b, initial=total, **options)[0] == code
        with kernels.use(path):
            assert golden.dot(np.uint16(a), np.uint16(b), initial=np.uint16(total), **options) == code


def test_sum_that_overflows_between_blocks_stays_infinite():
    a, b = half(*[65504] * 17, *[-65504] * 15), half(*[1] * 32)
    assert golden.dot(np.uint16(a), np.uint16(b), operand=FP16, reduction=HOPPER) == INFINITE


def test_total_that_rounds_to_two_to_the_sixteen_stays_infinite():
    step = Accumulator(16, 1, FusedSum(2, result=FP16), nan=FP16.nan)
    a, b = half(65504, 16, -65504), half(1, 1, 1)
    for backend in golden.backends():
        code = golden.dot(np.uint16(a), np.uint16(b), operand=FP16, reduction=step, backend=backend)
        assert code == INFINITE


@PATHS
def test_chain_of_uncut_steps_into_float16_is_one_of_fused_multiply_adds(path):
    """Lost negative sums of such steps are -0."""
    chain = Accumulator(16, 4, FusedSum(5, chain=True, result=FP16), nan=FP16.nan)
    random = np.random.default_rng(1)
    a, b, totals = draw_edges(random, FP16, 40, 8, 40, FP16)
    with kernels.use(path):
        got = golden.matmul(a, b, operand=FP16, reduction=chain, initial=totals)
        step = replace(chain, block=1, join=replace(chain.join, terms=2))
        assert golden.dot(np.uint16(half(-TINY)), np.uint16(half(0.25)), operand=FP16, reduction=step) == MINUS
    for k in range(8):
        totals = golden.multiply_accumulate(a[:, k : k + 1], b[k], totals, operand=FP16, accumulator=FP16)
    assert_same_bits(got, totals)


@PATHS
def test_values_with_initial_totals_are_rounded_to_float16_once(path):
    random = np.random.default_rng(2)
    x, y = random.normal(size=(5, 20)).astype(np.float32), random.normal(size=(20, 6)).astype(np.float32)
    start = (random.normal(size=6) * [1, 1e-6, 1e6, 1e-9, 1, np.inf]).astype(np.float32)
    a, b, c = (golden.encode(each, FP16) for each in (x, y, start))
    options = {"operand": FP16, "reduction": HOPPER}
    with kernels.use(path):
        for out in (None, FP16, FP32, BF16):
            values = golden.matmul_values(x, y, initial=start, out=out, **options)
            codes = golden.matmul(a, b, initial=c, out=out, **options)
            assert codes.dtype == (np.uint32 if out == FP32 else np.uint16)
            assert_same_bits(golden.encode(values, out or FP16), codes)


def test_reduction_with_such_an_accumulator_has_totals_in_float16():
    whole = Reduction(operand=FP16, accumulator=HOPPER)
    assert (whole.inner, whole.outer, whole.result) == (FP16, FP16, FP16)
    assert Reduction.parse(str(whole)) == whole
    own = replace(HOPPER, total_reach=7)
    assert Reduction.parse(str(Reduction(accumulator=own))).accumulator == own


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flush": "signed"}, "^flush: got 'signed', must be 'none' with a total in float16"),
        ({"promote_every": 32}, "^promote_every: got 32, must be None with a total in float16"),
        ({"nan": FP32.nan}, "^nan: got 0x7fc00000, must be a NaN of float16"),
        ({"nan": 0x7C00}, "^nan: got 0x7c00, must be a NaN of float16"),
        ({"stages": (FusedSum(1, result=FP16),)}, "^stages: got a sum rounded to float16"),
        ({"join": FusedSum(17, 25)}, "^nan: got 0x7fff, must be a NaN of float32"),
    ],
)
def test_rule_into_float16_with_what_it_has_not_is_refused_by_name(change, said):
    with pytest.raises(ValueError, match=said):
        replace(HOPPER, **change)


def test_initial_total_wider_than_float16_is_refused():
    with pytest.raises(ValueError, match=r"^initial: got code 0x3f800000, .* float16"):
        golden.dot(np.uint16([1]), np.uint16([1]), operand=FP16, reduction=HOPPER, initial=np.uint32(0x3F800000))
