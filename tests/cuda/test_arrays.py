"""Rounding and softmax by the kernels for cards, run on this machine, are those of golden, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden import BF16, CB16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding
from golden.arrays.chain import last_rounding
from golden.arrays.normalisation import exponential_table
from golden.arrays.randomness import random_words
from golden.cuda.arrays import rounding_launch, softmax_launch
from golden.cuda.plan import BFLOAT16, FLOAT16, FLOAT32
from golden.formats import NARROW_FORMATS
from golden.rounding import NEAREST, ReductionRounding
from tests.cuda.host import HostDevice
from tests.cuda.products import Values, assert_equal_bits, run, values

MEMORIES = {FLOAT32: FP32, FLOAT16: FP16, BFLOAT16: BF16}
FINE = FloatFormat("fine", 5, 22, 15)
TINY = FloatFormat("tiny", 3, 2, 2)
ALL = (FP32, FP16, BF16, CBFLOAT16, CB16, FINE, TINY, *NARROW_FORMATS)


def rounded(
    device: HostDevice,
    x: Values,
    fmt: FloatFormat,
    memory: int = FLOAT32,
    modes: ReductionRounding = NEAREST,
    **place: int,
) -> Values:
    """Round values by the kernel, at a place of random bits, and return what the memory of the result then holds."""
    result = np.zeros(x.size, np.uint32 if memory == FLOAT32 else np.uint16)
    launch = rounding_launch(
        x.ctypes.data, result.ctypes.data, x.size, FLOAT32, memory, fmt, modes, **place
    )  # fmt: skip
    run(device, launch, x, result)
    return np.asarray(golden.decode(result, MEMORIES[memory]))


def edges_of(fmt: FloatFormat) -> Values:
    """All values of a format of 16 bits, what lies half way between neighbours, and floats beside both."""
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
    modes = ReductionRounding(out_rounding=mode, seed=99, call=3, random_bits=13)
    for seed, fmt in enumerate(ALL):
        x = np.concatenate([any_floats(seed, 5000), edges_of(fmt)[::7] if fmt.width <= 16 else values(seed, 3000)])
        expected = golden.quantize(x, fmt, **last_rounding(x.shape, modes))
        assert_equal_bits(rounded(host_device, x, fmt, modes=modes), expected)
        assert_equal_bits(rounded(host_device, x[5:], fmt, modes=modes, first_index=5), expected[5:])


@pytest.mark.parametrize("step", [0, 1, 2**31, 2**32 - 1])
def test_stochastic_rounding_at_a_step_is_golden_s(host_device: HostDevice, step: int) -> None:
    modes = ReductionRounding(out_rounding=Rounding.STOCHASTIC, seed=2**64 - 2**32 + 7, call=11)
    for fmt in (CBFLOAT16, BF16, TINY):
        x = np.concatenate([any_floats(step % 97, 5000), edges_of(fmt)[::17]])
        random = random_words(x.shape, modes)(step)
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
                start, whole.ctypes.data + at * whole.itemsize, count, FLOAT32, memory, CBFLOAT16
            )  # fmt: skip
            run(host_device, launch, given, whole)
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
            run(host_device, rounding_launch(*addresses, codes.size, memory, result_memory, fmt), codes, result)
            expected = golden.quantize(golden.decode(codes, MEMORIES[memory]), fmt)
            assert np.array_equal(result, golden.encode(expected, MEMORIES[result_memory]))


def softmax(device: HostDevice, x: Values, fmt: FloatFormat) -> Values:
    """Softmax of rows by the kernel."""
    result = np.zeros(x.shape, np.float32)
    codes = exponential_table(fmt)[fmt.sign_mask : (fmt.sign_mask | fmt.inf) + 1]
    table = np.ascontiguousarray(golden.decode(codes, fmt))
    rows, length = x.shape
    addresses = x.ctypes.data, result.ctypes.data, table.ctypes.data
    run(device, softmax_launch(*addresses, rows, length, FLOAT32, FLOAT32, fmt), x, result, table)
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
            softmax_launch(0, 0, 0, 1, 1, FLOAT32, FLOAT32, fmt)
