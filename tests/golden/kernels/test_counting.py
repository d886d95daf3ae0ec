"""The compiled kernels count as NumPy does, on every path, in every form, with any number of threads."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, Rounding, dot, kernels, matmul
from golden.arrays.counting import as_counting

from ..answers import on_numpy
from .operands import (
    COMPILED,
    FORMATS,
    KINDS,
    beyond_double,
    codes,
    grown_by_rounding,
    late_overflow,
    near_smallest_normal,
    tiny_by_the_last_digit,
)

NAMES = ("steps", "inexact", "underflow", "overflow", "invalid", "swamped")
#: Widest that a scaled float serves, and one bit wider.
WIDE = FloatFormat("e5m20", 5, 20), FloatFormat("e5m21", 5, 21)


def numbers(counts):
    """All numbers of counts, each an array."""
    events = [getattr(kind, name) for kind in (counts.products, counts.promotions) for name in NAMES]
    return [np.asarray(each) for each in (*events, counts.largest_exponent)]


def assert_counted_as_numpy(a, b, path, **options):
    """Compare codes and counts of a matrix product, of each result, with NumPy's; return the counts."""
    wanted_codes, wanted = on_numpy(matmul, a, b, counts=True, **options)
    with kernels.use(path):
        got_codes, got = matmul(a, b, counts=True, **options)
        plain = matmul(a, b, **options)
    assert (got_codes == wanted_codes).all()
    assert (plain == got_codes).all()
    for number, (have, want) in enumerate(zip(numbers(got), numbers(wanted), strict=True)):
        assert have.dtype == want.dtype == np.int64
        if (have != want).any():
            at = tuple(np.argwhere(have != want)[0])
            row, column = a[at[-2]].tolist(), b[:, at[-1]].tolist()
            raise AssertionError(f"number {number} of {at}: {have[at]}, must be {want[at]}: {row} by {column}")
    return got


def plans(fmt):
    """Reductions of operands of a format, in the format itself, in float32 and in both."""
    inner = fmt if fmt.has_one else CBFLOAT16
    return {
        "0": Reduction(FP32, None, FP32),
        "1": Reduction(inner, 32, FP32),
        "2": Reduction(inner, 7, inner),
        "chain": Reduction(inner, None, inner),
        "mixed": Reduction(FP32, 32, BF16),
    }


@pytest.mark.turns
@COMPILED
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", [*FORMATS, *WIDE], ids=str)
def test_counts_of_all_kinds_of_sums_are_those_of_numpy(fmt, kind, path):
    rng = np.random.default_rng(11)
    for name, plan in plans(fmt).items():
        a, b = codes(kind, fmt, (7, 70), rng), codes(kind, fmt, (70, 19), rng)
        initial = codes(kind, plan.outer, (7, 19), rng) if name != "1" else None
        assert_counted_as_numpy(a, b, path, operand=fmt, reduction=plan, initial=initial)


@COMPILED
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16], ids=str)
def test_counts_of_sums_that_overflow_late_are_those_of_numpy(fmt, path):
    for operands in (late_overflow(fmt), grown_by_rounding(fmt), beyond_double(fmt)):
        for plan in (Reduction(fmt, None, fmt), Reduction(fmt, 300, FP32), Reduction(FP32, None, FP32)):
            assert_counted_as_numpy(*operands, path, operand=fmt, reduction=plan)


@COMPILED
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, FP32], ids=str)
def test_counts_of_sums_near_the_smallest_normal_value_are_those_of_numpy(fmt, path):
    a, b = near_smallest_normal(fmt)
    found = [
        assert_counted_as_numpy(a, b, path, operand=fmt, reduction=plan, initial=initial)
        for plan in (Reduction(fmt, None, fmt), Reduction(FP32, None, FP32))
        for initial in (None, plan.outer.min_normal - 1, plan.outer.sign_mask | 1)
    ]
    assert 0 < found[0].products.underflow.sum() < found[0].products.inexact.sum()


@COMPILED
@pytest.mark.parametrize(
    ("fmt", "x", "ys"),
    [
        (CBFLOAT16, 0x3FFF, (0x1201, 0x13FF)),
        (BF16, 0x3FFF, (0x0381, 0x03FF)),
        (FP32, 0x3FFFFFFF, (0x0B800001, 0x0BFFFFFF)),
    ],
    ids=str,
)
def test_sum_made_tiny_by_the_last_digit_of_a_product_counts_an_underflow(fmt, x, ys, path):
    # x * y rounds, and x * -y cancels all but the part that rounding cut off: half of the lowest digit, or near it.
    for (a, b), y in zip(tiny_by_the_last_digit(fmt), ys, strict=True):
        assert (a == x).all()
        assert (b == [[y], [y | fmt.sign_mask]]).all()
        counts = assert_counted_as_numpy(a, b, path, operand=fmt, reduction=Reduction(fmt, None, fmt))
        assert (counts.products.inexact == 2).all()
        assert (counts.products.underflow == 1).all()


@COMPILED
@pytest.mark.parametrize(("a", "b", "underflow"), [(0x2009, 0x1FEE, 0), (0x200C, 0x1FE8, 1)])
def test_product_rounded_to_the_smallest_normal_value_is_tiny_below_a_quarter(a, b, underflow, path):
    # (1 - 81 / 2^18) and (1 - 144 / 2^18) times the smallest normal value: the limit is 1 - 128 / 2^18.
    factors = np.full((5, 1), a, np.uint16), np.full((1, 35), b, np.uint16)
    plan = Reduction(CBFLOAT16, None, CBFLOAT16)
    counts = assert_counted_as_numpy(*factors, path, operand=CBFLOAT16, reduction=plan)
    assert (counts.products.inexact == 1).all()
    assert (counts.products.underflow == underflow).all()


@pytest.mark.turns
@COMPILED
@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_counts_in_every_mode_are_those_of_numpy(mode, path):
    rng = np.random.default_rng(13)
    for fmt in (CBFLOAT16, BF16):
        for kind in KINDS:
            a, b = codes(kind, fmt, (9, 50), rng), codes(kind, fmt, (50, 21), rng)
            for plan in plans(fmt).values():
                options = {"operand": fmt, "reduction": plan, "rounding": mode, "seed": 3}
                assert_counted_as_numpy(a, b, path, **options)


@pytest.mark.turns
@COMPILED
@pytest.mark.parametrize("shape", [(1, 1, 1), (70, 300, 5), (3, 300, 90), (2, 530, 1), (600, 9, 300)])
def test_counts_of_any_shape_in_every_form_are_those_of_each_result(shape, path):
    rng = np.random.default_rng(14)
    rows, length, columns = shape
    a, b = codes("special", FP16, (2, rows, length), rng), codes("special", FP16, (length, columns), rng)
    for level in (0, 1, 2):
        options = {"operand": FP16, "level": level}
        _, wanted = on_numpy(matmul, a, b, counts=True, **options)
        for threads in (1, 3):
            with kernels.use(path, threads=threads):
                plain = matmul(a, b, **options)
                for form in (True, "rows", "sum"):
                    found, got = matmul(a, b, counts=form, **options)
                    assert (found == plain).all()
                    for have, want in zip(numbers(got), numbers(in_form(wanted, form)), strict=True):
                        assert (have == want).all()


def in_form(counts, form):
    from golden.arrays.counting import counts_in_form

    return counts_in_form(counts, form)


@pytest.mark.turns
@COMPILED
@pytest.mark.parametrize("mode", ["nearest_even", "up", "stochastic"])
def test_counts_of_some_rows_are_those_of_each_result(mode, path):
    rng = np.random.default_rng(15)
    for fmt in (CBFLOAT16, FP16):
        a, b = codes("normal", fmt, (2, 100, 90), rng), codes("normal", fmt, (2, 90, 30), rng)
        for plan in plans(fmt).values():
            initial = codes("normal", plan.outer, (100, 30), rng)
            options = {"operand": fmt, "reduction": plan, "initial": initial, "rounding": mode, "seed": 3}
            with kernels.use(path, threads=2):
                plain, each = matmul(a, b, counts=True, **options)
                for rows in (1, 7, slice(3, 9), [99, 0, 50], []):
                    numbers_of_rows = as_counting(True, rows, 100).rows
                    for form in (True, "rows", "sum"):
                        found, got = matmul(a, b, counts=form, counted_rows=rows, **options)
                        assert (found == plain).all()
                        if form is True:
                            some = got
                            for have, want in zip(numbers(got), numbers(each), strict=True):
                                assert (have == want[:, numbers_of_rows]).all()
                        elif form == "sum":
                            assert got == some.sum()


@COMPILED
def test_counts_of_dot_products_are_those_of_numpy(path):
    rng = np.random.default_rng(16)
    for fmt in (CBFLOAT16, FP16, BF16):
        for kind in ("normal", "wide", "special"):
            a, b = codes(kind, fmt, (3, 70, 50), rng), codes(kind, fmt, (70, 50), rng)
            for plan in plans(fmt).values():
                wanted = on_numpy(dot, a, b, operand=fmt, reduction=plan, counts=True)
                with kernels.use(path):
                    got = dot(a, b, operand=fmt, reduction=plan, counts=True)
                    total = dot(a, b, operand=fmt, reduction=plan, counts="sum")[1]
                assert (got[0] == wanted[0]).all()
                for have, want in zip(numbers(got[1]), numbers(wanted[1]), strict=True):
                    assert have.shape == (3, 70)
                    assert (have == want).all()
                assert total == got[1].sum()


@COMPILED
def test_signalling_nans_are_counted_once_a_step(path):
    rng = np.random.default_rng(17)
    a, b = codes("normal", BF16, (6, 40), rng), codes("normal", BF16, (40, 5), rng)
    initial = codes("normal", FP32, (6, 5), rng)
    a[0, 3], a[1, 0], b[0, 0], b[7, 1], a[2, 7] = 0x7F81, 0x7F80, 0, 0xFF81, 0x7F82
    initial[1, 0] = initial[3, 3] = 0x7F800001
    for plan in plans(BF16).values():
        if plan.outer == FP32:
            counts = assert_counted_as_numpy(a, b, path, operand=BF16, reduction=plan, initial=initial)
            assert counts.products.invalid[2, 1] == 1
