"""The comparisons can fail: with a fault put into the source, results differ from NumPy's; without one they do not."""

import numpy as np
import pytest

from golden import CBFLOAT16, FP32, FloatFormat, Reduction, encode, kernels, matmul, matmul_values, quantize
from golden.formats import HALF_FORMATS

from .build import SOURCE, Change, extension
from .operands import KINDS, beyond_double, codes, grown_by_rounding, late_overflow
from .seen import RUN, changes_of, differences, in_paths

ROUND = "Lanes::or_and(x, Lanes::shift_right(x, shift_), one_)"
LIMIT = "return Lanes::infinite_from(Lanes::as_floats(place.round(x)), limit);"

FAULTS = in_paths(
    avx512={
        "ties go down": Change("steps.h", ROUND, "x"),
        "truncated": Change("steps.h", "Lanes::add(sticky, half_less_one_)", "sticky"),
        "not rounded to odd, AVX-512": Change(
            "lanes512.h", "return _mm512_mask_mov_epi32(as_words(up), odd, as_words(down));", "return as_words(up);"
        ),
        "rounded twice, AVX-512": Change(
            "lanes512.h",
            "return odd_of(_mm512_fmadd_round_ps(a, b, c, DOWN), _mm512_fmadd_round_ps(a, b, c, UP));",
            "return as_words(_mm512_fmadd_ps(a, b, c));",
        ),
        "negative zero where a sum is exactly zero": Change(
            "lanes512.h",
            "_mm512_mask_mov_epi32(as_words(up), odd, as_words(down))",
            "_mm512_mask_mov_epi32(as_words(down), _mm512_knot(odd) & _mm512_cmpneq_epu32_mask(as_words(up), "
            "as_words(down)) & _mm512_test_epi32_mask(as_words(up), words(1)), as_words(up))",
        ),
        "no infinity": Change("steps.h", LIMIT, "return Lanes::as_floats(place.round(x));"),
        "overflow not expected": Change(
            "plan.h",
            "!(bound < std::ldexp(2 - std::ldexp(1.0, -inner.fraction_bits), inner.emax()))",
            "bound < 0",
            before="return ",
        ),
        "bound that forgets how rounding lets sums grow": Change(
            "plan.cpp", "return start + 2 * count * product;", "return start + count * product;"
        ),
        "bound of the last block only": Change(
            "product.cpp",
            "if (k0 % chunk_ == 0) bound_ = plan_.is_chain && call_.initial.data ? INFINITY : 0;",
            "bound_ = 0;",
        ),
        "chunk that does not start from zero": Change(
            "product.cpp", "k % chunk_ == 0", "k == 0", before="if (", after=") std::memset(partial,"
        ),
        "promotion missing at the end": Change(
            "product.cpp", "end % chunk_ == 0 || end == call_.k", "end % chunk_ == 0"
        ),
        "NaN with its payload": Change(
            "vectors.h",
            "Lanes::store(into, Lanes::as_floats(Lanes::where_nan(x, Lanes::words(FLOAT_NAN), value)));",
            "Lanes::store(into, Lanes::as_floats(value));",
        ),
        "codes beyond infinity": Change("vectors.h", "Lanes::smaller(magnitude, inf)", "magnitude"),
        "rows of the last panel": Change(
            "product.cpp", "tiles_.rows", "1", before="return std::min<int64_t>(", after=", rows()"
        ),
    },
    avx2={
        "not rounded to odd, AVX2": Change(
            "lanes256.h", "_mm256_blendv_ps(as_floats(up), down, as_floats(odd))", "as_floats(up)"
        ),
        "AVX2 in an environment that rounds to nearest": Change(
            "vectors.h", "tiles<ScaledStep, TO_ODD>()", "tiles<ScaledStep, Rounding::nearest>()"
        ),
        "promotion that rounds down": Change("product.cpp", "environment_.change(plan_.joining->rounding);", ""),
    },
    portable={
        "not rounded to odd, portable": Change("generic_steps.h", "finite && error != 0 && (bits & 1) == 0", "false"),
        "subnormals lost, portable": Change(
            "generic_steps.h", "field = field < lowest_ ? lowest_ : field;", "field = field < 1 ? lowest_ : field;"
        ),
    },
)

# A narrow format overflows and rounds to its subnormals often.
NARROW = FloatFormat("e4m3", 4, 3)


def results():
    """Products and roundings that meet every part of the kernels; NaNs shown by their bits."""
    rng = np.random.default_rng(130)
    for fmt in (*HALF_FORMATS, NARROW):
        for kind in KINDS:
            a, b = codes(kind, fmt, (5, 301), rng), codes(kind, fmt, (301, 20), rng)
            for level in (0, 1, 2):
                yield matmul(a, b, operand=fmt, reduction=Reduction.for_level(level, fmt, inner=fmt))
            yield matmul(a[:, :13], b[:13], operand=fmt, reduction=Reduction(fmt, None, fmt))
        yield matmul(*late_overflow(fmt), operand=fmt, reduction=Reduction(fmt, None, fmt))
        yield matmul(*grown_by_rounding(fmt), operand=fmt, reduction=Reduction(fmt, None, fmt))
        yield matmul(*beyond_double(fmt), operand=fmt, reduction=Reduction(fmt, 32, fmt))
        patterns = rng.integers(0, 2**32, 3001, dtype=np.uint32).view(np.float32)
        yield encode(patterns, fmt)
        yield quantize(patterns, fmt).view(np.uint32)
    values = rng.integers(0, 2**32, (30, 30), dtype=np.uint32).view(np.float32)
    yield quantize(values, FP32).view(np.uint32)
    plan = Reduction(FP32, 3, CBFLOAT16)
    yield matmul_values(values, values, operand=CBFLOAT16, reduction=plan).view(np.uint32)


# Steps with a limit lose their product: whoever needs them is wrong.
WITHOUT_LIMITED_STEPS = Change("steps.h", LIMIT, "(void)x; return acc;")
CHUNKS_END_NO_BLOCK = Change("product.cpp", "if (chunk_ > BLOCK) k1 = std::min(k1, (k0 / chunk_ + 1) * chunk_);", "")
LIMITED_STEPS = {
    True: "without limited steps",
    False: "without limited steps, in blocks that chunks do not end",
}


@pytest.fixture(scope="module")
def unchanged(builder):
    return builder.unchanged()


@pytest.fixture(scope="module")
def library(switched):
    limited = {
        LIMITED_STEPS[True]: [WITHOUT_LIMITED_STEPS],
        LIMITED_STEPS[False]: [WITHOUT_LIMITED_STEPS, CHUNKS_END_NO_BLOCK],
    }
    return switched("products", changes_of(FAULTS) | limited, RUN)


@pytest.mark.long
@pytest.mark.parametrize("path", RUN)
def test_unchanged_source_built_without_optimisation_agrees(unchanged, load, wanted, path):
    load(unchanged, [path])
    with kernels.use(path):
        assert differences(results, wanted) == 0


@pytest.mark.long
@pytest.mark.parametrize("path", RUN)
def test_source_with_every_fault_switched_off_agrees(sees, path):
    assert not sees(None, path)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_source_is_seen(sees, fault):
    assert sees(fault, FAULTS[fault][0])


@pytest.mark.parametrize("ends_its_block", [True, False])
def test_matmul_chunks_of_300_each_end_a_block_so_that_their_bounds_start_anew(library, load, tmp_path, ends_its_block):
    # 300 products of 2^22, counted twice, are below 2^32, where cbfloat16 ends, and 600 are above. (The bits are right
    # either way: steps without the limit are quicker, and nothing else.)
    values = np.full((1, 1200), 2.0**11.0)
    values[0, ::3] *= -1
    a, b = encode(values, CBFLOAT16), encode(np.full((1200, 20), 2.0**11.0), CBFLOAT16)
    path = next((path for path in RUN if path != "portable"), None)
    if path is None:
        pytest.skip("the portable path has no bounds")
    with kernels.use("numpy"):
        wanted = matmul(a, b, operand=CBFLOAT16, chunk=300)
    load(library.loaded(LIMITED_STEPS[ends_its_block], tmp_path), [path])
    with kernels.use(path):
        assert (matmul(a, b, operand=CBFLOAT16, chunk=300) == wanted).all() == ends_its_block


def test_project_file_lists_the_source_as_it_is():
    listed = {*extension()["sources"], *extension()["depends"]}
    assert listed == {f"golden/kernels/source/{path.name}" for path in SOURCE.iterdir()}
