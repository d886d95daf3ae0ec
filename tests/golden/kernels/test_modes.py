"""Products in every rounding mode on every compiled path: the bits of NumPy, and of the reference through it."""

import numpy as np
import pytest

from golden import (
    BF16,
    CBFLOAT16,
    FP16,
    FP32,
    Reduction,
    Rounding,
    dot,
    kernels,
    matmul,
    matmul_values,
    multiply_accumulate,
)
from golden.arrays.products import indexed_values
from golden.kernels import products
from golden.kernels.products import Indexed

from ..judges import assert_same_bits
from .build import Change
from .operands import COMPILED, KINDS, ODD_ONES, codes

MODES = pytest.mark.parametrize("mode", [mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN], ids=str)
WITH_ONE = [fmt for fmt in ODD_ONES if fmt.has_one]
SEEDS = {"seed": 2**40 + 3, "call": 9}


@pytest.fixture
def every_call_is_served(monkeypatch):
    """Fail where NumPy would serve a product that the library has."""
    served = products._multiply

    def checked(*given):
        done = served(*given)
        assert done or kernels.kernel_info()["path"] == "numpy"
        return done

    monkeypatch.setattr(products, "_multiply", checked)


def compared(path, function, *operands, threads=2, **options):
    with kernels.use("numpy"):
        wanted = function(*operands, **options)
    with kernels.use(path, threads):
        got = function(*operands, **options)
    if got.dtype == np.float32:
        got, wanted = got.view(np.uint32), wanted.view(np.uint32)
    assert_same_bits(got, wanted)


@COMPILED
@MODES
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, *WITH_ONE], ids=str)
@pytest.mark.usefixtures("every_call_is_served")
def test_matmul_compiled_in_a_mode_is_numpys(path, fmt, mode):
    rng = np.random.default_rng(160 + mode.value)
    for number, kind in enumerate(KINDS):
        level = number % 3
        a, b = codes(kind, fmt, (7, 45), rng), codes(kind, fmt, (45, 21), rng)
        plan = Reduction.for_level(level, fmt, chunk=8, inner=fmt)
        options = {"operand": fmt, "reduction": plan, "rounding": mode, "out": FP16, "out_rounding": mode, **SEEDS}
        compared(path, matmul, a, b, initial=codes(kind, plan.outer, (7, 21), rng), **options)


@COMPILED
@MODES
@pytest.mark.parametrize("chunk", [None, 300])
@pytest.mark.usefixtures("every_call_is_served")
def test_matmul_compiled_in_a_mode_of_several_blocks_is_numpys(path, mode, chunk):
    rng = np.random.default_rng(170)
    a, b = codes("special", CBFLOAT16, (3, 601), rng), codes("special", CBFLOAT16, (601, 5), rng)
    compared(path, matmul, a, b, operand=CBFLOAT16, level=2, chunk=chunk, rounding=mode, **SEEDS)


@COMPILED
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(150, 30, 140), (300, 30, 20), (20, 30, 300)])
@pytest.mark.usefixtures("every_call_is_served")
def test_stochastic_matmul_is_the_same_for_any_threads_and_tiles(path, threads, shape):
    rng = np.random.default_rng(180)
    a, b = codes("normal", BF16, (2, *shape[:2]), rng), codes("normal", BF16, shape[1:], rng)
    options = {"operand": BF16, "out": BF16, "rounding": "stochastic", "out_rounding": "stochastic", **SEEDS}
    compared(path, matmul, a, b, threads=threads, **options)


@COMPILED
@MODES
@pytest.mark.usefixtures("every_call_is_served")
def test_values_dots_steps_and_indexed_products_compiled_in_a_mode_are_numpys(path, mode):
    rng = np.random.default_rng(190)
    a, b = rng.normal(size=(2, 3, 40)).astype(np.float32), rng.normal(size=(2, 40, 5)).astype(np.float32)
    options = {"operand": CBFLOAT16, "rounding": mode, **SEEDS}
    compared(path, matmul_values, a, b, out=CBFLOAT16, out_rounding=mode, **options)
    x, y = codes("wide", CBFLOAT16, (4, 1, 37), rng), codes("special", CBFLOAT16, (6, 37), rng)
    compared(path, dot, x, y, random_bits=9, **options)
    if mode is not Rounding.STOCHASTIC:
        acc = codes("wide", FP32, (4, 1), rng)
        step = {"operand": CBFLOAT16, "accumulator": FP32, "rounding": mode}
        compared(path, multiply_accumulate, x[..., 0], y[:, 0], acc, **step)
    rows, columns = (rng.integers(0, 99, count) for count in (3, 30))
    left = Indexed(a.ravel(), np.arange(2), rows, columns)
    right = Indexed(b.ravel(), np.arange(2), columns, rng.integers(0, 99, 20))
    modes = {"operand": CBFLOAT16, "level": 1, "chunk": 8, "rounding": Rounding(mode), **SEEDS}
    compared(path, lambda: indexed_values(left, right, **modes))


@COMPILED
def test_more_random_bits_than_a_compiled_sum_has_are_numpys(path):
    rng = np.random.default_rng(200)
    a, b = codes("normal", CBFLOAT16, (3, 20), rng), codes("normal", CBFLOAT16, (20, 5), rng)
    for bits in (28, 29, 32):
        compared(path, matmul, a, b, operand=CBFLOAT16, rounding="stochastic", random_bits=bits, **SEEDS)
    fits = products.Formats.of(CBFLOAT16, Reduction(CBFLOAT16, 32, FP32), FP32)
    library = kernels.library._library()
    for bits, served in ((28, True), (29, False)):
        rounding = products.ReductionRounding(Rounding.STOCHASTIC, random_bits=bits)
        assert fits._replace(rounding=rounding).are_served(library, 1) == served
    assert not fits._replace(rounding=rounding).are_served(library, 2**32 + 1)


FAULTS = {
    "nearest away as toward zero": Change("vector_modes.h", "return (below(rule) + 1) / 2;", "return 0;"),
    "directed without its limit": Change(
        "vector_modes.h",
        "return Lanes::as_floats(limit.apply(rounded, negative));",
        "return Lanes::as_floats(rounded);",
    ),
    "to odd without the sticky bit": Change("vector_modes.h", "Lanes::add(Lanes::both(x, below), below)", "below"),
    "a round of Philox less": Change("philox.h", "PHILOX_ROUNDS = 10", "PHILOX_ROUNDS = 9"),
    "words of another column": Change("generic_modes.h", "index += place_.stride", "index += place_.stride + 1"),
    "words of another step": Change("product.cpp", "static_cast<uint32_t>(step);", "static_cast<uint32_t>(step + 1);"),
    "zeros of cancellation positive in mode down": Change(
        "generic_modes.h", "MODE == Mode::down && exact == 0", "false"
    ),
    "odd neighbour of an even one": Change("generic_modes.h", "(bits_of(lower + shifter) & 1) == 0", "true"),
    "steps in another environment": Change(
        "vector_modes.h", "mode == Mode::down ? Rounding::down", "mode == Mode::down ? Rounding::up"
    ),
    "final conversion to nearest": Change("product.cpp", "if (plan_.convert) {", "if (false) {"),
}
IN_PLAIN_LOOPS = {"zeros of cancellation positive in mode down", "odd neighbour of an even one"}
PATHS = (*kernels.paths(), None)


def results():
    rng = np.random.default_rng(210)
    a, b = codes("special", CBFLOAT16, (3, 40), rng), codes("edges", CBFLOAT16, (40, 5), rng)
    x, y = codes("small integers", CBFLOAT16, (3, 40), rng), codes("small integers", CBFLOAT16, (40, 5), rng)
    return [
        matmul(*operands, operand=CBFLOAT16, level=level, rounding=mode, out=FP16, out_rounding=mode, **SEEDS)
        for operands in ((a, b), (x, y), (a, y))
        for level in (0, 1, 2)
        for mode in Rounding
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_a_mode_is_seen(builder, load, fault):
    # The plain loops of the vector paths are compiled once more for the portable one.
    path = "portable" if fault in IN_PLAIN_LOOPS else next(path for path in ("avx512", "avx2", None) if path in PATHS)
    if path is None:
        pytest.skip("this machine runs no vector path")
    with kernels.use("numpy"):
        wanted = results()
    load(builder.build("mode-" + fault.replace(" ", "-"), FAULTS[fault]), [path])
    with kernels.use(path):
        assert any((got != want).any() for got, want in zip(results(), wanted, strict=True))
