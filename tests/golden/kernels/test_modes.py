"""Products in every rounding mode on every compiled path: the bits of NumPy, and of the reference through it."""

from itertools import product

import numpy as np
import pytest

from golden import (
    BF16,
    CBFLOAT16,
    FP16,
    FP32,
    Randomness,
    Reduction,
    Rounding,
    dot,
    kernels,
    matmul,
    matmul_values,
    multiply_accumulate,
)
from golden.arrays.value_products import indexed_values
from golden.kernels import products
from golden.kernels.products import Indexed
from lab.mutants.table import seen_by

from ..answers import on_numpy
from ..judges import assert_same_bits
from .operands import COMPILED, FAR_BELOW_FLOAT, KINDS, ODD_ONES, between_limits, codes, grown_by_ulps
from .switches import is_seen

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
    wanted = on_numpy(function, *operands, **options)
    with kernels.use(path, threads):
        got = function(*operands, **options)
    if got.dtype == np.float32:
        got, wanted = got.view(np.uint32), wanted.view(np.uint32)
    assert_same_bits(got, wanted)


@pytest.mark.turns
@COMPILED
@MODES
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, *WITH_ONE], ids=str)
@pytest.mark.usefixtures("every_call_is_served")
def test_matmul_compiled_in_a_mode_is_numpys(path, fmt, mode):
    rng = np.random.default_rng(160 + mode.value)
    for level, kind in product((0, 1, 2), KINDS):
        a, b = codes(kind, fmt, (7, 45), rng), codes(kind, fmt, (45, 21), rng)
        plan = Reduction.for_level(level, fmt, chunk=8, inner=fmt)
        options = {"operand": fmt, "reduction": plan, "rounding": mode, "out": FP16, "out_rounding": mode, **SEEDS}
        compared(path, matmul, a, b, initial=codes(kind, plan.outer, (7, 21), rng), **options)


@COMPILED
@MODES
@pytest.mark.usefixtures("every_call_is_served")
def test_matmul_of_bfloat16_in_a_mode_beyond_its_largest_value_is_numpys(path, mode):
    a, b = between_limits(np.random.default_rng(165))
    for level in (0, 1, 2):
        compared(path, matmul, a, b, operand=BF16, level=level, out=BF16, rounding=mode, out_rounding=mode, **SEEDS)


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
    compared(path, indexed_values, left, right, **modes)


def tie_in_float(initial, first, second, mode="nearest_away"):
    """Return the code of initial + first * second in float32, the factors in bfloat16."""
    codes = (np.array([[code]], np.uint16) for code in (first, second))
    start = np.array([[initial]], np.uint32)
    return int(matmul(*codes, operand=BF16, level=0, initial=start, rounding=mode, **SEEDS)[0, 0])


# initial, factors, nearest away
TIES = {
    "in the middle": (0x4B800000, 0x3F80, 0x3F80, 0x4B800001),
    "in the middle, negative": (0xCB800000, 0xBF80, 0x3F80, 0xCB800001),
    "of the smallest value and 0": (0, 0x0D80, 0x2680, 0x00000001),
    "above the largest value": (0x7F7FFFFF, 0x7300, 0x3F80, 0x7F800000),
    "below a power of two": (0x4B800000, 0xBF00, 0x3F80, 0x4B800000),
}


@pytest.mark.parametrize("path", kernels.paths())
@pytest.mark.parametrize("tie", TIES)
def test_matmul_tie_in_float32_goes_away_from_zero(path, tie):
    *given, wanted = TIES[tie]
    with kernels.use(path):
        assert hex(tie_in_float(*given)) == hex(wanted)


@COMPILED
@pytest.mark.parametrize("mode", ["up", "nearest_even"])
def test_matmul_of_tiny_products_rounded_up_grows_into_infinity(path, mode):
    a, b = grown_by_ulps()
    options = {"operand": CBFLOAT16, "reduction": Reduction(CBFLOAT16, None, FP32), "rounding": mode}
    compared(path, matmul, a, b, **options)
    with kernels.use(path):
        infinite = matmul(a, b, **options)[0, 0] == 0x7F800000
    assert infinite == (mode == "up")


# Factors in bfloat16, the mode, the sum as a float32 value: 2^127, 1.5 * 2^128 and 2^220 are each beyond the largest.
@COMPILED
@pytest.mark.parametrize(("x", "y"), [(0x5F80, 0x5F00), (0x5FC0, 0x5F80), (0x7180, 0x7B80)])
@pytest.mark.parametrize(
    ("mode", "wanted", "negative"),
    [
        ("toward_zero", 0x3FFFC000, 0xBFFFC000),
        ("down", 0x3FFFC000, 0xFF800000),
        ("up", 0x7F800000, 0xBFFFC000),
        ("to_odd", 0x3FFFC000, 0xBFFFC000),
        ("nearest_away", 0x7F800000, 0xFF800000),
    ],
)
def test_sum_beyond_its_format_at_the_end_of_float32_is_what_the_mode_makes_of_it(path, mode, x, y, wanted, negative):
    a, b = np.array([[x], [x | 0x8000]], np.uint16), np.full((1, 40), y, np.uint16)
    plan = Reduction(FAR_BELOW_FLOAT, None, FP32)
    with kernels.use(path):
        got = matmul(a, b, operand=BF16, reduction=plan, rounding=mode)
    assert (got == [[wanted], [negative]]).all()


@COMPILED
def test_more_random_bits_than_a_compiled_sum_has_are_numpys(path):
    rng = np.random.default_rng(200)
    a, b = codes("normal", CBFLOAT16, (3, 20), rng), codes("normal", CBFLOAT16, (20, 5), rng)
    for bits in (28, 29, 32):
        compared(path, matmul, a, b, operand=CBFLOAT16, rounding="stochastic", random_bits=bits, **SEEDS)
    plan = Reduction(CBFLOAT16, 32, FP32, operand=CBFLOAT16, rounding="stochastic")
    for bits, served in ((28, True), (29, False)):
        reduction, result = plan.with_random(Randomness(bits)), np.zeros((3, 5), np.uint32)
        assert products.most_results(reduction) == 2**32 * served
        with kernels.use(path):
            assert products.matmul(a, b, None, result, products.call_of(reduction)) == served
        assert result.any() == served


FAULTS = seen_by(__file__)
RUN = kernels.paths()
VECTOR_PATH = next((path for path in ("avx512", "avx2") if path in RUN), None)


def results():
    rng = np.random.default_rng(210)
    a, b = codes("special", CBFLOAT16, (3, 40), rng), codes("edges", CBFLOAT16, (40, 25), rng)
    x, y = codes("small integers", CBFLOAT16, (3, 40), rng), codes("small integers", CBFLOAT16, (40, 25), rng)
    for operands in ((a, b), (x, y), (a, y)):
        for level in (0, 1, 2):
            for mode in Rounding:
                options = {"level": level, "rounding": mode, "out": FP16, "out_rounding": mode}
                yield matmul(*operands, operand=CBFLOAT16, **options, **SEEDS)
    options = {"operand": CBFLOAT16, "level": 2}
    yield matmul(a, y, rounding="stochastic", random_bits=2, **options, **SEEDS)
    cancelled = np.array([[CBFLOAT16.one, CBFLOAT16.one | CBFLOAT16.sign_mask]], np.uint16)
    yield matmul(cancelled, np.full((2, 1), CBFLOAT16.one, np.uint16), rounding="down", **options)
    yield np.array([tie_in_float(*given, mode) for *given, _ in TIES.values() for mode in Rounding])
    yield matmul(*grown_by_ulps(), operand=CBFLOAT16, reduction=Reduction(CBFLOAT16, None, FP32), rounding="up")


@pytest.fixture(scope="module")
def library(switched):
    faults = {
        name: [fault] for name, fault in FAULTS.items() if not fault.alone and (VECTOR_PATH or fault.by == "portable")
    }
    return switched("modes", faults, {VECTOR_PATH, "portable"})


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in (VECTOR_PATH, "portable") if path])
def test_modes_with_every_fault_switched_off_agree(sees, path):
    assert not sees(None, path)


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_mode_is_seen(builder, load, wanted, sees, name):
    # The plain loops of the vector paths are compiled once more for the portable one.
    fault = FAULTS[name]
    path = "portable" if fault.by == "portable" else VECTOR_PATH
    if path is None:
        pytest.skip("this machine runs no vector path")
    if not fault.alone:
        assert sees(name, path)
        return
    load(builder.build(f"mode_{name}", fault, path=path), [path])
    with kernels.use(path):
        assert is_seen(results, wanted)
