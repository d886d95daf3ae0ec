"""Softmax with every operation rounded: against the reference, and against the same operations on MPFR."""

import decimal
from fractions import Fraction

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP32, FloatFormat, encode, kernels, reference, softmax
from golden.arrays import normalisation
from golden.formats import SIXTEEN_BIT_FORMATS

from .answers import once
from .judges import Mpfr, assert_same_bits, codes_of, fraction_of, random_codes, values_of

ALL = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)


def mpfr_softmax(values, fmt):
    judge = Mpfr(fmt)

    def rounded(operation, *operands):
        return judge.apply(operation, *operands)[0]

    largest, total = max(values), 0.0
    exponentials = [rounded("exp", rounded("sub", value, largest)) for value in values]
    for term in exponentials:
        total = rounded("add", total, term)
    return [rounded("div", term, total) for term in exponentials]


def softmax_of_rows(rows, fmt):
    return [reference.softmax(row, fmt) for row in rows]


def assert_agrees_with_reference(codes, fmt):
    got = softmax(codes, fmt)
    assert_same_bits(got, np.array(once(softmax_of_rows, codes.tolist(), fmt)), codes)


@ALL
@pytest.mark.parametrize("spread", [0.01, 1.0, 10.0])
def test_softmax_of_normal_rows_is_the_references_and_mpfrs(fmt, spread):
    codes = encode(np.random.default_rng(60).normal(scale=spread, size=(40, 9)), fmt)
    assert_agrees_with_reference(codes, fmt)
    wanted = np.array([mpfr_softmax(row, fmt) for row in values_of(codes, fmt).tolist()])
    assert_same_bits(softmax(codes, fmt), codes_of(wanted, fmt), codes)


@ALL
def test_softmax_of_any_codes_is_the_references(fmt):
    assert_agrees_with_reference(random_codes(fmt, 900, 61).reshape(300, 3), fmt)


@ALL
def test_softmax_of_zero_and_every_negative_value_is_mpfrs(fmt):
    # Every argument of exp that the format has, subnormal results of exp and of the quotient included.
    negative = np.arange(fmt.sign_mask, fmt.sign_mask + fmt.inf, 3).astype(np.uint16)
    rows = np.stack([np.zeros_like(negative), negative], 1)
    wanted = np.array([mpfr_softmax([0.0, value], fmt) for value in values_of(negative, fmt).tolist()])
    assert_same_bits(softmax(rows, fmt), codes_of(wanted, fmt), rows)


@pytest.mark.parametrize("fmt", [*SIXTEEN_BIT_FORMATS, FP32], ids=str)
def test_reference_exponential_is_mpfrs_correct_rounding(fmt):
    rng = np.random.default_rng(62)
    lowest = (fmt.emin - fmt.fraction_bits - 2) * 0.6931471805599453
    values = np.concatenate([-np.ldexp(1.0, rng.integers(fmt.emin, 6, 200)), rng.uniform(lowest, 0, 400), [-5e5, 0.0]])
    values = values_of(encode(values, fmt), fmt)
    values = values[np.isfinite(values)]
    wanted, _ = Mpfr(fmt).apply_all("exp", values)
    got = [reference.exponential(Fraction(value), fmt) for value in values.tolist()]
    assert_same_bits(np.array(got), codes_of(wanted, fmt), values)


@ALL
def test_reference_exponential_beside_a_midpoint_takes_the_nearer_side(fmt):
    # Arguments 10^-60 beside the logarithm of a midpoint: far more digits than the first enclosure has.
    context = decimal.Context(prec=90)
    for below in (fmt.one - 1, fmt.one - 2, fmt.one - 3 * 2**fmt.fraction_bits + 5):
        lower, upper = (fraction_of(code, fmt) for code in (below, below + 1))
        midpoint = (lower + upper) / 2
        logarithm = Fraction(context.ln(context.divide(midpoint.numerator, midpoint.denominator)))
        assert reference.exponential(logarithm - Fraction(1, 10**60), fmt) == below
        assert reference.exponential(logarithm + Fraction(1, 10**60), fmt) == below + 1


def test_softmax_of_float32_rows_is_the_references_and_mpfrs():
    # Level 0 and 1: softmax in fp32, where the host's exp in float64 must still be close enough.
    codes = encode(np.random.default_rng(63).normal(scale=5, size=(100, 8)), FP32)
    assert_agrees_with_reference(codes, FP32)
    wanted = np.array([mpfr_softmax(row, FP32) for row in values_of(codes, FP32).tolist()])
    assert_same_bits(softmax(codes, FP32), codes_of(wanted, FP32), codes)


def test_softmax_where_the_hosts_exp_is_in_doubt_asks_the_reference(monkeypatch):
    # The real doubt, 2^-48, is met about once in 2^23 arguments; a larger one must lead to the same codes.
    asked = []

    def counted(number, fmt):
        asked.append(number)
        return exponential(number, fmt)

    exponential = reference.exponential
    codes = encode(np.random.default_rng(65).normal(scale=4, size=(50, 6)), FP32)
    wanted = softmax(codes, FP32)
    monkeypatch.setattr(normalisation, "_DOUBT", 2.0**-27)
    monkeypatch.setattr(reference, "exponential", counted)
    assert_same_bits(softmax(codes, FP32), wanted, codes)
    assert asked


def test_softmax_table_where_the_hosts_exp_is_in_doubt_asks_the_reference(monkeypatch):
    fmt = FloatFormat("e5m4", 5, 4)
    wanted = normalisation.exponential_table(fmt)
    monkeypatch.setattr(normalisation, "_DOUBT", 2.0**-7)
    asked = []
    exponential = reference.exponential
    monkeypatch.setattr(reference, "exponential", lambda x, fmt: asked.append(x) or exponential(x, fmt))
    table = normalisation.exponential_table.__wrapped__(fmt)
    assert_same_bits(table, wanted)
    assert asked


def test_softmax_in_a_format_without_one_sums_all_the_same():
    # exp of zero, 1, is subnormal in this format: the chain has no 1.0 to multiply by.
    fmt = FloatFormat("e3m6_low", 3, 6, bias=-3)
    codes = np.random.default_rng(66).integers(0, 1 << fmt.width, (50, 7)).astype(np.uint16)
    assert not fmt.has_one
    assert_agrees_with_reference(codes, fmt)


@ALL
def test_softmax_with_infinities_and_nans_has_named_results(fmt):
    minus_inf, one, nan = fmt.inf | fmt.sign_mask, fmt.one, fmt.nan
    rows = {
        (0, minus_inf): [one, 0],
        (minus_inf, minus_inf): [nan, nan],
        (fmt.inf, 0): [nan, nan],
        (fmt.inf, minus_inf): [nan, nan],
        (fmt.inf, fmt.inf): [nan, nan],
        (0, nan): [nan, nan],
        (fmt.inf + 1, 0): [nan, nan],
        (0, fmt.sign_mask): [one - (1 << fmt.fraction_bits)] * 2,
        (fmt.max_finite, fmt.max_finite | fmt.sign_mask): [one, 0],
    }
    codes, wanted = np.array(list(rows), np.uint16), np.array(list(rows.values()))
    assert_same_bits(softmax(codes, fmt), wanted, codes)
    assert_agrees_with_reference(codes, fmt)


def test_softmax_sums_in_index_order():
    # In bf16 1 swallows e^-6 that come later; before it, they add up.
    row = encode(np.array([0.0, *[-6.0] * 40]), BF16)
    first, last = softmax(row, BF16), softmax(row[::-1].copy(), BF16)
    assert int(first[0]) == BF16.one
    assert int(last[-1]) < BF16.one
    assert_agrees_with_reference(np.stack([row, row[::-1]]), BF16)


def test_softmax_along_any_axis_is_that_of_the_rows():
    codes = encode(np.random.default_rng(64).normal(size=(3, 4, 5)), CBFLOAT16)
    for axis in (-3, -2, -1, 0, 1, 2):
        got = softmax(codes, CBFLOAT16, axis=axis)
        assert got.shape == codes.shape
        rows = np.moveaxis(codes, axis, -1).reshape(-1, codes.shape[axis])
        wanted = np.array([reference.softmax(row, CBFLOAT16) for row in rows.tolist()])
        assert_same_bits(np.moveaxis(got, axis, -1).reshape(rows.shape), wanted)


def test_softmax_of_one_element_and_of_one_axis_is_one():
    assert softmax(np.array([0x1234], np.uint16), CBFLOAT16).tolist() == [CBFLOAT16.one]
    assert softmax(np.zeros((0, 3), np.uint16), CBFLOAT16).shape == (0, 3)


@pytest.mark.parametrize("path", kernels.paths())
@ALL
def test_softmax_on_every_path_is_the_references(path, fmt):
    with kernels.use(path):
        assert_agrees_with_reference(random_codes(fmt, 600, 67).reshape(100, 6), fmt)
        normal = encode(np.random.default_rng(68).normal(scale=3, size=(30, 40)), fmt)
        assert_agrees_with_reference(normal, fmt)


def test_softmax_of_more_ones_than_the_largest_value_is_zeros():
    # 1 + 1 + 1 is 3, the largest value; one more is infinite, and every quotient 0.
    tiny = FloatFormat("e2m1_ieee", 2, 1)
    assert reference.softmax([0] * 3, tiny) == [1] * 3
    assert reference.softmax([0] * 4, tiny) == [0] * 4
    assert softmax(np.zeros((2, 4), np.uint8), tiny).tolist() == [[0] * 4] * 2


def test_reference_softmax_where_one_overflows_has_nans_and_zeros():
    # The largest value is below 1, so exp(0) is infinite: inf / inf is NaN, and the others are finite / inf.
    fmt = FloatFormat("e5m1_low", 5, 1, bias=35)
    assert_agrees_with_reference(np.array([[0x37, 0x37, 0x77, 0x38]], np.uint8), fmt)
    assert reference.softmax([0x37, 0x77], fmt) == [fmt.nan, fmt.nan]
    assert reference.softmax([0x3D, 0x7D], FloatFormat("e5m1_below_one", 5, 1, bias=31)) == [0x3F, 0]


def test_reference_softmax_where_one_is_lost_has_nans():
    # The smallest value is above 2, so exp(0) rounds to 0, and every quotient is 0 / 0.
    fmt = FloatFormat("e2m4_high", 2, 4, bias=-59)
    assert_agrees_with_reference(np.array([[0x20, 0x00, 0x20, 0x40]], np.uint8), fmt)
    assert reference.softmax([0x20, 0x00], fmt) == [fmt.nan, fmt.nan]
