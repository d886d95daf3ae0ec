"""Products on every compiled path: the bits of the reference and of NumPy, for any operands and shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import FP16, FP32, FloatFormat, Reduction, dot, kernels, matmul, multiply_accumulate, reference
from golden.formats import BF16, CBFLOAT16

from ..answers import on_numpy, once
from ..judges import assert_same_bits
from .operands import (
    COMPILED,
    FORMATS,
    KINDS,
    ODD_ONES,
    SIXTEEN_BIT_FORMATS,
    beyond_double,
    codes,
    grown_by_rounding,
    late_overflow,
)

SIXTEEN = pytest.mark.parametrize("fmt", SIXTEEN_BIT_FORMATS, ids=str)
LEVELS = pytest.mark.parametrize("level", [0, 1, 2])
CHUNKS = (None, 1, 3, 32)
THREADS = (1, 2, 3)


def steps_of_the_reference(steps, **formats):
    return [reference.multiply_accumulate(*operands, **formats)[0] for operands in steps]


@pytest.mark.turns
@COMPILED
@SIXTEEN
@LEVELS
@pytest.mark.parametrize("kind", KINDS)
def test_matmul_compiled_of_special_operands_is_the_references(path, fmt, level, kind):
    rng = np.random.default_rng(60 + level)
    a, b = codes(kind, fmt, (5, 9), rng), codes(kind, fmt, (9, 7), rng)
    for chunk in (None, 1, 4):
        wanted = once(reference.matmul, a.tolist(), b.tolist(), operand=fmt, level=level, chunk=chunk)
        with kernels.use(path):
            assert_same_bits(matmul(a, b, operand=fmt, level=level, chunk=chunk), np.array(wanted))


@pytest.mark.turns
@COMPILED
@SIXTEEN
@LEVELS
@pytest.mark.parametrize("kind", KINDS)
def test_matmul_compiled_of_long_chains_is_numpys(path, fmt, level, kind):
    # 601 products are several packed blocks; their chunks end within them, at their ends and far beyond.
    rng = np.random.default_rng(70 + level)
    a, b = codes(kind, fmt, (9, 601), rng), codes(kind, fmt, (601, 75), rng)
    initial = codes(kind, Reduction.for_level(level, fmt).outer, (75,), rng)
    for chunk in (*CHUNKS, 256, 300):
        options = {"operand": fmt, "level": level, "chunk": chunk, "initial": initial}
        wanted = on_numpy(matmul, a, b, **options)
        for threads in THREADS:
            with kernels.use(path, threads):
                assert_same_bits(matmul(a, b, **options), wanted)


@COMPILED
@LEVELS
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 13, 65])
@pytest.mark.parametrize("columns", [1, 3, 15, 16, 17, 33, 63, 64, 65, 130])
def test_matmul_compiled_of_ragged_shapes_is_numpys(path, level, rows, columns):
    rng = np.random.default_rng(rows * 1000 + columns)
    a, b = codes("special", CBFLOAT16, (rows, 37), rng), codes("special", CBFLOAT16, (37, columns), rng)
    wanted = on_numpy(matmul, a, b, operand=CBFLOAT16, level=level)
    for threads in THREADS:
        with kernels.use(path, threads):
            assert_same_bits(matmul(a, b, operand=CBFLOAT16, level=level), wanted)


@COMPILED
@SIXTEEN
@pytest.mark.parametrize("operands", [late_overflow, grown_by_rounding])
def test_matmul_compiled_overflows_in_a_block_of_small_factors(path, fmt, operands):
    a, b = operands(fmt)
    wanted, _ = once(reference.dot, a[0].tolist(), b[:, 0].tolist(), operand=fmt, level=2, chunk=None)
    assert wanted == fmt.inf
    with kernels.use(path):
        assert int(matmul(a, b, operand=fmt, level=2, chunk=None)[0, 0]) == wanted


@COMPILED
@SIXTEEN
def test_matmul_compiled_of_a_sum_beyond_float64_is_rounded_by_its_last_bit(path, fmt):
    a, b = beyond_double(fmt)
    wanted = np.array(once(reference.matmul, a.tolist(), b.tolist(), operand=fmt, level=2))
    assert wanted[0, 0] + 1 == wanted[1, 0]  # the tiny product decides
    with kernels.use(path):
        assert_same_bits(matmul(a, b, operand=fmt, level=2), wanted)


@COMPILED
@pytest.mark.parametrize(
    ("fmt", "value", "code"),
    [
        (FP16, 0x33000008, 0x0001),
        (FP16, 0x33000000, 0x0000),
        (FP16, 0x33BFFFFF, 0x0001),
        (CBFLOAT16, 0x2B800001, 0x0001),
        (CBFLOAT16, 0x2C3FFFFF, 0x0001),
    ],
    ids=str,
)
def test_matmul_in_float32_that_ends_beside_a_tie_of_subnormals_is_rounded_by_its_last_bit(path, fmt, value, code):
    # After a chain to nearest, the result is rounded to odd: a number so small that float32 cuts its bits.
    a, b = np.full((1, 1), value, np.uint32), np.full((1, 1), FP32.one, np.uint32)
    with kernels.use(path):
        assert matmul(a, b, operand=FP32, level=0, out=fmt)[0, 0] == code


@COMPILED
@pytest.mark.parametrize("threads", THREADS)
def test_matmul_compiled_on_several_threads_is_numpys(path, threads):
    # Enough steps that each thread gets a share.
    rng = np.random.default_rng(80)
    for shape in ((150, 60, 140), (700, 60, 20), (20, 60, 700)):
        a, b = codes("special", BF16, shape[:2], rng), codes("special", BF16, shape[1:], rng)
        initial = codes("special", FP32, (shape[0], shape[2]), rng)
        options = {"operand": BF16, "initial": initial, "out": FP16}
        wanted = on_numpy(matmul, a, b, **options)
        with kernels.use(path, threads):
            assert_same_bits(matmul(a, b, **options), wanted)


@st.composite
def plans(draw: st.DrawFn) -> tuple[FloatFormat, Reduction, FloatFormat | None]:
    formats = st.sampled_from(FORMATS)
    inner = draw(formats.filter(lambda fmt: fmt.has_one))
    plan = Reduction(inner, draw(st.sampled_from([None, 1, 2, 7, 32])), draw(formats))
    return draw(formats), plan, draw(st.none() | formats)


@COMPILED
@given(st.data())
def test_matmul_compiled_of_any_reduction_is_numpys(path, data):
    operand, plan, out = data.draw(plans())
    rows, columns = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 70))
    length = data.draw(st.integers(1, 40) | st.integers(250, 530))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kinds = st.sampled_from(KINDS)
    a = codes(data.draw(kinds), operand, (rows, length), rng)
    b = codes(data.draw(kinds), operand, (length, columns), rng)
    initial = codes(data.draw(kinds), plan.outer, (rows, 1), rng) if data.draw(st.booleans()) else None
    options = {"operand": operand, "reduction": plan, "initial": initial, "out": out}
    wanted = on_numpy(matmul, a, b, **options)
    with kernels.use(path, data.draw(st.sampled_from(THREADS))):
        assert_same_bits(matmul(a, b, **options), wanted)


@COMPILED
@pytest.mark.parametrize("fmt", ODD_ONES, ids=str)
def test_matmul_compiled_of_unusual_formats_is_the_references(path, fmt):
    rng = np.random.default_rng(90)
    for kind in KINDS:
        a, b = codes(kind, fmt, (4, 11), rng), codes(kind, fmt, (11, 5), rng)
        plans = [Reduction(FP32, None, FP32), Reduction(FP32, 3, fmt)]
        plans += [Reduction(fmt, 3, FP32), Reduction(fmt, None, fmt)] if fmt.has_one else []
        for plan in plans:
            wanted = once(reference.matmul, a.tolist(), b.tolist(), operand=fmt, reduction=plan)
            with kernels.use(path):
                assert_same_bits(matmul(a, b, operand=fmt, reduction=plan), np.array(wanted))


def strided_views(matrix):
    """Views of other memory that hold the same matrix."""
    rows, columns = matrix.shape
    sparse = np.zeros((2 * rows, 3 * columns), matrix.dtype)
    sparse[::2, ::3] = matrix
    yield np.asfortranarray(matrix)
    yield sparse[::2, ::3]
    yield np.ascontiguousarray(matrix[::-1])[::-1]
    yield np.ascontiguousarray(matrix[:, ::-1])[:, ::-1]
    yield matrix.astype(matrix.dtype.newbyteorder())
    unaligned = np.zeros(matrix.nbytes + 1, np.uint8)[1:].view(matrix.dtype).reshape(matrix.shape)
    unaligned[...] = matrix
    yield unaligned


@COMPILED
@LEVELS
def test_matmul_compiled_of_strided_operands_is_that_of_contiguous_ones(path, level):
    rng = np.random.default_rng(91)
    a, b = codes("special", FP16, (13, 21), rng), codes("special", FP16, (21, 70), rng)
    initial = codes("special", Reduction.for_level(level, FP16).outer, (13, 70), rng)
    wanted = on_numpy(matmul, a, b, operand=FP16, level=level, initial=initial)
    with kernels.use(path):
        for x, y, start in zip(*map(strided_views, (a, b, initial)), strict=True):
            assert_same_bits(matmul(x, y, operand=FP16, level=level, initial=start), wanted)
            assert_same_bits(matmul(x, b, operand=FP16, level=level, initial=start), wanted)
            assert_same_bits(matmul(a, y, operand=FP16, level=level, initial=initial), wanted)


@COMPILED
@LEVELS
@pytest.mark.parametrize(
    ("left", "right", "initial"),
    [
        ((2, 3, 4, 6), (2, 3, 6, 5), (2, 3, 4, 5)),
        ((2, 1, 4, 6), (3, 6, 5), (3, 1, 5)),
        ((4, 6), (7, 6, 5), (7, 1, 1)),
        ((2, 3, 4, 6), (6, 5), (5,)),
        ((2, 3, 4, 6), (6, 5), (2, 3, 4, 5)),
        ((2, 3, 1, 6), (6, 1), ()),
        ((1, 1, 4, 6), (1, 6, 5), (4, 1)),
        ((0, 4, 6), (6, 5), (5,)),
        ((2, 0, 6), (6, 5), ()),
        ((2, 4, 6), (6, 0), (1,)),
        ((3, 4, 0), (0, 5), (5,)),
    ],
)
def test_matmul_compiled_of_batches_broadcasts_as_numpy_does(path, level, left, right, initial):
    rng = np.random.default_rng(92)
    a, b = codes("normal", CBFLOAT16, left, rng), codes("normal", CBFLOAT16, right, rng)
    start = codes("normal", Reduction.for_level(level, CBFLOAT16).outer, initial, rng)
    for given_start in (None, start):
        options = {"operand": CBFLOAT16, "level": level, "chunk": 4, "initial": given_start}
        wanted = on_numpy(matmul, a, b, **options)
        with kernels.use(path, 2):
            assert_same_bits(matmul(a, b, **options), wanted)
            if a.ndim > 2:
                assert_same_bits(
                    matmul(a[..., ::-1, :], b, **options | {"initial": None}),
                    on_numpy(matmul, a[..., ::-1, :], b, **options | {"initial": None}),
                )


@COMPILED
@SIXTEEN
@LEVELS
@pytest.mark.parametrize("kind", KINDS)
def test_dot_compiled_is_the_references(path, fmt, level, kind):
    rng = np.random.default_rng(93 + level)
    a, b = codes(kind, fmt, (20, 11), rng), codes(kind, fmt, (20, 11), rng)
    initial = codes(kind, Reduction.for_level(level, fmt).outer, (20,), rng)
    rows = zip(a.tolist(), b.tolist(), initial.tolist(), strict=True)
    wanted = [once(reference.dot, x, y, operand=fmt, level=level, chunk=4, initial=start)[0] for x, y, start in rows]
    with kernels.use(path):
        got = dot(a, b, operand=fmt, level=level, chunk=4, initial=initial)
    assert_same_bits(got, np.array(wanted))


@COMPILED
@LEVELS
@pytest.mark.parametrize(
    "shapes", [((37,), (37,)), ((3, 1, 300), (70, 300)), ((2, 3, 5), (5,)), ((0, 4), (4,)), ((0,), (0,))]
)
def test_dot_compiled_of_any_shape_is_numpys(path, level, shapes):
    rng = np.random.default_rng(94)
    a, b = (codes("special", BF16, shape, rng) for shape in shapes)
    options = {"operand": BF16, "level": level, "out": CBFLOAT16}
    wanted = on_numpy(dot, a, b, **options)
    for threads in THREADS:
        with kernels.use(path, threads):
            got = dot(a, b, **options)
        assert_same_bits(got, wanted)
        assert np.ndim(got) == np.ndim(wanted)


@COMPILED
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_multiply_accumulate_compiled_is_the_references(path, fmt, kind):
    rng = np.random.default_rng(95)
    for accumulator in (fmt, FP32, CBFLOAT16):
        a, b = codes(kind, fmt, (70,), rng), codes(kind, fmt, (70,), rng)
        acc = codes(kind, accumulator, (70,), rng)
        formats = {"operand": fmt, "accumulator": accumulator}
        steps = zip(a.tolist(), b.tolist(), acc.tolist(), strict=True)
        wanted = once(steps_of_the_reference, list(steps), **formats)
        with kernels.use(path):
            assert_same_bits(multiply_accumulate(a, b, acc, **formats), np.array(wanted), a, b, acc)


@COMPILED
@pytest.mark.parametrize(
    "shapes", [((), (), ()), ((3, 1), (1, 5), ()), ((0, 2), (2,), (1,)), ((400, 1), (700,), (1, 1))]
)
def test_multiply_accumulate_compiled_broadcasts_as_numpy_does(path, shapes):
    rng = np.random.default_rng(96)
    a, b, acc = (codes("special", CBFLOAT16, shape, rng) for shape in shapes)
    formats = {"operand": CBFLOAT16, "accumulator": CBFLOAT16}
    wanted = on_numpy(multiply_accumulate, a, b, acc, **formats)
    for threads in THREADS:
        with kernels.use(path, threads):
            got = multiply_accumulate(a, b, acc, **formats)
        assert_same_bits(got, wanted)
        assert np.ndim(got) == np.ndim(wanted)
