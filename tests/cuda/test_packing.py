"""Panels hold the operands, rounded and scaled, lane beside lane, with the largest magnitude of every stage."""

from __future__ import annotations

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP16, FloatFormat
from golden.cuda.plan import COMMON, FLOAT32, Launch
from golden.cuda.structures import STAGE, Packing, SourceFields, target
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import Values, assert_equal_bits, run, values


def packed(
    device: HostDevice, x: Values, fmt: FloatFormat, exponent: int, width: int, strides: tuple[int, int, int]
) -> tuple[Values, Values]:
    """Pack two matrices (2, lanes, k) of these strides; return panels [matrix][panel][k][lane] and magnitudes."""
    lanes, k = x.shape[1:]
    panels, stages = -(-lanes // width), -(-k // STAGE)
    to = np.full((2, panels, stages * STAGE, width), 7, np.float32)
    largest = np.full((2, panels, stages), 7, np.float32)
    source = SourceFields(x.ctypes.data, None, None, strides[1], strides[2], (0, 0, 0, strides[0]), FLOAT32)
    sizes = (1, 1, 1, 2), lanes, k, width, stages * STAGE, to.ctypes.data, largest.ctypes.data
    fields = Packing(source, *sizes, target(fmt, exponent), 0)
    run(device, Launch(COMMON, "pack", 2 * panels * -(-stages // 2), bytes(fields)), x, to, largest)
    return to, largest


def expected(x: Values, fmt: FloatFormat, exponent: int, width: int) -> tuple[Values, Values]:
    lanes, k = x.shape[1:]
    panels, stages = -(-lanes // width), -(-k // STAGE)
    whole = np.zeros((2, panels * width, stages * STAGE), np.float32)
    whole[:, :lanes, :k] = np.ldexp(golden.quantize(x, fmt), exponent)
    shaped = whole.reshape(2, panels, width, stages * STAGE).swapaxes(2, 3)
    magnitudes = np.abs(shaped).reshape(2, panels, stages, STAGE * width)
    return np.ascontiguousarray(shaped), magnitudes.max(-1)


def check(device: HostDevice, lanes: int, k: int, width: int) -> None:
    """Compare panels of lanes that lie apart, and of lanes that are neighbours in memory."""
    x = values(lanes + k, 2, lanes, k)
    turned = np.ascontiguousarray(x.swapaxes(1, 2))
    for fmt, exponent in [(CBFLOAT16, -96), (FP16, -112), (BF16, 0)]:
        wanted = expected(x, fmt, exponent, width)
        for given, strides in [(x, (lanes * k, k, 1)), (turned, (lanes * k, 1, lanes))]:
            found = packed(device, given.reshape(2, lanes, k), fmt, exponent, width, strides)
            for one, other in zip(found, wanted, strict=True):
                assert_equal_bits(one, other)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("width", [128, 64, 32])
def test_panels_and_largest_magnitudes_are_those_of_the_operand(
    host_device: HostDevice, width: int, order: tuple[int, int, int]
) -> None:
    before, host_device.order = host_device.order, order
    try:
        for lanes, k in [(1, 1), (width - 1, 15), (width, 16), (width + 1, 17), (3, 32), (2 * width, 33), (5, 48)]:
            check(host_device, lanes, k, width)
    finally:
        host_device.order = before
