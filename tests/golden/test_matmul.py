"""Matrix products: every element is a dot product, in any batch; level 0 is a chain of fp32 fused steps."""

import numpy as np
import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, Reduction, dot, encode, matmul, reference
from golden.formats import SIXTEEN_BIT_FORMATS

from .judges import Mpfr, assert_same_bits, codes_of, random_codes, values_of

ALL = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])


def normal_codes(shape, fmt, seed):
    return encode(np.random.default_rng(seed).normal(size=shape), fmt)


@ALL
@LEVELS
def test_matmul_is_the_references(fmt, level):
    a, b = normal_codes((3, 7), fmt, 40), normal_codes((7, 4), fmt, 41)
    wanted = reference.matmul(a.tolist(), b.tolist(), operand=fmt, level=level, chunk=3)
    assert_same_bits(matmul(a, b, operand=fmt, level=level, chunk=3), np.array(wanted))
    wanted = reference.matmul(a.tolist(), b.tolist(), operand=fmt, level=level, chunk=3, out=CBFLOAT16)
    assert_same_bits(matmul(a, b, operand=fmt, level=level, chunk=3, out=CBFLOAT16), np.array(wanted))


@ALL
def test_matmul_of_any_codes_is_the_references(fmt):
    a, b = random_codes(fmt, 60, 42).reshape(20, 3), random_codes(fmt, 60, 43).reshape(3, 20)
    for level in (0, 1, 2):
        wanted = reference.matmul(a.tolist(), b.tolist(), operand=fmt, level=level, chunk=2)
        assert_same_bits(matmul(a, b, operand=fmt, level=level, chunk=2), np.array(wanted))


@ALL
def test_matmul_at_level_0_is_a_chain_of_mpfrs_float32_fma(fmt):
    a, b = normal_codes((6, 50), fmt, 44), normal_codes((50, 5), fmt, 45)
    x, y, step = values_of(a, fmt), values_of(b, fmt), Mpfr(FP32)
    totals = np.zeros((6, 5))
    for row, column in np.ndindex(6, 5):
        total = 0.0
        for k in range(50):
            total, _ = step.apply("fma", float(x[row, k]), float(y[k, column]), total)
        totals[row, column] = total
    assert_same_bits(matmul(a, b, operand=fmt, level=0), codes_of(totals, FP32))


@LEVELS
def test_matmul_of_batches_broadcasts_and_is_dot_by_dot(level):
    fmt = CBFLOAT16
    a, b = normal_codes((2, 1, 3, 9), fmt, 46), normal_codes((4, 9, 5), fmt, 47)
    got = matmul(a, b, operand=fmt, level=level, chunk=4)
    assert got.shape == (2, 4, 3, 5)
    wanted = dot(a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :], operand=fmt, level=level, chunk=4)
    assert_same_bits(got, wanted)
    assert_same_bits(got[1, 3], matmul(a[1, 0], b[3], operand=fmt, level=level, chunk=4))


def test_matmul_initial_broadcasts_and_starts_every_total():
    fmt = BF16
    a, b, bias = normal_codes((3, 6), fmt, 48), normal_codes((6, 4), fmt, 49), normal_codes(4, FP32, 50)
    got = matmul(a, b, operand=fmt, level=1, chunk=4, initial=bias)
    for row, column in np.ndindex(3, 4):
        start = int(bias[column])
        wanted = reference.dot(a[row].tolist(), b[:, column].tolist(), operand=fmt, chunk=4, initial=start)
        assert int(got[row, column]) == wanted[0]


def test_matmul_takes_a_reduction_and_names_of_formats():
    a, b = normal_codes((2, 8), CB16, 51), normal_codes((8, 2), CB16, 52)
    plan = Reduction(CB16, 3, FP32)
    assert_same_bits(matmul(a, b, operand="cb16", reduction=plan), matmul(a, b, operand=CB16, level=1, chunk=3))
    assert matmul(a, b, operand="cb16", out="bf16").dtype == np.uint16


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [((0, 3), (3, 2), (0, 2)), ((2, 3), (3, 0), (2, 0)), ((2, 0), (0, 3), (2, 3)), ((0, 2, 3), (3, 4), (0, 2, 4))],
)
@LEVELS
def test_matmul_of_an_empty_axis_is_empty_or_the_initial_value(left, right, result, level):
    a, b = np.zeros(left, np.uint16), np.zeros(right, np.uint16)
    got = matmul(a, b, operand=CBFLOAT16, level=level)
    assert got.shape == result
    assert not got.any()
    assert got.dtype == (np.uint16 if level == 2 else np.uint32)
    started = matmul(a, b, operand=CBFLOAT16, level=level, initial=0x1234)
    assert (started == (0x1234 if 0 in left[-1:] else 0)).all()


def test_matmul_does_not_change_its_arguments():
    a, b, start = normal_codes((2, 3), FP16, 53), normal_codes((3, 2), FP16, 54), np.full((2, 2), FP32.one, np.uint32)
    copies = [x.copy() for x in (a, b, start)]
    matmul(a, b, operand=FP16, initial=start)
    matmul(a[:, :0], b[:0], operand=FP16, initial=start)[...] = 7  # the result is not a view of initial
    for given, copy in zip((a, b, start), copies, strict=True):
        assert_same_bits(given, copy)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((3,), (3, 2), r"a: got shape \(3,\), must have at least two axes"),
        ((2, 3), (3,), r"b: got shape \(3,\), must have at least two axes"),
        ((2, 3), (4, 2), r"a, b: got shapes \(2, 3\) and \(4, 2\), must be \(\.\.\., M, K\) and \(\.\.\., K, N\)"),
        ((2, 2, 3), (5, 3, 2), r"a, b: got shapes \(2,\) and \(5,\), must broadcast to one shape"),
    ],
)
def test_matmul_of_shapes_that_do_not_fit_raises_naming_them(left, right, message):
    with pytest.raises(ValueError, match=message):
        matmul(np.zeros(left, np.uint16), np.zeros(right, np.uint16), operand=CBFLOAT16)
