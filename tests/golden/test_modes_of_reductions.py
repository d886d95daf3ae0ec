"""Every rounding mode in steps and reductions on arrays, against the reference and against loops of other libraries."""

from fractions import Fraction

import gfloat
import gmpy2
import numpy as np
import pytest
from gfloat import RoundMode

from golden import (  # fmt: skip
    BF16,
    CB16,
    CBFLOAT16,
    FP16,
    FP32,
    Reduction,
    Rounding,
    decode,
    dot,
    encode,
    explain,
    kernels,
    matmul,
    matmul_values,
    multiply_accumulate,
    reference,
)
from golden.arrays.value_products import indexed_values
from golden.exact_steps import Place
from golden.kernels.products import Indexed
from golden.philox import FINAL_CONVERSION, FIRST_PROMOTION, random_at
from golden.reduction import reduction_of

from .hosts import gfloat_info
from .judges import Mpfr, assert_same_bits, codes_of, values_of
from .kernels.operands import KINDS, ODD_ONES, codes

MODES = pytest.mark.parametrize("mode", Rounding, ids=str)
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])
IEEE = {
    "toward_zero": gmpy2.RoundToZero,
    "down": gmpy2.RoundDown,
    "up": gmpy2.RoundUp,
    "nearest_even": gmpy2.RoundToNearest,
}


def drawn(mode, count, bits, rng):
    return rng.integers(0, 2**bits, count).astype(np.uint64) if mode is Rounding.STOCHASTIC else None


@MODES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", [CBFLOAT16, BF16, *ODD_ONES], ids=str)
def test_step_in_a_mode_has_the_references_code_and_flags(fmt, kind, mode):
    rng = np.random.default_rng(1)
    for accumulator in (fmt, FP32):
        for bits in (1, 16, 32):
            a, b, acc = codes(kind, fmt, 20, rng), codes(kind, fmt, 20, rng), codes(kind, accumulator, 20, rng)
            random = drawn(mode, 20, bits, rng)
            options = {"operand": fmt, "accumulator": accumulator, "rounding": mode, "random_bits": bits}
            got, flags = multiply_accumulate(a, b, acc, random=random, return_flags=True, **options)
            words = [None] * 20 if random is None else random.tolist()
            each = list(zip(a.tolist(), b.tolist(), acc.tolist(), words, strict=True))
            wanted = [reference.multiply_accumulate(*x, random=word, **options) for *x, word in each]
            assert list(zip(got.tolist(), flags.tolist(), strict=True)) == wanted, each
            assert_same_bits(multiply_accumulate(a, b, acc, random=random, **options), got)
            if random is None:
                break


@MODES
@LEVELS
@pytest.mark.parametrize("kind", ["special", "wide", "edges"])
def test_dot_in_a_mode_has_the_references_codes_and_flags(kind, level, mode):
    rng = np.random.default_rng(2)
    a, b = codes(kind, CB16, (2, 1, 11), rng), codes(kind, CB16, (1, 3, 11), rng)
    initial = codes(kind, Reduction.for_level(level, CB16).outer, (2, 3), rng)
    options = {
        "operand": CB16, "level": level, "chunk": 4, "out": FP16, "rounding": mode, "out_rounding": mode,
        "seed": 2**63 + 9, "call": 3, "random_bits": 12,
    }  # fmt: skip
    got, flags = dot(a, b, initial=initial, return_flags=True, **options)
    assert_same_bits(dot(a, b, initial=initial, **options), got)
    # The reference numbers the results of its matmul; a product with a batch has the numbers that follow.
    product = matmul(a[:, 0], b[0].T, initial=initial, **options)
    assert_same_bits(product, got)
    for row in range(2):
        for column in range(3):
            place = Place(reduction_of(**options), row * 3 + column)
            start = int(initial[row, column])
            wanted = reference.dot_at(place, a[row, 0].tolist(), b[0, column].tolist(), start)[:2]
            assert (got[row, column], flags[row, column]) == wanted


@pytest.mark.parametrize("mode", IEEE)
@LEVELS
@pytest.mark.parametrize("fmt", [CBFLOAT16, BF16], ids=str)
def test_dot_in_a_mode_of_mpfr_is_a_loop_of_its_steps(fmt, level, mode):
    rng = np.random.default_rng(3)
    a, b = codes("normal", fmt, (6, 19), rng), codes("normal", fmt, (6, 19), rng)
    plan = Reduction.for_level(level, fmt, chunk=8)
    inner, outer = Mpfr(plan.inner, IEEE[mode]), Mpfr(plan.outer, IEEE[mode])
    x, y = values_of(a, fmt), values_of(b, fmt)
    wanted, raised = [], []
    for row in range(6):
        total, flags = 0.0, 0
        for start in range(0, 19, plan.chunk or 19):
            partial = total if plan.is_chain else 0.0
            for k in range(start, min(start + (plan.chunk or 19), 19)):
                partial, raises = inner.apply("fma", x[row, k], y[row, k], partial)
                flags |= raises
            total, raises = (partial, 0) if plan.is_chain else outer.apply("fma", partial, 1.0, total)
            flags |= raises
        wanted.append(total)
        raised.append(flags)
    got, flags = dot(a, b, operand=fmt, level=level, chunk=8, rounding=mode, return_flags=True)
    assert_same_bits(got, codes_of(np.array(wanted), plan.outer))
    assert_same_bits(flags, np.array(raised))


@pytest.mark.parametrize("bits", [5, 16])
def test_dot_stochastic_is_a_loop_of_gfloats_roundings(bits):
    rng = np.random.default_rng(4)
    a, b = codes("normal", CBFLOAT16, (4, 3, 21), rng), codes("normal", CBFLOAT16, (4, 3, 21), rng)
    info = {fmt: gfloat_info(fmt) for fmt in (CBFLOAT16, FP32, BF16)}

    def rounded(exact, fmt, index, step):
        # The sums of these operands are short: their float64 is exact.
        assert Fraction(float(exact)) == exact
        word = random_at(77, 5, index, step, bits)
        mode = RoundMode.StochasticFastest
        return Fraction(gfloat.round_float(info[fmt], float(exact), mode, srbits=word, srnumbits=bits))

    wanted = []
    for index, (x, y) in enumerate(zip(a.reshape(12, 21), b.reshape(12, 21), strict=True)):
        factors = [list(map(Fraction, values_of(each, CBFLOAT16).tolist())) for each in (x, y)]
        total = Fraction(0)
        for number, start in enumerate(range(0, 21, 8)):
            partial = Fraction(0)
            for k in range(start, min(start + 8, 21)):
                partial = rounded(factors[0][k] * factors[1][k] + partial, CBFLOAT16, index, k)
            total = rounded(partial + total, FP32, index, FIRST_PROMOTION + number)
        wanted.append(float(rounded(total, BF16, index, FINAL_CONVERSION)))
    options = {"chunk": 8, "out": BF16, "seed": 77, "call": 5, "random_bits": bits}
    got = dot(a, b, operand=CBFLOAT16, rounding="stochastic", out_rounding="stochastic", **options)
    assert_same_bits(got.ravel(), codes_of(np.array(wanted), BF16))


@MODES
def test_matmul_values_in_a_mode_is_the_decoded_matmul(mode):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(3, 2, 40)).astype(np.float32), rng.normal(size=(40, 5)).astype(np.float32)
    options = {"operand": CBFLOAT16, "out": CBFLOAT16, "rounding": mode, "out_rounding": mode, "seed": 6, "call": 1}
    wanted = matmul(encode(a, CBFLOAT16), encode(b, CBFLOAT16), **options)
    np.testing.assert_array_equal(matmul_values(a, b, **options), decode(wanted, CBFLOAT16))


def test_stochastic_products_repeat_and_differ_by_seed_and_by_call():
    rng = np.random.default_rng(6)
    a, b = codes("normal", CBFLOAT16, (9, 50), rng), codes("normal", CBFLOAT16, (50, 8), rng)

    def product(**options):
        return matmul(a, b, operand=CBFLOAT16, level=2, rounding="stochastic", **options)

    assert_same_bits(product(seed=1, call=2), product(seed=1, call=2))
    different = [product(seed=seed, call=call) for seed, call in ((0, 0), (1, 0), (2**32, 0), (0, 1))]
    for first in range(4):
        for second in range(first):
            assert (different[first] != different[second]).any()


def test_products_without_seed_and_call_are_those_of_0():
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(6, 30)).astype(np.float32), rng.normal(size=(30, 6)).astype(np.float32)
    x, y, table = encode(a, CBFLOAT16), encode(b, CBFLOAT16), np.arange(6)
    rows = Indexed(a.ravel(), np.zeros(1, np.int64), 30 * table, np.arange(30))
    columns = Indexed(b.ravel(), np.zeros(1, np.int64), 6 * np.arange(30), table)
    step = {"operand": CBFLOAT16, "level": 2, "rounding": "stochastic"}
    options = {**step, "out_rounding": "stochastic"}
    pairs = [(row, column) for row in x[:1].tolist() for column in y.T[:3].tolist()]
    for call in (
        lambda **told: np.array([explain(row, column, **step, **told).code for row, column in pairs]),
        lambda **told: np.array([reference.dot(row, column, **options, **told)[0] for row, column in pairs]),
        lambda **told: np.array(reference.matmul(x[:1].tolist(), y[:, :3].tolist(), **options, **told)),
        lambda **told: dot(x[:, None], y.T, **options, **told),
        lambda **told: matmul(x, y, **options, **told),
        lambda **told: matmul_values(a, b, **options, **told),
        lambda **told: indexed_values(rows, columns, **options, **told),
    ):
        told = call(seed=0, call=0)
        np.testing.assert_array_equal(call(), told)
        assert (call(seed=1) != told).any()
        assert (call(call=1) != told).any()


def test_mean_of_a_million_stochastic_roundings_is_the_exact_product():
    a, b = encode(1.37, CBFLOAT16), encode(-0.733, CBFLOAT16)
    exact = float(decode(a, CBFLOAT16)) * float(decode(b, CBFLOAT16))
    factors = np.full((1000, 1), a), np.full((1, 1000), b)
    plan = Reduction(CBFLOAT16, None, CBFLOAT16)
    got = decode(matmul(*factors, operand=CBFLOAT16, reduction=plan, rounding="stochastic", seed=3), CBFLOAT16)
    values, counts = np.unique(got, return_counts=True)
    assert len(values) == 2
    assert values[0] < exact < values[1]
    up = (exact - values[0]) / (float(values[1]) - values[0])
    assert abs(counts[1] - 1e6 * up) < 5 * (1e6 * up * (1 - up)) ** 0.5
    nearest = decode(matmul(factors[0][:1], factors[1][:, :1], operand=CBFLOAT16, reduction=plan), CBFLOAT16)
    assert abs(float(nearest[0, 0]) - exact) > 5 * (float(values[1]) - values[0]) * (up * (1 - up) / 1e6) ** 0.5


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, "rounding: got 'odd', must be a Rounding or one of nearest_even, .*", {"rounding": "odd"}),
        (TypeError, "out_rounding: got 3, must be a Rounding or the name of one", {"out_rounding": 3}),
        (TypeError, "seed: got 1.0, must be an int", {"seed": 1.0}),
        (ValueError, "seed: got -1, must be 0 to 18446744073709551615", {"seed": -1}),
        (ValueError, f"seed: got {2**64}, must be 0 to", {"seed": 2**64}),
        (ValueError, f"call: got {2**32}, must be 0 to 4294967295", {"call": 2**32}),
        (TypeError, "call: got True, must be an int", {"call": True}),
        (ValueError, "random_bits: got 33, must be 1 to 32", {"random_bits": 33}),
        (ValueError, "random_bits: got 0, must be 1 to 32", {"random_bits": 0}),
    ],
)
def test_modes_seeds_and_calls_that_are_none_raise_naming_them(error, message, options):
    code, value = np.zeros((1, 1), np.uint16), np.zeros((1, 1), np.float32)
    for call in (
        lambda: dot(code, code, operand=FP16, **options),
        lambda: matmul(code, code, operand=FP16, **options),
        lambda: matmul_values(value, value, operand=FP16, **options),
        lambda: reference.dot([0], [0], operand=FP16, **options),
        lambda: reference.matmul([[0]], [[0]], operand=FP16, **options),
    ):
        with pytest.raises(error, match=message):
            call()


def test_random_words_that_do_not_fit_raise_naming_them():
    code, stochastic = np.zeros(2, np.uint16), {"rounding": "stochastic"}

    def refused(error, message, **options):
        with pytest.raises(error, match=message):
            multiply_accumulate(code, code, code, operand=FP16, accumulator=FP16, **options)

    refused(TypeError, "random: got None, must be unsigned words of 16 bits", **stochastic)
    refused(TypeError, "random: got an array of float64, must be unsigned words", random=np.zeros(2), **stochastic)
    refused(ValueError, "random: got 0x10000, must be 0 to 0xffff", random=np.uint32([1, 65536]), **stochastic)
    refused(ValueError, "random: got -0x1, must be 0 to 0xffff", random=-1, **stochastic)
    refused(ValueError, "random_bits: got 33, must be 1 to 32", random=1, random_bits=33, **stochastic)
    refused(
        ValueError,
        "a, b, acc, random: got shapes .* must broadcast to one shape",
        random=np.zeros(3, np.uint8),
        **stochastic,
    )
    refused(ValueError, "random: got .*, must be None", random=np.zeros(2, np.uint8))


def test_dot_in_a_mode_of_no_products_converts_the_initial_value_by_out_rounding():
    nothing = np.zeros((1, 0), np.uint16)
    third = encode(np.float32([1 / 3]), FP32)
    with kernels.use("numpy"):
        for mode in ("up", "down"):
            got = dot(nothing, nothing, operand=FP16, initial=third, out=FP16, rounding="to_odd", out_rounding=mode)
            assert got[0] == reference.convert(int(third[0]), FP32, FP16, rounding=mode)[0]


@pytest.mark.parametrize("level", [1, 2])
def test_neutral_product_on_minus_zero_keeps_the_sign_in_mode_down_alone(level: int) -> None:
    """Units have no empty reduction: a product -0 * 1.0 stands for it, +0 * 1.0 in mode down (docs/numerics.md)."""
    minus_zero, one = CBFLOAT16.sign_mask, CBFLOAT16.one
    total = (FP32 if level == 1 else CBFLOAT16).sign_mask
    given = {"operand": CBFLOAT16, "level": level}

    # 0x3E00 - 0x3E00, rounded down, is the only way to a total of -0.
    assert dot([one, one | minus_zero], [one, one], **given, rounding="down") == total
    assert dot([], [], **given, initial=total) == total
    assert dot([minus_zero], [one], **given, initial=total) == 0
    assert dot([0], [one], **given, initial=total, rounding="down") == total
