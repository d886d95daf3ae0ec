"""Rounding, blocks and softmax by the kernels for cards, run on this machine, equal golden, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding, mx
from golden.arrays.normalisation import exponential_table
from golden.arrays.randomness import random_words
from golden.arrays.requests import last_rounding
from golden.cuda.arrays import blocks_launch, rounding_launch, softmax_launch
from golden.cuda.plan import BFLOAT16, FLOAT16, FLOAT32
from golden.formats import NARROW_FORMATS
from golden.reduction import Reduction
from golden.rounding import Randomness
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import Values, assert_equal_bits, run, values

MEMORIES = {FLOAT32: FP32, FLOAT16: FP16, BFLOAT16: BF16}
FINE = FloatFormat("fine", 5, 22, 15)
TINY = FloatFormat("tiny", 3, 2, 2)
ALL = (FP32, FP16, BF16, CBFLOAT16, CB16, FINE, TINY, *NARROW_FORMATS)

TO_NEAREST = Reduction()


def rounded(
    device: HostDevice,
    x: Values,
    fmt: FloatFormat,
    memory: int = FLOAT32,
    modes: Reduction = TO_NEAREST,
    **place: int,
) -> Values:
    """Round values by the kernel, at a place of random bits, and return the memory of the result."""
    result = np.zeros(x.size, np.uint32 if memory == FLOAT32 else np.uint16)
    launch = rounding_launch(
        x.ctypes.data, result.ctypes.data, x.size, (FLOAT32, memory), replace(modes, out=fmt), **place
    )  # fmt: skip
    run(device, launch)
    return np.asarray(golden.decode(result, MEMORIES[memory]))


def edges_of(fmt: FloatFormat) -> Values:
    """All values of a format of 16 bits, the midpoints between neighbours, and floats beside both."""
    codes = np.arange(fmt.max_finite + 1, dtype=np.uint16 if fmt.width > 8 else np.uint8)
    held = np.asarray(golden.decode(codes, fmt), np.float64)
    beyond = 2 * held[-1] - held[-2]
    points = np.concatenate([held, (held + np.append(held[1:], beyond)) / 2, [beyond, 2 * beyond]])
    with np.errstate(over="ignore"):
        near = points.astype(np.float32)
    all_points = np.concatenate([np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(np.inf))])
    special = np.array([np.inf, np.nan, 0], np.float32)
    return np.concatenate([all_points, -all_points, special, -special])


def any_floats(seed: int, count: int) -> Values:
    """Floats of any bits."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("fmt", [FP16, CBFLOAT16, CB16, BF16, TINY, *NARROW_FORMATS], ids=str)
def test_rounding_around_every_code_is_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    x = edges_of(fmt)
    assert_equal_bits(rounded(host_device, x, fmt), golden.quantize(x, fmt))


@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_rounding_in_a_mode_is_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    modes = Reduction(out_rounding=mode, random=Randomness(13, seed=99, call=3))
    for seed, fmt in enumerate(ALL):
        x = np.concatenate([any_floats(seed, 5000), edges_of(fmt)[::7] if fmt.width <= 16 else values(seed, 3000)])
        expected = golden.quantize(x, fmt, **last_rounding(x.shape, modes))
        assert_equal_bits(rounded(host_device, x, fmt, modes=modes), expected)
        assert_equal_bits(rounded(host_device, x[5:], fmt, modes=modes, first_index=5), expected[5:])


@pytest.mark.parametrize("step", [0, 1, 2**31, 2**32 - 1])
def test_stochastic_rounding_at_a_step_is_golden_s(host_device: HostDevice, step: int) -> None:
    bits = Randomness(seed=2**64 - 2**32 + 7, call=11)
    modes = Reduction(out_rounding=Rounding.STOCHASTIC, random=bits)
    for fmt in (CBFLOAT16, BF16, TINY):
        x = np.concatenate([any_floats(step % 97, 5000), edges_of(fmt)[::17]])
        random = random_words(x.shape, bits)(step)
        expected = golden.quantize(x, fmt, rounding="stochastic", random=random)
        assert_equal_bits(rounded(host_device, x, fmt, modes=modes, step=step), expected)


@pytest.mark.parametrize("count", [1, 3, 255, 4095, 4096, 4097, 9000])
def test_rounding_of_any_count_writes_nothing_else(host_device: HostDevice, count: int) -> None:
    for offset in (0, 1):  # aligned, or not
        for memory in MEMORIES:
            whole = np.full(count + 24, 7, np.uint32 if memory == FLOAT32 else np.uint16)
            given = any_floats(count, count + 24)
            start = given.ctypes.data + 4 * (offset - given.ctypes.data // 4 % 4 + 4)
            first = (start - given.ctypes.data) // 4
            x, at = given[first : first + count], 8 + offset
            launch = rounding_launch(
                start, whole.ctypes.data + at * whole.itemsize, count, (FLOAT32, memory), Reduction(out=CBFLOAT16)
            )  # fmt: skip
            run(host_device, launch)
            expected = golden.encode(golden.quantize(x, CBFLOAT16), MEMORIES[memory])
            assert np.array_equal(whole[at : at + count], expected)
            assert np.all(whole[:at] == 7)
            assert np.all(whole[at + count :] == 7)


@pytest.mark.parametrize("memory", [FLOAT16, BFLOAT16])
def test_rounding_of_every_element_of_sixteen_bits_is_golden_s(host_device: HostDevice, memory: int) -> None:
    codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    for fmt in (FP16, BF16, CBFLOAT16, TINY, NARROW_FORMATS[0]):
        for result_memory in MEMORIES:
            result = np.zeros(codes.size, np.uint32 if result_memory == FLOAT32 else np.uint16)
            addresses = codes.ctypes.data, result.ctypes.data
            launch = rounding_launch(*addresses, codes.size, (memory, result_memory), Reduction(out=fmt))
            run(host_device, launch)
            expected = golden.quantize(golden.decode(codes, MEMORIES[memory]), fmt)
            assert np.array_equal(result, golden.encode(expected, MEMORIES[result_memory]))


def softmax(device: HostDevice, x: Values, fmt: FloatFormat) -> Values:
    """Softmax of rows by the kernel."""
    result = np.zeros(x.shape, np.float32)
    codes = exponential_table(fmt)[fmt.sign_mask : (fmt.sign_mask | fmt.inf) + 1]
    table = np.ascontiguousarray(golden.decode(codes, fmt))
    rows, length = x.shape
    addresses = x.ctypes.data, result.ctypes.data, table.ctypes.data
    run(device, softmax_launch(*addresses, rows, length, (FLOAT32, FLOAT32), fmt))
    return result


def expected_softmax(x: Values, fmt: FloatFormat) -> Values:
    return np.asarray(golden.decode(golden.softmax(golden.encode(x, fmt), fmt), fmt))


SOFTMAX_FORMATS = (FP16, BF16, CBFLOAT16, CB16, TINY, FloatFormat("precise", 4, 11), FloatFormat("wide", 8, 3, 140))


@pytest.mark.parametrize("fmt", SOFTMAX_FORMATS, ids=str)
def test_softmax_is_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    for rows, length in [(1, 1), (3, 2), (5, 31), (63, 32), (64, 33), (65, 7), (2, 300)]:
        for spread in (1, 3, 6):
            x = values(rows + spread, rows, length, spread=spread)
            assert_equal_bits(softmax(host_device, x, fmt), expected_softmax(x, fmt))


@pytest.mark.parametrize("fmt", SOFTMAX_FORMATS, ids=str)
def test_softmax_with_specials_is_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    special = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 3e38, -3e38, 1e-45, -1e-45, 1, -2], np.float32)
    picks = np.random.default_rng(5).integers(0, special.size, (200, 5))
    rows = [special[picks], np.full((1, 5), -np.inf, np.float32), np.full((1, 5), np.inf, np.float32)]
    rows += [np.tile(np.float32([-np.inf, 1, -20, 0, 3]), (20, 1))]
    x = np.concatenate(rows).astype(np.float32)
    assert_equal_bits(softmax(host_device, x, fmt), expected_softmax(x, fmt))


@pytest.mark.parametrize("fmt", [FP16, BF16, CBFLOAT16], ids=str)
def test_softmax_of_small_quotients_is_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    """Each term of many rows beside different sums: quotients that are subnormal, or half way between two codes."""
    drops = -np.linspace(0, 30, 400, dtype=np.float32)
    x = np.stack([np.concatenate([np.zeros(ones, np.float32), drops])[:400] for ones in range(0, 128, 3)])
    assert_equal_bits(softmax(host_device, x, fmt), expected_softmax(x, fmt))


#: Quotients of 14 bits by 14 bits come nearer to the middle between two codes than a float can tell.
LONG = FloatFormat("long", 2, 13, 1)


def close_quotients() -> Values:
    """Rows of a few values between -2 and 2, for sums below the largest value of `LONG`."""
    return np.random.default_rng(8).uniform(-2, 2, (20000, 5)).astype(np.float32)


def test_softmax_of_quotients_that_floats_confuse_is_golden_s(host_device: HostDevice) -> None:
    x = close_quotients()
    assert_equal_bits(softmax(host_device, x, LONG), expected_softmax(x, LONG))


def test_softmax_of_an_unfit_format_is_refused_naming_it() -> None:
    for fmt in (FP32, NARROW_FORMATS[0], FloatFormat("high", 5, 10, 0)):
        with pytest.raises(ValueError, match=f"fmt: got {fmt}, must have infinities"):
            softmax_launch(0, 0, 0, 1, 1, (FLOAT32, FLOAT32), fmt)


#: Their scales end before their exponents do, at either end; the third has more digits than a float below 2^-126.
LOW, HIGH, LONG_ROWS = FloatFormat("low", 3, 3, 140), FloatFormat("high", 3, 3, -115), FloatFormat("long", 4, 22, 7)
ELEMENTS = (*NARROW_FORMATS, FP16, BF16, CBFLOAT16, FP32, LOW, HIGH, LONG_ROWS)

#: Whole and partial blocks: of one value, of more values than a block of threads, and more blocks than that.
SHAPES = ((70, 64, 32), (9, 45, 32), (3, 33, 8), (50, 3, 1), (2, 3000, 1200), (2, 2100, 5000), (1, 1, 32))


def in_blocks(device: HostDevice, x: NDArray[np.generic], element: FloatFormat, block: int, memory: int) -> Values:
    """Round the rows of an array by the kernel, and return the memory of the result."""
    whole = np.full(x.size + 24, 7, x.dtype)
    result = whole[8 : 8 + x.size]
    run(device, blocks_launch(x.ctypes.data, result.ctypes.data, *x.shape, block, memory, element))
    assert np.all(whole[:8] == 7)
    assert np.all(whole[8 + x.size :] == 7)
    return np.asarray(golden.decode(result.view(f"u{x.itemsize}").reshape(x.shape), MEMORIES[memory]))


def expected(x: Values, element: FloatFormat, block: int) -> Values:
    """Round the rows of an array by golden.mx, with zeros behind each."""
    block = min(block, x.shape[-1])
    filled = np.pad(x, ((0, 0), (0, -x.shape[-1] % block)))
    return np.ascontiguousarray(mx.dequantize(*mx.quantize(filled, element, block=block), element)[:, : x.shape[-1]])


def rows(seed: int, shape: tuple[int, int], special: float) -> Values:
    """Rows with exponents near each other, the first with subnormal values; some values are not numbers."""
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
            assert_equal_bits(in_blocks(device, x, element, block, FLOAT32), expected(x, element, block))


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
    assert_equal_bits(in_blocks(host_device, x, element, 2, FLOAT32), expected(x, element, 2))


@pytest.mark.parametrize("memory", [FLOAT16, BFLOAT16])
@pytest.mark.parametrize("element", [NARROW_FORMATS[0], BF16, LOW], ids=str)
def test_blocks_in_16_bits_are_golden_s(host_device: HostDevice, memory: int, element: FloatFormat) -> None:
    fmt = MEMORIES[memory]
    codes = np.random.default_rng(4).integers(0, 2**16, (80, 45)).astype(np.uint16)
    codes[:, 3:][~np.isfinite(golden.decode(codes, fmt))[:, 3:]] &= 0xFF
    wanted = golden.quantize(expected(np.asarray(golden.decode(codes, fmt)), element, 32), fmt)
    assert_equal_bits(in_blocks(host_device, codes, element, 32, memory), wanted)


@pytest.mark.parametrize("order", ORDERS[1:])
def test_blocks_in_other_orders_of_threads_are_golden_s(host_device: HostDevice, order: tuple[int, int, int]) -> None:
    device = HostDevice(host_device._folder, order=order)
    check(device, NARROW_FORMATS[0])


def test_blocks_whose_values_are_all_zero_or_not_numbers_are_golden_s(host_device: HostDevice) -> None:
    nan, inf = np.float32(np.nan), np.float32(np.inf)
    x = np.array([[0, -0.0, 0, 0], [nan, 1, -2, 0], [1, -inf, 3, -0.0], [1e-45, -1e-45, 0, -0.0]], np.float32)
    for element in ELEMENTS:
        assert_equal_bits(in_blocks(host_device, x, element, 4, FLOAT32), expected(x, element, 4))
    found = in_blocks(host_device, x, NARROW_FORMATS[0], 4, FLOAT32)
    assert np.isnan(found[1:3]).all()
    assert not found[0].any()
