"""Depthwise convolutions at level 0, and sums of overlaps, on every compiled path: NumPy's bits."""

import math
from dataclasses import replace

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, Reduction, kernels
from golden.formats import FLOAT8_E5M2
from golden.rounding import Rounding
from golden.torch.products import windows
from golden.torch.products.windows import Geometry

COMPILED = pytest.mark.parametrize("path", [path for path in kernels.paths() if path != "numpy"])
#: Sizes of the input and of the kernels, then strides, dilations and sides.
GEOMETRIES = [
    ((9, 11), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((4, 4), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    ((12, 7), (3, 2), (2, 2), (1, 1), (1, 1, 0, 0)),
    ((13, 21), (2, 3), (3, 2), (2, 3), (2, 1, 0, 4)),
    ((10, 9), (3, 3), (1, 2), (1, 1), (-1, -2, 2, -1)),
    ((5, 40), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((33,), (4,), (5,), (2,), (3, 3)),
    ((150,), (3,), (1,), (1,), (1, 1)),
    ((4, 6, 7), (2, 3, 2), (2, 1, 3), (1, 2, 1), (1, 0, 2, 2, 0, 1)),
]
RANGES = {"normal": (-2, 2), "tiny": (-75, -60), "huge": (55, 64), "all": (-75, 64)}


def drawn(rng, shape, kind):
    """Values of a range of exponents, zeros of both signs, and some that are not finite."""
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(*RANGES[kind], shape)
    for special, share in ((0.0, 20), (-0.0, 20), (math.inf, 200), (-math.inf, 200), (math.nan, 200)):
        values[rng.integers(0, share, shape) == 0] = special
    return values.astype(np.float32)


def same_bits(one, other):
    np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))


@pytest.fixture
def served(monkeypatch):
    """The library's answer to each call: whether it served."""
    said = {"slide": [], "overlap": [], "correlate": []}
    for name, answers in said.items():
        original = getattr(windows, name)

        def run(*given, original=original, answers=answers):
            answers.append(original(*given))
            return answers[-1]

        monkeypatch.setattr(windows, name, run)
    return said


@COMPILED
@pytest.mark.parametrize("kind", RANGES)
@pytest.mark.parametrize(("half", "operand"), [(BF16, BF16), (CBFLOAT16, CBFLOAT16), (FP16, FP16), (BF16, FLOAT8_E5M2)])
def test_depthwise_convolution_at_level_0_and_its_gradients_are_those_of_numpy(path, kind, half, operand, served):
    rng = np.random.default_rng(700)
    summing = Reduction(operand=operand, out=half)
    for number, (size, kernel, steps, gaps, sides) in enumerate(GEOMETRIES):
        channels = 5 if number % 3 else 37  # a part of a vector, or more than two
        geometry = Geometry(steps, gaps, sides, channels)
        x, weights = drawn(rng, (3, channels, *size), kind), drawn(rng, (channels, 1, *kernel), kind)
        g = drawn(rng, (3, channels, *geometry.positions(size, kernel)), kind)
        bias = drawn(rng, (channels,), kind) if number % 2 else None
        with kernels.use("numpy"):
            wanted = windows.convolution(x, weights, bias, geometry, summing)
            back = windows.transposed(g, weights, bias, size, geometry, summing)
            of_kernels = windows.kernel_product(g, x, kernel, geometry, summing)
        for threads in (1, 3):
            with kernels.use(path, threads=threads):
                # Views of other strides, too.
                same_bits(windows.convolution(x[::-1][::-1], weights, bias, geometry, summing), wanted)
                same_bits(windows.transposed(np.asfortranarray(g), weights, bias, size, geometry, summing), back)
                same_bits(windows.kernel_product(g[::-1][::-1], x, kernel, geometry, summing), of_kernels)
    assert all(answers.count(True) == 2 * len(GEOMETRIES) for answers in served.values())


@COMPILED
@pytest.mark.parametrize("level", [0, 1, 2])
def test_overlaps_of_dense_kernels_are_those_of_numpy(path, level, served, monkeypatch):
    rng = np.random.default_rng(701)
    monkeypatch.setattr(windows, "MOST_VALUES", 3000)  # several parts of a batch
    summing = replace(Reduction.for_level(level, CBFLOAT16, chunk=3), operand=CBFLOAT16, out=CBFLOAT16)
    for number, (size, kernel, steps, gaps, sides) in enumerate(GEOMETRIES):
        geometry = Geometry(steps, gaps, sides, 2)
        weights = drawn(rng, (6, 2, *kernel), "normal")
        g = drawn(rng, (3, 6, *geometry.positions(size, kernel)), "normal")
        bias = drawn(rng, (4,), "normal") if number % 2 else None
        with kernels.use("numpy"):
            wanted = windows.transposed(g, weights, bias, size, geometry, summing)
        with kernels.use(path, threads=2):
            same_bits(windows.transposed(g, weights, bias, size, geometry, summing), wanted)
    assert True in served["overlap"]


@COMPILED
def test_large_planes_on_many_threads_are_those_of_numpy(path):
    rng = np.random.default_rng(702)
    geometry, summing = Geometry((2, 1), (1, 2), (1, 1, 2, 2), 7), Reduction(operand=BF16, out=BF16)
    x, weights = drawn(rng, (2, 7, 90, 130), "normal"), drawn(rng, (7, 1, 3, 3), "normal")
    with kernels.use("numpy"):
        wanted = windows.convolution(x, weights, None, geometry, summing)
        back = windows.transposed(wanted, weights, None, x.shape[2:], geometry, summing)
        of_kernels = windows.kernel_product(wanted, x, (3, 3), geometry, summing)
    with kernels.use(path, threads=4):
        same_bits(windows.convolution(x, weights, None, geometry, summing), wanted)
        same_bits(windows.transposed(wanted, weights, None, x.shape[2:], geometry, summing), back)
        same_bits(windows.kernel_product(wanted, x, (3, 3), geometry, summing), of_kernels)


@COMPILED
@pytest.mark.parametrize(("level", "mode"), [(1, Rounding.NEAREST_EVEN), (0, Rounding.DOWN)])
def test_depthwise_convolution_of_another_plan_has_the_steps_of_that(path, level, mode, served):
    rng = np.random.default_rng(703)
    summing = replace(Reduction.for_level(level, BF16), operand=BF16, out=BF16, rounding=mode, out_rounding=mode)
    geometry = Geometry((1, 1), (1, 1), (1,) * 4, 3)
    x, weights = drawn(rng, (1, 3, 9, 9), "normal"), drawn(rng, (3, 1, 3, 3), "normal")
    with kernels.use("numpy"):
        wanted = windows.convolution(x, weights, None, geometry, summing)
        back = windows.transposed(x, weights, None, (9, 9), geometry, summing)
        of_kernels = windows.kernel_product(x, x, (3, 3), geometry, summing)
    with kernels.use(path):
        same_bits(windows.convolution(x, weights, None, geometry, summing), wanted)
        same_bits(windows.transposed(x, weights, None, (9, 9), geometry, summing), back)
        same_bits(windows.kernel_product(x, x, (3, 3), geometry, summing), of_kernels)
    assert served["slide"] == served["correlate"] == []


@COMPILED
def test_sums_that_no_last_rounding_hides_are_in_the_order_of_numpy(path):
    rng = np.random.default_rng(704)
    geometry, summing = Geometry((1, 2), (1, 1), (1,) * 4, 19), Reduction(operand=BF16, out=FP32)
    x, weights = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 19, 12, 11), (19, 1, 3, 3)))
    results = []
    for each in ("numpy", path):
        with kernels.use(each):
            there = windows.convolution(x, weights, None, geometry, summing)
            back = windows.transposed(there, weights, None, (12, 11), geometry, summing)
            results.append((there, back, windows.kernel_product(there, x, (3, 3), geometry, summing)))
    for got, wanted in zip(*results, strict=True):
        same_bits(got, wanted)
