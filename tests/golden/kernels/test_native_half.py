"""The path with native float16 steps: on a processor that has them, elsewhere with a stand-in for the instruction."""

from pathlib import Path

import numpy as np
import pytest

from golden import (
    BF16,
    CBFLOAT16,
    FP16,
    FP32,
    FloatFormat,
    Reduction,
    dot,
    encode,
    kernels,
    matmul,
    matmul_values,
    reference,
)
from golden.counts import Events
from lab.mutants.table import Edit, seen_by

from ..judges import assert_same_bits
from .build import Replacement
from .operands import BESIDE_FLOAT16, KINDS, beyond_double, codes, late_overflow
from .test_counting import numbers

PATH = "avx512fp16"
STAND_IN = (
    Replacement("halves512.h", Path(__file__).with_name("halves512.h")),
    Edit("paths.cpp", '__builtin_cpu_supports("avx512fp16")', "true"),
)


@pytest.fixture(scope="module")
def library(builder):
    return builder.build("stand-in", *STAND_IN)


IN_SILICON = PATH in kernels.paths()
WAYS = [
    *([PATH] if IN_SILICON else []),
    *(
        [pytest.param("stand-in", marks=[pytest.mark.long] if IN_SILICON else [])]
        if "avx512" in kernels.paths()
        else []
    ),
]


@pytest.fixture(params=WAYS)
def native(request, load):
    """Run the test on the path: the processor's own, or the stand-in."""
    if request.param == "stand-in":
        load(request.getfixturevalue("library"), [PATH])
    return PATH


def on_numpy(function, *arguments, **options):
    with kernels.use("numpy"):
        return function(*arguments, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [1, 2])
def test_matmul_in_native_float16_is_the_references_and_numpys(native, kind, level):
    rng = np.random.default_rng(140)
    a, b = codes(kind, FP16, (7, 301), rng), codes(kind, FP16, (301, 150), rng)
    initial = codes(kind, Reduction.for_level(level, FP16).outer, (150,), rng)
    for chunk in (None, 1, 12, 32, 256, 300):
        options = {"operand": FP16, "level": level, "chunk": chunk, "initial": initial}
        wanted = on_numpy(matmul, a, b, **options)
        for threads in (1, 2):
            with kernels.use(native, threads):
                assert_same_bits(matmul(a, b, **options), wanted)
    short, column = a[:, :9], b[:9, :3]
    wanted = reference.matmul(short.tolist(), column.tolist(), operand=FP16, level=level, chunk=4)
    with kernels.use(native):
        assert_same_bits(matmul(short, column, operand=FP16, level=level, chunk=4), np.array(wanted))


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 6, 7, 13])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 64, 96, 127, 128, 129, 260])
def test_matmul_in_native_float16_of_ragged_shapes_is_numpys(native, rows, columns):
    rng = np.random.default_rng(141)
    a, b = codes("special", FP16, (rows, 35), rng), codes("special", FP16, (35, columns), rng)
    wanted = on_numpy(matmul, a, b, operand=FP16)
    with kernels.use(native):
        assert_same_bits(matmul(a, b, operand=FP16), wanted)


@pytest.mark.parametrize("outer", [FP32, FP16, BF16, CBFLOAT16], ids=str)
def test_native_float16_joins_into_any_outer_format(native, outer):
    rng = np.random.default_rng(142)
    a, b = codes("wide", FP16, (9, 50), rng), codes("wide", FP16, (50, 40), rng)
    plan = Reduction(FP16, 8, outer)
    wanted = on_numpy(matmul, a, b, operand=FP16, reduction=plan, out=CBFLOAT16)
    values = rng.normal(size=(2, 40, 40)).astype(np.float32)
    rounded = on_numpy(matmul_values, *values, operand=FP16, reduction=plan)
    rows = codes("special", FP16, (70, 50), rng)
    sums = on_numpy(dot, rows, rows[::-1], operand=FP16, reduction=plan)
    with kernels.use(native):
        assert_same_bits(matmul(a, b, operand=FP16, reduction=plan, out=CBFLOAT16), wanted)
        got = matmul_values(*values, operand=FP16, reduction=plan)
        assert_same_bits(got.view(np.uint32), rounded.view(np.uint32))
        assert_same_bits(dot(rows, rows[::-1], operand=FP16, reduction=plan), sums)


def test_native_float16_overflows_as_the_reference_does(native):
    a, b = late_overflow(FP16)
    with kernels.use(native):
        assert int(matmul(a, b, operand=FP16, level=2, chunk=None)[0, 0]) == FP16.inf


@pytest.mark.parametrize("fmt", [BF16, CBFLOAT16, FP32], ids=str)
def test_other_formats_run_beside_native_float16(native, fmt):
    rng = np.random.default_rng(143)
    a, b = codes("special", fmt, (9, 50), rng), codes("special", fmt, (50, 40), rng)
    for level in (0, 1, 2):
        wanted = on_numpy(matmul, a, b, operand=fmt, level=level)
        with kernels.use(native):
            assert_same_bits(matmul(a, b, operand=fmt, level=level), wanted)


@pytest.mark.parametrize(
    ("operand", "inner"),
    [
        (FloatFormat("e4m10", 4, 10, 15), FloatFormat("e6m10", 6, 10, 15)),
        (FloatFormat("e5m9", 5, 9), FloatFormat("e5m8", 5, 8)),
        (FloatFormat("e5m10_low", 5, 10, 14), FloatFormat("e5m10_lower", 5, 10, 13)),
        *((fmt, fmt) for fmt in BESIDE_FLOAT16),
    ],
    ids=str,
)
def test_formats_that_differ_from_float16_in_one_number_are_not_taken_for_it(native, operand, inner):
    rng = np.random.default_rng(145)
    a, b = codes("wide", operand, (9, 50), rng), codes("wide", operand, (50, 40), rng)
    plan = Reduction(inner, 8, FP32)
    wanted = on_numpy(matmul, a, b, operand=operand, reduction=plan)
    with kernels.use(native):
        assert_same_bits(matmul(a, b, operand=operand, reduction=plan), wanted)


COUNTED = Reduction.for_level(1, FP16), Reduction(FP16, 7, FP16), Reduction(FP16, None, BF16), Reduction(FP16, 70, FP32)


def counted(seed=146):
    """Results and counts of products of every kind, in every form, and of dot products: pairs of both."""
    rng = np.random.default_rng(seed)
    given = [(codes(kind, FP16, (7, 75), rng), codes(kind, FP16, (75, 150), rng)) for kind in KINDS]
    # Sums near the smallest normal value, small ones, and some whose largest partial sum, in the second vector, is not
    # a total.
    half = np.uint32(encode(2.0**-7, FP16))
    near = [(half + np.arange(-48, 49).reshape(shape)).astype(np.uint16) for shape in ((97, 1), (1, 97))]
    small = [encode(rng.normal(size=(33, 33)) * 2.0**-9, FP16) for _ in "ab"]
    cancelled = [np.tile(encode(np.array([1.0, -1.0]), FP16), (3, 1)), np.full((2, 64), FP16.one, np.uint16)]
    cancelled[1][:, 40] = encode(16.0, FP16)
    # Between 2^-14 - 2^-25 and 2^-14 - 2^-26: tiny, though rounded to 2^-14.
    tiny = [np.full((1, 1), int(half) + steps, np.uint16) for steps in (20, -40)]
    long = [codes("normal", FP16, shape, rng) for shape in ((7, 300), (300, 40))]
    given += [late_overflow(FP16), beyond_double(FP16), near, small, cancelled, tiny, long]
    found = []
    for plan in COUNTED:
        options = {"operand": FP16, "reduction": plan}
        for a, b in given:
            found += [matmul(a, b, counts=form, **options) for form in (True, "rows", "sum")]
            found.append(matmul(a, b, counts="rows", counted_rows=range(0, len(a), 3), **options))
        rows = codes("special", FP16, (70, 50), rng)
        found.append(dot(rows, rows[::-1], counts=True, **options))
    return found


@pytest.fixture(scope="module")
def wanted_counts():
    found = on_numpy(counted)
    total = sum((counts.sum().products for _, counts in found), start=Events(0, 0, 0, 0, 0, 0))
    assert all(vars(total).values())
    return found


def wrong_counts(wanted):
    """How many numbers differ from those wanted."""
    wrong = 0
    for (result, counts), (want, numbers_wanted) in zip(counted(), wanted, strict=True):
        pairs = zip([result, *numbers(counts)], [want, *numbers(numbers_wanted)], strict=True)
        wrong += sum(int(np.count_nonzero(got != number)) for got, number in pairs)
    return wrong


@pytest.mark.parametrize("threads", [1, 2])
def test_native_float16_counts_what_numpy_counts(native, wanted_counts, threads):
    with kernels.use(native, threads):
        assert wrong_counts(wanted_counts) == 0


FAULTS = seen_by(__file__)


@pytest.fixture(scope="module")
def faulty(switched):
    if "avx512" not in kernels.paths():
        pytest.skip("this processor has no AVX-512")
    return switched("halves", {name: [fault] for name, fault in FAULTS.items() if not fault.alone}, [PATH], STAND_IN)


@pytest.mark.long
def test_native_float16_with_every_fault_switched_off_counts_what_numpy_counts(faulty, load, tmp_path, wanted_counts):
    load(faulty.loaded(None, tmp_path), [PATH])
    with kernels.use(PATH):
        assert wrong_counts(wanted_counts) == 0


@pytest.mark.long
@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if fault.by == "counts" and not fault.alone])
def test_miscount_of_native_float16_is_seen(faulty, load, tmp_path, wanted_counts, fault):
    load(faulty.loaded(fault, tmp_path), [PATH])
    with kernels.use(PATH):
        assert wrong_counts(wanted_counts) > 0


@pytest.mark.long
@pytest.mark.parametrize("fault", [fault for fault in FAULTS.values() if fault.alone], ids=lambda fault: fault.name)
def test_miscount_of_native_float16_that_the_compiler_must_know_is_seen(builder, load, wanted_counts, fault):
    if "avx512" not in kernels.paths():
        pytest.skip("this processor has no AVX-512")
    load(builder.build("halves", *STAND_IN, fault, path=PATH), [PATH])
    with kernels.use(PATH):
        assert wrong_counts(wanted_counts) > 0


@pytest.mark.long
@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if fault.by == "products"])
def test_fault_in_the_native_float16_path_is_seen(faulty, load, tmp_path, fault):
    rng = np.random.default_rng(144)
    a, b = codes("normal", FP16, (9, 50), rng), codes("normal", FP16, (50, 40), rng)
    wanted = on_numpy(matmul, a, b, operand=FP16)
    load(faulty.loaded(fault, tmp_path), [PATH])
    with kernels.use(PATH):
        assert (matmul(a, b, operand=FP16) != wanted).any()
