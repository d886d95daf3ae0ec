"""Matrix products by the kernels for cards, in every rounding mode, equal golden, bit for bit."""

import numpy as np
import pytest

from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, Rounding
from golden.formats import NARROW_FORMATS
from golden.rounding import Randomness
from golden.torch.products.gpu.products import is_served
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import check, multiply, reduction_of, special_values, values

#: The formats of the contract, and others whose scale, width or range is out of the ordinary.
OTHERS = (
    FloatFormat("wide", 8, 10, 127 + 10),
    FloatFormat("tiny", 3, 2, 2),
    FloatFormat("far", 5, 10, 120),
    FloatFormat("high", 5, 10, 0),
    FloatFormat("fine", 5, 22, 20),
)
FORMATS = (CBFLOAT16, FP16, BF16, CB16, *OTHERS)
CHUNKS = (1, 2, 15, 16, 17, 31, 32, 33, 100, 1000, None)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fmt", FORMATS, ids=str)
def test_product_of_every_format_and_level_is_golden_s(host_device: HostDevice, fmt: FloatFormat, level: int) -> None:
    spread = max(1, min(12, fmt.emax // 2))
    a, b, start = values(1, 19, 70, spread=spread), values(2, 70, 35, spread=spread), values(3, 35)
    for native in ((True, True), (False, False)):
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, 33), native=native)
        plan = reduction_of(fmt, level, 16)
        check(host_device, a, b, operand=fmt, reduction=plan, initial=start, out=fmt, native=native)


@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16], ids=str)
def test_product_of_chunks_of_any_length_is_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    a, b = values(4, 5, 70), values(5, 70, 9)
    for chunk in CHUNKS:
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, 1, chunk))
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, 2, chunk), initial=values(6, 5, 9))


@pytest.mark.parametrize("k", [255, 256, 257])
def test_product_of_long_chunks_is_golden_s(host_device: HostDevice, k: int) -> None:
    a, b = values(7, 3, 600), values(8, 600, 2)
    check(host_device, a, b, operand=CBFLOAT16, reduction=reduction_of(CBFLOAT16, 2, k))
    check(host_device, a[:, :k], b[:k], operand=CBFLOAT16, reduction=reduction_of(CBFLOAT16, 2, 256))


@pytest.mark.parametrize("tile", [128, 64, 32])
def test_product_at_the_edges_of_tiles_is_golden_s(host_device: HostDevice, tile: int) -> None:
    plan = reduction_of(CBFLOAT16, 1, 32)
    for rows, length, columns in [(1, 17, tile + 1), (tile - 1, 16, 1), (tile, 15, tile), (tile + 1, 1, 2)]:
        a, b = values(rows, rows, length), values(columns, length, columns)
        check(host_device, a, b, operand=CBFLOAT16, reduction=plan, tile=tile)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_product_in_any_order_of_threads_is_golden_s(host_device: HostDevice, order: tuple[int, int, int]) -> None:
    before, host_device.order = host_device.order, order
    try:
        for level, operand in [(0, BF16), (1, CBFLOAT16), (2, FP16)]:
            a, b, start = values(9, 33, 50), values(10, 50, 65), values(11, 33, 1)
            check(host_device, a, b, operand=operand, reduction=reduction_of(operand, level, 20), initial=start)
    finally:
        host_device.order = before


def test_product_of_no_products_is_the_initial_value(host_device: HostDevice) -> None:
    empty, start = np.zeros((3, 0), np.float32), values(12, 3, 2)
    for level in (0, 1, 2):
        plan = reduction_of(FP16, level, 32)
        check(host_device, empty, np.zeros((0, 2), np.float32), operand=FP16, reduction=plan, initial=start)
        check(host_device, empty, np.zeros((0, 2), np.float32), operand=FP16, reduction=plan)


@pytest.mark.parametrize("shape", [(0, 4, 5), (3, 4, 0), (0, 0, 0)])
def test_product_without_results_launches_nothing(host_device: HostDevice, shape: tuple[int, int, int]) -> None:
    rows, length, columns = shape
    a, b = np.zeros((rows, length), np.float32), np.zeros((length, columns), np.float32)
    found = multiply(host_device, a, b, operand=FP16, reduction=reduction_of(FP16, 1, 32))
    assert found.shape == (rows, columns)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, CB16, FloatFormat("tiny", 3, 2, 2)], ids=str)
def test_product_of_any_codes_is_golden_s(host_device: HostDevice, fmt: FloatFormat, level: int) -> None:
    """Infinities, NaNs, zeros of both signs, subnormals, sums beyond the largest value, values between two codes."""
    a, b = special_values(level, fmt, 31, 40), special_values(level + 10, fmt, 40, 33)
    start = special_values(level + 20, fmt, 33)
    for chunk in (4, 33):
        plan = reduction_of(fmt, level, chunk)
        for native in ((True, True), (False, False)):
            check(host_device, a, b, operand=fmt, reduction=plan, initial=start, native=native)
            check(host_device, a[:, :6], b[:6], operand=fmt, reduction=plan, out=FP16, native=native)


@pytest.mark.parametrize("operand", NARROW_FORMATS, ids=str)
def test_product_of_narrow_operands_is_golden_s(host_device: HostDevice, operand: FloatFormat) -> None:
    a, b = values(13, 9, 40, spread=3), values(14, 40, 11, spread=3)
    for inner in (CBFLOAT16, FP16):
        for level in (0, 1, 2):
            plan = Reduction.for_level(level, operand, inner=inner, chunk=12)
            check(host_device, a, b, operand=operand, reduction=plan, out=inner)


@pytest.mark.parametrize(
    "plan",
    [Reduction(FP32, 20, FP32), Reduction(FP32, 20, CBFLOAT16), Reduction(BF16, 7, FP16), Reduction(FP16, None, BF16)],
    ids=lambda plan: f"{plan.inner}-{plan.chunk}-{plan.outer}",
)
def test_product_of_any_two_formats_is_golden_s(host_device: HostDevice, plan: Reduction) -> None:
    a, b, start = values(15, 9, 50), values(16, 50, 8), values(17, 9, 8)
    for operand in (FP16, CBFLOAT16):
        check(host_device, a, b, operand=operand, reduction=plan, initial=start, out=BF16)


OTHER_MODES = [mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN]
RANDOM = {"seed": 0x0123456789ABCDEF, "call": 7}


@pytest.mark.turns
@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    a, b, start = values(1, 9, 50), values(2, 50, 35), values(3, 35)
    for level, fmt in [(0, CBFLOAT16), (1, CBFLOAT16), (2, FP16), (2, BF16)]:
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, 20), rounding=mode, **RANDOM)
        plan = reduction_of(fmt, level, None)
        check(host_device, a, b, operand=fmt, reduction=plan, initial=start, rounding=mode, out=CBFLOAT16, **RANDOM)


@pytest.mark.turns
@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_of_any_codes_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    """Beyond the largest value a mode decides the result of a sum, and the sign of an exact zero."""
    for fmt, level in [(FP16, 2), (CBFLOAT16, 1), (BF16, 0), (BF16, 2), (FloatFormat("tiny", 3, 2, 2), 2)]:
        a, b = special_values(level, fmt, 9, 24), special_values(level + 10, fmt, 24, 33)
        plan, start = reduction_of(fmt, level, 5), special_values(level + 20, fmt, 33)
        check(host_device, a, b, operand=fmt, reduction=plan, initial=start, rounding=mode, out_rounding=mode, out=fmt)
        check(host_device, a, b, operand=fmt, reduction=plan, rounding=mode)
    zeros = np.array([[1, -1, 0], [1, 1, -0.0], [-0.0, 0, 0]], np.float32)
    check(host_device, zeros, zeros.T.copy(), operand=FP16, reduction=reduction_of(FP16, 2, 2), rounding=mode)


@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_converted_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    a, b = values(4, 9, 20), values(5, 20, 7)
    for out in (FP16, BF16, CBFLOAT16, FP32):
        plan = reduction_of(CBFLOAT16, 1, 8)
        check(host_device, a, b, operand=CBFLOAT16, reduction=plan, out=out, out_rounding=mode, **RANDOM)


@pytest.mark.turns
@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_in_doubles_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    fine = FloatFormat("fine", 5, 22, 15)
    a, b = values(6, 5, 30, spread=5), values(7, 30, 4, spread=5)
    for plan in (Reduction(fine, 7, FP32), Reduction(fine, 9, fine)):
        check(host_device, a, b, operand=fine, reduction=plan, rounding=mode, **RANDOM)


@pytest.mark.turns
@pytest.mark.parametrize("bits", [1, 3, 16, 28])
def test_stochastic_product_of_any_number_of_random_bits_is_golden_s(host_device: HostDevice, bits: int) -> None:
    """The bits depend on the place of a result in the whole call: over tiles, batches and rows."""
    a, b = values(8, 3, 37, 25), values(9, 25, 66)
    options = {
        "rounding": "stochastic",
        "out_rounding": "stochastic",
        "random_bits": bits,
        "seed": 2**63 + 5,
        "call": 2**32 - 1,
    }
    for level in (0, 1, 2):
        plan = reduction_of(CBFLOAT16, level, 10)
        for tile in (64, 32):
            check(host_device, a, b, operand=CBFLOAT16, reduction=plan, out=CBFLOAT16, tile=tile, **options)
        check(host_device, a, b[:, :3], operand=FP16, reduction=plan, **options)
    each = values(10, 3, 25, 5)
    check(host_device, a[:, :4], each, operand=CBFLOAT16, reduction=reduction_of(CBFLOAT16, 1, 10), **options)


@pytest.mark.parametrize("modes", [("stochastic", "up"), ("up", "stochastic")])
def test_product_of_more_random_bits_or_results_than_kernels_have_is_not_served(modes: tuple[str, str]) -> None:
    """A float's 23 bits and a random word's 28 fill a double; 32 bits number the results."""
    for bits, results, served in ((28, 2**32, True), (29, 1, False), (28, 2**32 + 1, False)):
        reduction = Reduction(CBFLOAT16, 32, FP32, CBFLOAT16, FP32, *modes, Randomness(bits))
        assert is_served(reduction, results) == served
    assert is_served(Reduction(CBFLOAT16, 32, FP32, CBFLOAT16, FP32, "up", "down", Randomness(32)), 2**33)
