"""Products by the kernels for cards in every rounding mode are those of golden, bit for bit."""

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, Rounding
from golden.rounding import ReductionRounding
from golden.torch.products.gpu.products import is_served
from golden.torch.products.windows import Summing
from tests.cuda.host import HostDevice
from tests.cuda.products import check, reduction_of, special_values, values

OTHER_MODES = [mode for mode in Rounding if mode is not Rounding.NEAREST_EVEN]
RANDOM = {"seed": 0x0123456789ABCDEF, "call": 7}


@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    a, b, start = values(1, 9, 50), values(2, 50, 35), values(3, 35)
    for level, fmt in [(0, CBFLOAT16), (1, CBFLOAT16), (2, FP16), (2, BF16)]:
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, 20), rounding=mode, **RANDOM)
        plan = reduction_of(fmt, level, None)
        check(host_device, a, b, operand=fmt, reduction=plan, initial=start, rounding=mode, out=CBFLOAT16, **RANDOM)


@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_of_any_codes_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    """Beyond the largest value a mode decides what a sum becomes, and of what sign an exact zero is."""
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


@pytest.mark.parametrize("mode", OTHER_MODES, ids=str)
def test_product_in_doubles_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    fine = FloatFormat("fine", 5, 22, 15)
    a, b = values(6, 5, 30, spread=5), values(7, 30, 4, spread=5)
    for plan in (Reduction(fine, 7, FP32), Reduction(fine, 9, fine)):
        check(host_device, a, b, operand=fine, reduction=plan, rounding=mode, **RANDOM)


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
        rounding = ReductionRounding.of(*modes, seed=0, call=0, random_bits=bits)
        assert is_served(Summing(FP32, CBFLOAT16, Reduction(CBFLOAT16, 32, FP32), rounding), results) == served
    directed = ReductionRounding.of("up", "down", seed=0, call=0, random_bits=32)
    assert is_served(Summing(FP32, CBFLOAT16, Reduction(CBFLOAT16, 32, FP32), directed), 2**33)
