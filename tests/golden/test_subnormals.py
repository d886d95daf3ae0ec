"""Subnormals that become zeros (NUMERICS section 12): the reference against MPFR and gfloat, the rest against it."""

from __future__ import annotations

from dataclasses import replace

import gfloat
import gmpy2
import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, Flag, FloatFormat, Reduction, Rounding, accumulators, reference
from golden.kernels.library import paths, use

from .hosts import GFLOAT_MODES, gfloat_info
from .judges import INEXACT, UNBOUNDED, UNDERFLOW, Mpfr, assert_same_bits, boundary_codes, codes_of, values_of

E4M3 = FloatFormat("e4m3", 4, 3)
FORMATS = pytest.mark.parametrize("fmt", [FP16, BF16, CBFLOAT16, CB16, E4M3], ids=str)
MPFR_MODES = {
    Rounding.NEAREST_EVEN: gmpy2.RoundToNearest,
    Rounding.TOWARD_ZERO: gmpy2.RoundToZero,
    Rounding.DOWN: gmpy2.RoundDown,
    Rounding.UP: gmpy2.RoundUp,
}
MODES = pytest.mark.parametrize("mode", Rounding, ids=str)
TINY = Flag.UNDERFLOW | Flag.INEXACT
FLUSH = {"subnormals": "flush"}


class MpfrThatFlushes(Mpfr):
    """MPFR with a format's precision and largest exponent, without a smallest one; results too small become zeros."""

    def __init__(self, fmt: FloatFormat, mode: int) -> None:
        super().__init__(fmt, mode)
        self.context = gmpy2.context(precision=fmt.precision, round=mode, emin=-UNBOUNDED, emax=fmt.emax + 1)

    def apply(self, operation: str, *operands: float) -> tuple[float, int]:
        value, flags = super().apply(operation, *operands)
        if value and abs(value) < self.min_normal:
            return float(np.copysign(0.0, value)), INEXACT | UNDERFLOW
        return value, flags


def as_they_count(codes: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    values = values_of(codes, fmt)
    return np.where(np.abs(values) < 2.0**fmt.emin, np.copysign(0.0, values), values)


def small_codes(fmt: FloatFormat, count: int, seed: int, near: tuple[FloatFormat, ...] = ()) -> np.ndarray:
    """Codes without NaNs: at the edges of binades, random ones, and many around the smallest normal number."""
    rng = np.random.default_rng(seed)
    around = fmt.min_normal + rng.integers(-fmt.min_normal, 4 * fmt.min_normal, count // 3)
    signs = rng.integers(0, 2, len(around)) * fmt.sign_mask
    drawn = rng.integers(0, 2**fmt.width, count // 3)
    codes = np.concatenate([rng.choice(boundary_codes(fmt, near), count // 3), around | signs, drawn])
    return rng.permutation(codes[~fmt.is_nan(codes)].astype(np.uint16 if fmt.width <= 16 else np.uint32))


@pytest.mark.parametrize("mode", MPFR_MODES, ids=str)
@FORMATS
def test_convert_that_flushes_is_mpfrs_rounding_without_a_smallest_exponent(fmt, mode):
    for source, count in ((FP32, 900), (FP16, 300)):
        codes = small_codes(source, count, 1, near=(fmt,))
        given = as_they_count(codes, source)
        values, flags = MpfrThatFlushes(fmt, MPFR_MODES[mode]).apply_all("plus", given)
        wanted = list(zip(codes_of(values, fmt).tolist(), flags.tolist(), strict=True))
        assert (
            fmt == BF16
            or source != FP32
            or {(0, UNDERFLOW | INEXACT), (fmt.sign_mask, UNDERFLOW | INEXACT)} & {*wanted}
        )
        for code, expected in zip(codes.tolist(), wanted, strict=True):
            assert reference.convert(code, source, fmt, rounding=mode, **FLUSH) == expected, hex(code)


@pytest.mark.parametrize("is_wide", [False, True], ids=["same", "float32"])
@pytest.mark.parametrize("mode", MPFR_MODES, ids=str)
@FORMATS
def test_step_that_flushes_is_mpfrs_fma_without_a_smallest_exponent(fmt, mode, is_wide):
    accumulator = FP32 if is_wide else fmt
    drawn = [small_codes(each, 600, seed, near=(fmt,)) for each, seed in ((fmt, 2), (fmt, 3), (accumulator, 4))]
    count = min(map(len, drawn))
    a, b, acc = (codes[:count] for codes in drawn)
    a[:200] = fmt.one  # sums around the smallest normal number
    exact = as_they_count(a, fmt), as_they_count(b, fmt), as_they_count(acc, accumulator)
    values, flags = MpfrThatFlushes(accumulator, MPFR_MODES[mode]).apply_all("fma", *exact)
    wanted = zip(codes_of(values, accumulator).tolist(), flags.tolist(), strict=True)
    for each, expected in zip(zip(a.tolist(), b.tolist(), acc.tolist(), strict=True), wanted, strict=True):
        got = reference.multiply_accumulate(*each, operand=fmt, accumulator=accumulator, rounding=mode, **FLUSH)
        assert got == expected, [hex(code) for code in each]


@pytest.mark.parametrize("mode", GFLOAT_MODES, ids=str)
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, E4M3], ids=str)
def test_flush_in_a_mode_of_gfloat_is_its_rounding_of_the_number_made_larger(fmt, mode):
    """Rounding without a smallest exponent looks alike at any exponent: near 1, all numbers are normal."""
    larger = 2.0**-fmt.emin
    rng = np.random.default_rng(5)
    values = np.ldexp(rng.uniform(-2, 2, 1500), fmt.emin + rng.integers(-3, 2, 1500))
    edges = 2.0**fmt.emin * (1 + np.arange(-8, 8) * 2.0 ** (-fmt.precision - 2))
    values, info = np.concatenate([values, edges, -edges]), gfloat_info(fmt)
    words = rng.integers(0, 2**16, len(values))
    for value, word in zip(values.tolist(), words.tolist(), strict=True):
        random = {"srbits": word, "srnumbits": 16} if mode is Rounding.STOCHASTIC else {}
        rounded = gfloat.round_float(info, value * larger, GFLOAT_MODES[mode], **random) / larger
        wanted = np.copysign(0.0, value) if abs(rounded) < 2.0**fmt.emin else rounded
        mine = {"random": word} if random else {}
        got = reference.encode(value, fmt, rounding=mode, **FLUSH, **mine)
        assert got == codes_of(np.array([wanted]), fmt)[0], (value.hex(), word)


def test_host_numbers_below_the_smallest_normal_are_flushed_and_no_others():
    # NumPy's float16 keeps subnormals. It rounds them at another digit, so that numbers beside the limit are left out.
    values = np.ldexp(np.random.default_rng(6).uniform(-2, 2, 4000), np.random.default_rng(7).integers(-20, -10, 4000))
    values = values[np.abs(np.abs(values) / 2.0**-14 - 1) > 2.0**-10]
    host = values.astype(np.float16)
    wanted = np.where(np.abs(host) < np.float16(2.0**-14), np.copysign(np.float16(0), host), host).view(np.uint16)
    assert_same_bits(golden.encode(values, "float16", **FLUSH), wanted, values)
    assert_same_bits([reference.encode(each, "float16", **FLUSH) for each in values.tolist()], wanted, values)


@pytest.mark.parametrize(
    ("mode", "below", "code", "flags"),
    [
        ("nearest_even", 2.0**-12, 0x0400, Flag.INEXACT),  # half of the last place that counts below 2**-14: to even
        ("nearest_even", 2.0**-12 + 2.0**-23, 0x0000, TINY),  # float16 would round it up to 2**-14
        ("nearest_even", 2.0**-11, 0x0000, TINY),  # exact except for the zero
        ("nearest_even", 2.0**-10, 0x0000, TINY),  # float16 has this subnormal number
        ("up", 2.0**-12, 0x0400, Flag.INEXACT),
        ("up", 2.0**-11 + 2.0**-23, 0x0000, TINY),
        ("to_odd", 2.0**-20, 0x0000, TINY),
        ("nearest_away", 2.0**-12, 0x0400, Flag.INEXACT),
        ("down", 2.0**-23, 0x0000, TINY),
    ],
)
def test_number_just_below_the_smallest_normal_is_rounded_at_its_own_last_place(mode, below, code, flags):
    number = 2.0**-14 * (1 - below)
    value = reference.number_value(golden.exact.exact_number(number))
    assert reference.round_value(value, "float16", rounding=mode, **FLUSH) == (code, flags)
    wide = int(np.float32(number).view(np.uint32))
    assert golden.decode(wide, "float32") == number
    assert reference.convert(wide, "float32", "float16", rounding=mode, **FLUSH) == (code, flags)
    got = golden.convert(wide, "float32", "float16", rounding=mode, return_flags=True, **FLUSH)
    assert tuple(map(int, got)) == (code, flags)


@pytest.mark.parametrize(
    ("operands", "code", "flags"),
    [
        ((0x0001, 0x3C00, 0x0000), 0x0000, 0),  # a subnormal factor, which is exact, raises nothing
        ((0x8001, 0x3C00, 0x8000), 0x8000, 0),  # -0 * 1 + -0
        ((0x0001, 0x3C00, 0x83FF), 0x0000, 0),  # +0 * 1 + -0: of both signs, +0
        ((0x3C00, 0x0400, 0x8001), 0x0400, 0),  # a subnormal addend
        ((0x7C00, 0x03FF, 0x3C00), 0x7E00, Flag.INVALID),  # infinity * 0
        ((0x3C00, 0x0401, 0x8400), 0x0000, TINY),  # exact, and subnormal
        ((0x3C00, 0x8401, 0x0400), 0x8000, TINY),
        ((0x3C00, 0x0400, 0x8400), 0x0000, 0),  # an exact zero
        ((0x0400, 0x0400, 0x0400), 0x0400, Flag.INEXACT),
    ],
)
def test_step_of_subnormal_operands_counts_them_as_zeros_of_their_sign(operands, code, flags):
    formats = {"operand": FP16, "accumulator": FP16, **FLUSH}
    assert reference.multiply_accumulate(*operands, **formats) == (code, flags)
    got = golden.multiply_accumulate(*operands, **formats, return_flags=True)
    assert tuple(map(int, got)) == (code, flags)
    assert int(golden.multiply_accumulate(*operands, **formats)) == code


def words_of(mode: Rounding, count: int) -> dict[str, np.ndarray]:
    if mode is not Rounding.STOCHASTIC:
        return {}
    return {"random": np.random.default_rng(8).integers(0, 2**16, count).astype(np.uint32)}


@MODES
@pytest.mark.parametrize("destination", [*golden.formats.WIDE_FORMATS, *golden.formats.NARROW_FORMATS], ids=str)
def test_convert_of_arrays_that_flush_has_the_references_codes_and_flags(destination, mode):
    for source in (FP32, FP16, golden.FLOAT8_E5M2FNUZ):
        codes = small_codes(source, 300, 9, near=(destination,)).astype(golden.code_arrays.code_dtype(source))
        words = words_of(mode, len(codes))
        singles = [{"random": int(word)} for word in words["random"]] if words else [{}] * len(codes)
        judged = [
            reference.convert(code, source, destination, rounding=mode, **FLUSH, **word)
            for code, word in zip(codes.tolist(), singles, strict=True)
        ]
        wanted = [code for code, _ in judged]
        options = {"rounding": mode, **FLUSH, **words}
        got, flags = golden.convert(codes, source, destination, return_flags=True, **options)
        assert_same_bits(got, wanted, codes)
        assert_same_bits(flags, [raised for _, raised in judged], codes)
        assert_same_bits(golden.convert(codes, source, destination, **options), wanted, codes)
        if mode is not Rounding.STOCHASTIC:  # by its table, which few codes would not make
            many = np.tile(codes, -(-5000 // len(codes)))
            assert_same_bits(golden.convert(many, source, destination, **options)[: len(codes)], wanted, codes)


@MODES
@FORMATS
def test_step_of_arrays_that_flush_has_the_references_codes_and_flags(fmt, mode):
    for accumulator in (fmt, FP32):
        drawn = [small_codes(each, 600, seed, near=(fmt,)) for each, seed in ((fmt, 10), (fmt, 11), (accumulator, 12))]
        count = min(map(len, drawn))
        a, b, acc = (codes[:count] for codes in drawn)
        a[:200] = fmt.one
        options = {"operand": fmt, "accumulator": accumulator, "rounding": mode, **FLUSH}
        words = words_of(mode, count)
        got, flags = golden.multiply_accumulate(a, b, acc, return_flags=True, **options, **words)
        for k, each in enumerate(zip(a.tolist(), b.tolist(), acc.tolist(), strict=True)):
            word = {"random": int(words["random"][k])} if words else {}
            wanted = reference.multiply_accumulate(*each, **options, **word)
            assert (int(got[k]), int(flags[k])) == wanted, [hex(code) for code in each]


def test_encode_of_values_flushes_results_alone():
    # 2**-126 less an ulp of float32 is a subnormal value there. A code of it counts as 0; the number 2**-126 is near.
    fmt = FloatFormat("e8m3", 8, 3)
    value = np.float32(2.0**-126 * (1 - 2.0**-23))
    values = np.full(5000, value)
    assert reference.encode(float(value), fmt, **FLUSH) == fmt.min_normal
    assert (golden.encode(values, fmt, **FLUSH) == fmt.min_normal).all()
    assert (golden.quantize(values, fmt, **FLUSH) == 2.0**-126).all()
    assert (golden.convert(values.view(np.uint32), FP32, fmt, **FLUSH) == 0).all()


REDUCTIONS = [
    Reduction.for_level(level, CBFLOAT16, chunk=4) for level in (0, 1, 2)
] + [Reduction(FP16, 5, BF16, out=golden.FLOAT8_E4M3FN, out_rounding="up")]  # fmt: skip


@MODES
@pytest.mark.parametrize("plan", REDUCTIONS, ids=str)
def test_products_that_flush_are_alike_on_every_back_end_that_serves_them(plan, mode):
    operand = plan.inner if plan.inner != FP32 else BF16
    whole = replace(plan, operand=operand, rounding=mode, **FLUSH)
    rng = np.random.default_rng(13)
    # Factors near the root of the smallest normal number: products around it.
    middle = operand.min_normal // 2 + operand.one // 2
    shape = (3, 11), (11, 4)
    a, b = ((middle + rng.integers(-(2**9), 2**9, each)).astype(np.uint16) for each in shape)
    a, b = (each | (rng.integers(0, 2, each.shape) << 15).astype(np.uint16) for each in (a, b))
    a[0, :4], b[:3, 1] = [1, 0x8003, operand.min_normal, operand.inf], [operand.one, operand.one, 2]
    start = small_codes(plan.outer, 60, 14)[:12].reshape(3, 4)
    start[1:, :3] = [1, 0, plan.outer.sign_mask | 1]
    exact, exact_counts = golden.matmul(a, b, reduction=whole, initial=start, counts=True, backend="exact")
    got, counts = golden.matmul(a, b, reduction=whole, initial=start, counts=True)
    assert_same_bits(got, exact)
    assert str(counts) == str(exact_counts)
    assert exact_counts.sum().products.underflow >= 3
    values = [golden.decode(each, operand) for each in (a, b)]
    rounded = golden.matmul_values(*values, reduction=whole, initial=golden.decode(start, plan.outer))
    assert_same_bits(golden.encode(rounded, whole.result), exact)
    dots = golden.dot(a[:, np.newaxis], b.T, reduction=whole, initial=start, return_flags=True)
    judged = [
        [reference.dot_at(reference.Place(whole, i * 4 + j), a[i].tolist(), b[:, j].tolist(), int(start[i, j]))[:2]
         for j in range(4)] for i in range(3)
    ]  # fmt: skip
    assert_same_bits(dots[0], [[code for code, _ in row] for row in judged])
    assert_same_bits(dots[1], [[raised for _, raised in row] for row in judged])


CHAINED = [Reduction(fmt, None, fmt, operand=fmt) for fmt in (FP16, BF16, CBFLOAT16, CB16, FloatFormat("wide", 7, 22))]
LEVELS = [Reduction.for_level(level, fmt, chunk=8) for fmt in (FP16, BF16, CBFLOAT16) for level in (1, 2)]
LEVELS += [Reduction.for_level(0, BF16), Reduction(FP16, 5, BF16, out=CBFLOAT16)]


@pytest.mark.parametrize("path", paths()[:-1])
@pytest.mark.parametrize(
    "plan", [Reduction.for_level(0, BF16), *CHAINED, *LEVELS, Reduction(FP16, 5, BF16, out=CBFLOAT16)], ids=str
)
def test_kernels_that_flush_have_the_codes_of_numpy_on_every_path(plan, path):
    operand = plan.inner if plan.inner != FP32 else BF16
    whole = replace(plan, operand=operand, **FLUSH)
    rng = np.random.default_rng(21)
    # Products around the smallest normal number of the accumulator, many of them half way between two of its numbers.
    halved = (plan.inner.emin - 2) // 2
    for m, n, k in ((3, 5, 1), (7, 33, 20), (2, 9, 300)):
        shapes = (m, k), (k, n)
        powers = [rng.integers(halved - 3, halved + 4, each) for each in shapes]
        values = [np.ldexp(1 + rng.integers(0, 16, each.shape) / 16.0, each) for each in powers]
        a, b = (golden.encode(each * rng.choice([-1, 1], each.shape), operand) for each in values)
        a[0, :2], b[:2, 1] = operand.min_normal - 1, operand.one
        start = small_codes(plan.outer, 6 * n, 22)[:n] * (np.arange(n) % 2).astype(np.uint16)
        wanted = golden.matmul(a, b, reduction=whole, initial=start, backend="numpy")
        with use(path):
            got = golden.matmul(a, b, reduction=whole, initial=start, backend="kernels")
            rounded = golden.matmul_values(
                *(golden.decode(each, operand) for each in (a, b)),
                reduction=whole,
                initial=golden.decode(start, plan.outer),
                backend="kernels",
            )
            dots = golden.dot(a[:, np.newaxis], b.T, reduction=whole, initial=start, backend="kernels")
        assert_same_bits(got, wanted)
        assert_same_bits(golden.encode(rounded, whole.result), wanted)
        assert_same_bits(dots, wanted)
        kept = golden.matmul(a, b, reduction=replace(whole, subnormals="keep"), initial=start, backend="kernels")
        assert (kept != wanted).any()


@pytest.mark.parametrize("path", paths()[:-1])
@pytest.mark.parametrize("fmt", [FP16, BF16, CBFLOAT16, CB16, FP32], ids=str)
def test_sum_at_the_edge_of_what_is_flushed_is_rounded_first_on_every_path(fmt, path):
    """The smallest normal number less a quarter or half of its ulp, a bit more and a bit less."""
    operand = fmt if fmt != FP32 else BF16
    whole = Reduction(fmt, None, fmt, operand=operand, **FLUSH)
    ulp = fmt.emin - fmt.fraction_bits
    shift = -(ulp // 2)
    below = np.array([0.25, 0.25 * (1 + 2.0**-7), 0.25 * (1 - 2.0**-7), 0.5, 0.5 * (1 + 2.0**-7), 0.125, 1.0])
    edges = golden.encode(np.ldexp(below, ulp + shift), operand)
    a = np.stack([np.full_like(edges, operand.min_normal), edges], axis=-1)
    b = golden.encode([1.0, -(2.0**-shift)], operand)
    with use(path):
        got = golden.dot(a, b, reduction=whole, backend="kernels")
    wanted = [reference.dot(each, b.tolist(), reduction=whole)[0] for each in a.tolist()]
    assert wanted == [fmt.min_normal, 0, fmt.min_normal, 0, 0, fmt.min_normal, 0]
    assert_same_bits(got, wanted)
    with use(path):
        negative = golden.dot(a ^ operand.sign_mask, b, reduction=whole, backend="kernels")
    assert_same_bits(negative, [x | fmt.sign_mask if x or whole.is_chain else x for x in wanted])


def test_values_of_products_are_rounded_to_operands_first_and_count_as_zeros_then():
    # Just below the smallest normal number of float16, to which its rounding takes it; a conversion that flushes not.
    small, one = np.full((1, 1), 2.0**-14 * (1 - 2.0**-12 - 2.0**-22), np.float32), np.ones((1, 1), np.float32)
    plan = {"operand": FP16, "level": 0}
    assert golden.matmul_values(small, one, **plan)[0, 0] == 2.0**-14
    assert golden.quantize(small, FP16, **FLUSH)[0, 0] == 0
    for backend in ("numpy", "exact"):
        assert golden.matmul_values(small, one, **plan, **FLUSH, backend=backend)[0, 0] == 2.0**-14
        assert golden.matmul_values(small * 0.99, one, **plan, **FLUSH, backend=backend)[0, 0] == 0


def test_swamping_is_judged_on_operands_as_they_count():
    # The accumulator 0x8001 counts as -0: a product that is too small leaves the zero that it found.
    options = {"operand": FP16, "level": 2, "chunk": None, "counts": True}
    tiny = {"a": [0x0400], "b": [0x0400]}
    code, flags, counts = reference.dot(**tiny, **options, **FLUSH)
    assert (code, flags, counts.products.swamped, counts.products.underflow) == (0, TINY, 1, 1)
    code, flags, counts = reference.dot([0x0001], [0x3C00], **options, **FLUSH)
    assert (code, flags, counts.products.swamped) == (0, 0, 0)  # a product of 0 does not count as an addend
    code, flags, counts = reference.dot([0x0001], [0x3C00], initial=0x3C00, **options)
    assert (code, counts.promotions.swamped) == (0x3C00, 1)
    assert reference.dot([0x0001], [0x3C00], initial=0x3C00, **options, **FLUSH)[2].promotions.swamped == 0


@pytest.mark.parametrize("level", [0, 1, 2])
def test_empty_reduction_gives_the_initial_value_as_it_counts(level):
    fmt = FP16 if level == 2 else FP32
    options = {"operand": FP16, "level": level, **FLUSH}
    for start, wanted in (
        (fmt.sign_mask | 1, fmt.sign_mask),
        (1, 0),
        (fmt.min_normal, fmt.min_normal),
        (fmt.inf, fmt.inf),
    ):
        assert reference.dot([], [], initial=start, **options)[0] == wanted
        none = np.zeros((2, 0), np.uint16)
        assert (golden.dot(none, none, initial=start, **options) == wanted).all()
        assert (golden.dot(none, none, initial=start, backend="exact", **options) == wanted).all()
        assert golden.explain([], [], initial=start, **options).code == wanted


def test_explanation_shows_operands_as_they_count():
    explained = golden.explain([0x0001, 0x0401], [0x3C00, 0x3C00], operand=FP16, level=2, initial=0x83FF, **FLUSH)
    assert [step.addend for step in explained.steps[:2]] == [0, golden.exact.exact_number(2.0**-14 * (1 + 2.0**-10))]
    assert explained.exact == explained.steps[1].addend
    assert explained.error == 0
    assert all(way.code == explained.code for way in explained.alternatives() if way.fmt == FP16)


def test_reduction_that_flushes_says_so_in_its_line_and_one_that_keeps_does_not():
    plan = Reduction(BF16, 32, FP32, **FLUSH)
    assert str(plan) == "inner=bfloat16 chunk=32 outer=float32 subnormals=flush"
    assert Reduction.parse(str(plan)) == plan != Reduction(BF16, 32, FP32)
    assert hash(plan) != hash(Reduction(BF16, 32, FP32))
    assert "subnormals" not in str(Reduction(BF16, 32, FP32, subnormals="keep"))
    assert golden.dot([1], [0x3C00], operand=FP16, reduction=Reduction(FP16, 4, FP16, **FLUSH)) == 0
    assert golden.dot([1], [0x3C00], operand=FP16, reduction=Reduction(FP16, 4, FP16, **FLUSH), subnormals="keep") == 1


def test_choice_that_is_none_or_that_nobody_has_is_named():
    for call in (
        lambda given: Reduction(BF16, 32, FP32, subnormals=given),
        lambda given: golden.convert(0, BF16, FP16, subnormals=given),
        lambda given: golden.encode(0.0, FP16, subnormals=given),
        lambda given: golden.multiply_accumulate(0, 0, 0, operand=FP16, accumulator=FP16, subnormals=given),
        lambda given: golden.dot([0], [0], operand=FP16, subnormals=given),
        lambda given: reference.convert(0, BF16, FP16, subnormals=given),
        lambda given: reference.multiply_accumulate(0, 0, 0, operand=FP16, accumulator=FP16, subnormals=given),
        lambda given: reference.dot([0], [0], operand=FP16, subnormals=given),
    ):
        with pytest.raises(ValueError, match="subnormals: got 'drop', must be 'keep' or 'flush'"):
            call("drop")
        with pytest.raises(TypeError, match="subnormals: got True, must be 'keep' or 'flush'"):
            call(True)
    with pytest.raises(
        ValueError, match=r"subnormals: got 'flush', must be 'keep': the accumulator of .* has a rule of its own"
    ):
        golden.dot([0], [0], operand=FP16, reduction=accumulators["nvidia_hopper"], **FLUSH)


def test_kernels_that_are_forced_say_which_subnormals_they_flush():
    refusal = "the kernels flush subnormals to nearest even, in formats of 16 bits and more, without counts; numpy and"
    for options in (
        {"operand": FP16, "rounding": "up"},
        {"operand": golden.FLOAT8_E5M2},
        {"operand": FP16, "counts": True},
    ):
        with pytest.raises(ValueError, match=refusal):
            golden.dot([1], [1], backend="kernels", **options, **FLUSH)
