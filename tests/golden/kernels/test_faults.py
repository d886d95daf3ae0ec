"""The comparisons can fail: with a fault put into the source, results differ from NumPy's; without one they do not."""

import numpy as np
import pytest

from golden import CBFLOAT16, FP32, FloatFormat, Reduction, encode, kernels, matmul, matmul_values, quantize
from golden.formats import HALF_FORMATS
from lab.mutants.table import Edit, seen_by

from .build import SOURCE, extension
from .operands import KINDS, beyond_double, codes, grown_by_rounding, late_overflow
from .switches import RUN, differences, with_switches

FAULTS = seen_by(__file__)

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
WITHOUT_LIMITED_STEPS = Edit(
    "steps.h", "return Lanes::infinite_from(Lanes::as_floats(place.round(x)), limit);", "(void)x; return acc;"
)
CHUNKS_END_NO_BLOCK = Edit("product.cpp", "if (chunk_ > BLOCK) k1 = std::min(k1, (k0 / chunk_ + 1) * chunk_);", "")
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
    faults = {name: [fault] for name, fault in FAULTS.items() if fault.by in RUN}
    return switched("products", faults | limited, RUN)


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
    assert sees(fault, FAULTS[fault].by)


@pytest.mark.long
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


# -- many faults in one build


def test_expression_behind_a_switch_is_chosen_by_its_number():
    change = Edit("file", "x = «a + b»;", "a")
    assert with_switches("y = a + b; x = a + b;", [(3, change)]) == (
        "y = a + b; x = (chosen_fault == 3 ? (a) : (a + b));"
    )


def test_statement_behind_a_switch_is_chosen_by_its_number():
    assert with_switches("if (c) x++; else y++;", [(4, Edit("file", "x++;", ""))]) == (
        "if (c) { if (chosen_fault == 4) {  } else { x++; } } else y++;"
    )


def test_faults_in_one_place_are_chosen_by_their_numbers():
    changes = [(1, Edit("file", "a", "b")), (2, Edit("file", "a", "c"))]
    assert with_switches("f(a)", changes) == ("f((chosen_fault == 2 ? (c) : ((chosen_fault == 1 ? (b) : (a)))))")


def test_fault_within_the_place_of_another_is_chosen_where_the_other_is_not():
    changes = [(1, Edit("file", "b", "d")), (2, Edit("file", "return a(b);", "return c;"))]
    assert with_switches("{return a(b);}", changes) == (
        "{{ if (chosen_fault == 2) { return c; } else { return a((chosen_fault == 1 ? (d) : (b))); } }}"
    )


def test_faults_that_overlap_in_part_are_refused():
    with pytest.raises(AssertionError, match="two faults overlap: b \\+ c"):
        with_switches("a + b + c", [(1, Edit("file", "a + b", "a")), (2, Edit("file", "b + c", "c"))])


def test_text_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match=r"^file: got 2 matches of 'a', must be exactly 1$"):
        with_switches("a + a", [(1, Edit("file", "a", "b"))])
