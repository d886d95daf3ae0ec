"""The path with native float16 steps: on a processor that has them, and with the instruction stood in for elsewhere."""

from pathlib import Path

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, dot, kernels, matmul, matmul_values, reference

from ..judges import assert_same_bits
from .build import Change, Replacement
from .operands import KINDS, codes, late_overflow

PATH = "avx512fp16"
STAND_IN = (
    Replacement("halves512.h", Path(__file__).with_name("halves512.h")),
    Change("paths.cpp", '__builtin_cpu_supports("avx512fp16")', "true"),
)


@pytest.fixture(scope="module")
def library(builder):
    return builder.build("stand-in", *STAND_IN)


WAYS = [PATH] * (PATH in kernels.paths()) + ["stand-in"] * ("avx512" in kernels.paths())


@pytest.fixture(params=WAYS)
def native(request, load):
    """Run the test on the path: the processor's own, or the one stood in for."""
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


def test_fault_in_the_native_float16_path_is_seen(builder, load):
    if "avx512" not in kernels.paths():
        pytest.skip("this processor has no AVX-512")
    rng = np.random.default_rng(144)
    a, b = codes("normal", FP16, (9, 50), rng), codes("normal", FP16, (50, 40), rng)
    wanted = on_numpy(matmul, a, b, operand=FP16)
    swapped = Change("avx512fp16.cpp", "return multiply_add(a, b, acc);", "return multiply_add(acc, b, a);")
    load(builder.build("fault", *STAND_IN, swapped), [PATH])
    with kernels.use(PATH):
        assert (matmul(a, b, operand=FP16) != wanted).any()
