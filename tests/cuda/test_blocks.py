"""Values rounded to blocks with one scale each, by the kernel for cards run on this machine, are those of golden.mx."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, mx
from golden.cuda.arrays import blocks_launch
from golden.cuda.plan import BFLOAT16, FLOAT16, FLOAT32
from golden.formats import NARROW_FORMATS
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import Values, assert_equal_bits, run

#: Their scales end before their exponents do, at either end; the third has more digits than a float below 2^-126.
LOW, HIGH, LONG = FloatFormat("low", 3, 3, 140), FloatFormat("high", 3, 3, -115), FloatFormat("long", 4, 22, 7)
ELEMENTS = (*NARROW_FORMATS, FP16, BF16, CBFLOAT16, FP32, LOW, HIGH, LONG)
MEMORIES = {FLOAT32: FP32, FLOAT16: FP16, BFLOAT16: BF16}
#: Whole blocks and others, of one value and of more than a block has threads; more of them than a block of threads has.
SHAPES = ((70, 64, 32), (9, 45, 32), (3, 33, 8), (50, 3, 1), (2, 3000, 1200), (2, 2100, 5000), (1, 1, 32))


def rounded(device: HostDevice, x: NDArray[np.generic], element: FloatFormat, block: int, memory: int) -> Values:
    """Round the rows of an array by the kernel, and return what the memory of the result then holds."""
    whole = np.full(x.size + 24, 7, x.dtype)
    result = whole[8 : 8 + x.size]
    run(device, blocks_launch(x.ctypes.data, result.ctypes.data, *x.shape, block, memory, element), x, result)
    assert np.all(whole[:8] == 7)
    assert np.all(whole[8 + x.size :] == 7)
    return np.asarray(golden.decode(result.view(f"u{x.itemsize}").reshape(x.shape), MEMORIES[memory]))


def expected(x: Values, element: FloatFormat, block: int) -> Values:
    """Round the rows of an array by golden.mx, with zeros behind each."""
    block = min(block, x.shape[-1])
    filled = np.pad(x, ((0, 0), (0, -x.shape[-1] % block)))
    return np.ascontiguousarray(mx.dequantize(*mx.quantize(filled, element, block=block), element)[:, : x.shape[-1]])


def rows(seed: int, shape: tuple[int, int], special: float) -> Values:
    """Rows of exponents that are near each other, the first of subnormal values; some values are no numbers."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**32, shape, np.uint32) & 0x807FFFFF
    fields = random.integers(0, 255, (shape[0], 1)) - random.integers(0, 14, shape)
    fields[0] = 0
    bits |= np.maximum(fields, 0).astype(np.uint32) << 23
    bits[random.random(shape) < 0.05] &= 0x80000000
    return np.where(random.random(shape) < special, bits | 0x7F800000, bits).astype(np.uint32).view(np.float32)


def check(device: HostDevice, element: FloatFormat, shapes: tuple[tuple[int, int, int], ...] = SHAPES) -> None:
    for seed, (count, length, block) in enumerate(shapes):
        for special in (0.0, 0.01):
            x = rows(seed, (count, length), special)
            assert_equal_bits(rounded(device, x, element, block, FLOAT32), expected(x, element, block))


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_blocks_of_any_element_are_golden_s(host_device: HostDevice, element: FloatFormat) -> None:
    check(host_device, element)


@pytest.mark.parametrize("element", [each for each in ELEMENTS if each.width <= 8], ids=str)
def test_blocks_of_values_half_way_between_elements_are_golden_s(host_device: HostDevice, element: FloatFormat) -> None:
    """Every finite element, the middle between it and the next, and floats beside both, under scales of every size."""
    codes = np.arange(element.max_finite + 1, dtype=np.uint8)
    held = np.asarray(golden.decode(codes, element), np.float32)
    points = np.concatenate([held, (held[1:] + held[:-1]) / 2, [held[-1] * np.float32(1.03)]])
    near = np.concatenate([np.nextafter(points, np.float32(0)), points, np.nextafter(points, np.float32(np.inf))])
    scales = np.float32(2.0) ** np.arange(-126, 120, 7, dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):
        x = scales[:, np.newaxis] * np.concatenate([near, -near]).astype(np.float32)
        top = scales[:, np.newaxis] * held[-1]  # in every block, which gives it that scale
    x = np.stack([np.broadcast_to(top, x.shape), x], axis=-1)
    x = np.ascontiguousarray(x[np.isfinite(x).all(axis=-1)])
    assert len(x) > 1000
    assert_equal_bits(rounded(host_device, x, element, 2, FLOAT32), expected(x, element, 2))


@pytest.mark.parametrize("memory", [FLOAT16, BFLOAT16])
@pytest.mark.parametrize("element", [NARROW_FORMATS[0], BF16, LOW], ids=str)
def test_blocks_in_16_bits_are_golden_s(host_device: HostDevice, memory: int, element: FloatFormat) -> None:
    fmt = MEMORIES[memory]
    codes = np.random.default_rng(4).integers(0, 2**16, (80, 45)).astype(np.uint16)
    codes[:, 3:][~np.isfinite(golden.decode(codes, fmt))[:, 3:]] &= 0xFF
    wanted = golden.quantize(expected(np.asarray(golden.decode(codes, fmt)), element, 32), fmt)
    assert_equal_bits(rounded(host_device, codes, element, 32, memory), wanted)


@pytest.mark.parametrize("order", ORDERS[1:])
def test_blocks_in_other_orders_of_threads_are_golden_s(host_device: HostDevice, order: tuple[int, int, int]) -> None:
    device = HostDevice(host_device._folder, order=order)
    check(device, NARROW_FORMATS[0])


def test_blocks_whose_values_are_all_zero_or_not_numbers_are_golden_s(host_device: HostDevice) -> None:
    nan, inf = np.float32(np.nan), np.float32(np.inf)
    x = np.array([[0, -0.0, 0, 0], [nan, 1, -2, 0], [1, -inf, 3, -0.0], [1e-45, -1e-45, 0, -0.0]], np.float32)
    for element in ELEMENTS:
        assert_equal_bits(rounded(host_device, x, element, 4, FLOAT32), expected(x, element, 4))
    found = rounded(host_device, x, NARROW_FORMATS[0], 4, FLOAT32)
    assert np.isnan(found[1:3]).all()
    assert not found[0].any()
