"""Operands in any memory: batches, strides, tables, elements of 16 bits; their panels, and how a plan reads them."""

from __future__ import annotations

import contextlib
import mmap
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import golden
from golden import BF16, CBFLOAT16, FP16, FloatFormat, Reduction, Rounding
from golden.arrays.value_products import indexed_values
from golden.cuda.plan import BFLOAT16, COMMON, FLOAT16, FLOAT32, Arrays, Launch, Matrix, choose_tile, plan_product
from golden.cuda.scales import Steps
from golden.cuda.structures import STAGE, Packing, SourceFields, target
from golden.kernels.products import Indexed
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import Values, assert_equal_bits, check, matrix, reduction_of, run, run_plan, values

PLAN = reduction_of(CBFLOAT16, 1, 16)
WHOLE = replace(PLAN, operand=CBFLOAT16, out=CBFLOAT16)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((), (3,)), ((3,), ()), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((2, 1, 3), (4, 1)), ((1, 1), (2,)),
        ((2, 1, 3, 2), (2, 1, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_batches_that_broadcast_are_golden_s(
    host_device: HostDevice, first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    a, b = values(1, *first, 5, 20), values(2, *second, 20, 3)
    batch = np.broadcast_shapes(first, second)
    for start in (None, values(3, 3), values(4, *batch, 1, 1), values(5, *batch, 5, 3)):
        check(host_device, a, b, operand=CBFLOAT16, reduction=PLAN, initial=start)


def test_one_matrix_for_a_batch_is_one_product_of_all_rows() -> None:
    a, b, result = np.zeros((4, 5, 20), np.float32), np.zeros((20, 3), np.float32), np.zeros((4, 5, 3), np.float32)
    plan = plan_product(WHOLE, Arrays((4,), (5, 20, 3), *(matrix(each, (4,)) for each in (a, b, result))))
    assert (plan.axes.count, plan.m) == (1, 20)
    packs = [launch for launch in plan.launches(256) if launch.kernel == "pack"]
    assert len(packs) == 2


def test_operand_that_repeats_in_a_batch_is_packed_once() -> None:
    a, b, result = np.zeros((5, 20), np.float32), np.zeros((4, 20, 3), np.float32), np.zeros((4, 5, 3), np.float32)
    plan = plan_product(WHOLE, Arrays((4,), (5, 20, 3), *(matrix(each, (4,)) for each in (a, b, result))))
    first, second, _ = plan.launches(256)
    assert (first.blocks, second.blocks) == (1, 4)


def test_more_axes_than_kernels_know_are_refused_with_advice() -> None:
    strides = (7, 100, 3, 1000, 11)
    operand = Matrix(0, FLOAT32, 1, 1, strides)
    with pytest.raises(
        ValueError, match=r"got shape \(2, 2, 2, 2, 2\) with strides that need 5 axes, .* make the operands contiguous"
    ):
        plan_product(WHOLE, Arrays((2,) * 5, (1, 1, 1), operand, operand, operand))


VIEWS = {
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-1],
    "of every third": lambda x: x[::3, ::2],
    "of one row": lambda x: np.broadcast_to(x[:1], x.shape),
    "of one column": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
def test_strides_of_any_sign_are_golden_s(host_device: HostDevice, view: str) -> None:
    a, b, start = (VIEWS[view](values(seed, 40, 40)) for seed in (5, 6, 7))
    rows, columns = a.shape
    if rows != columns:
        b = VIEWS[view](values(6, 3 * columns - 2, 2 * rows))
        start = values(8, rows, b.shape[1])
    check(host_device, a, b, operand=CBFLOAT16, reduction=PLAN, initial=start)


def test_result_of_any_strides_is_written_where_it_lies(host_device: HostDevice) -> None:
    a, b = values(9, 5, 20), values(10, 20, 7)
    whole = np.full((9, 6), -1, np.float32)
    result = whole[1:8, :5].T
    run_plan(host_device, plan_product(WHOLE, Arrays((), (5, 20, 7), *(matrix(each, ()) for each in (a, b, result)))))
    assert_equal_bits(result.copy(), golden.matmul_values(a, b, operand=CBFLOAT16, reduction=PLAN, out=CBFLOAT16))
    assert np.all(whole[[0, 8]] == -1)
    assert np.all(whole[:, 5] == -1)


def _table(random: np.random.Generator, length: int) -> NDArray[np.int64]:
    return random.integers(0, 200, length)


def test_operands_by_tables_are_golden_s(host_device: HostDevice) -> None:
    random, data, other = np.random.default_rng(1), values(11, 1000), values(12, 1000)
    batches, rows, length, columns = 3, 7, 30, 34
    tables = [_table(random, size) for size in (rows, length, length, columns)]
    starts = np.arange(batches) * 150, np.zeros(batches, np.int64)
    left, right = Indexed(data, starts[0], *tables[:2]), Indexed(other, starts[1], *tables[2:])
    start, result = values(13, batches, rows, 1), np.empty((batches, rows, columns), np.float32)
    plan = Reduction.for_level(2, FP16, chunk=7)
    addresses = [table.ctypes.data for table in tables]
    run_plan(
        host_device,
        plan_product(
            replace(plan, operand=FP16, out=FP16), Arrays((batches,), (rows, length, columns),
            Matrix(data.ctypes.data, FLOAT32, 0, 0, (150,), addresses[0], addresses[1]),
            Matrix(other.ctypes.data, FLOAT32, 0, 0, (0,), addresses[2], addresses[3]),
            matrix(result, (batches,)), matrix(np.broadcast_to(start, result.shape), (batches,))), tile=32,
        ),
    )  # fmt: skip
    assert_equal_bits(result, indexed_values(left, right, operand=FP16, reduction=plan, initial=start, out=FP16))


def _as_elements(given: Values, memory: int) -> NDArray[np.generic]:
    return given if memory == FLOAT32 else golden.encode(given, FP16 if memory == FLOAT16 else BF16)


@pytest.mark.parametrize("memory", [FLOAT32, FLOAT16, BFLOAT16])
def test_elements_of_sixteen_bits_are_read_and_written_as_golden_has_them(host_device: HostDevice, memory: int) -> None:
    special = np.array([[np.nan, np.inf, -np.inf, 1e-7, -1e-40, 3e38, -0.0, 65520]], np.float32)
    a, b, start = np.vstack([values(14, 8, 8), special]), values(15, 8, 33), values(16, 9, 33)
    elements = [_as_elements(each, memory) for each in (a, b, start)]
    held = [golden.decode(each, FP16 if memory == FLOAT16 else BF16) if memory else each for each in elements]
    for operand in (FP16, BF16, CBFLOAT16):
        result = np.zeros((9, 33), elements[0].dtype)
        places = [_place(each, memory) for each in (*elements, result)]
        plan = Reduction.for_level(1, operand)
        whole = replace(plan, operand=operand, out=operand)
        run_plan(
            host_device,
            plan_product(
                whole,
                Arrays((), (9, 8, 33), places[0], places[1], places[3], places[2]),
                initial_format=operand,
                tile=32,
            ),
        )
        initial = golden.quantize(held[2], operand)
        expected = golden.matmul_values(*held[:2], operand=operand, reduction=plan, initial=initial, out=operand)
        assert np.array_equal(result.view(np.uint8), _as_elements(expected, memory).view(np.uint8))


def _place(elements: NDArray[np.generic], memory: int) -> Matrix:
    return Matrix(elements.ctypes.data, memory, elements.shape[-1], 1)


def test_parts_of_a_batch_have_the_random_bits_of_the_whole(host_device: HostDevice) -> None:
    a, b = values(17, 4, 5, 20), values(18, 4, 20, 3)
    modes = {"rounding": "stochastic", "out_rounding": "stochastic", "seed": 3}
    whole = golden.reduction.reduction_of(reduction=WHOLE, **modes)
    result = np.empty((4, 5, 3), np.float32)
    for first in (0, 2):
        part = [matrix(each[first : first + 2], (2,)) for each in (a, b, result)]
        run_plan(host_device, plan_product(whole, Arrays((2,), (5, 20, 3), *part), tile=32, first_index=first * 5 * 3))
    assert_equal_bits(result, golden.matmul_values(a, b, operand=CBFLOAT16, reduction=PLAN, out=CBFLOAT16, **modes))


def test_elements_far_apart_are_found(host_device: HostDevice) -> None:
    """Offsets beyond 2^31 elements: of rows, of matrices and of results. Only touched pages take memory."""
    far, size = 2**31 + 3, 4 * 2**31
    # MAP_NORESERVE, which Python names from 3.13 on.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0x4000 if sys.platform == "linux" else 0)
    with contextlib.closing(mmap.mmap(-1, 4 * size, flags=flags)) as memory:
        data = np.frombuffer(memory, np.float32)
        a, b = (np.lib.stride_tricks.as_strided(data[i:], (2, 2, 2), (8 * far, 4 * far, 12)) for i in (0, 1))
        result = np.lib.stride_tricks.as_strided(data[20:], (2, 2, 2), (4 * far, 8 * far, 40))
        a[...], b[...] = values(19, 2, 2, 2), values(20, 2, 2, 2)
        arrays = Arrays((2,), (2, 2, 2), *(matrix(each, (2,)) for each in (a, b, result)))
        run_plan(host_device, plan_product(WHOLE, arrays))
        expected = golden.matmul_values(a.copy(), b.copy(), operand=CBFLOAT16, reduction=PLAN, out=CBFLOAT16)
        assert_equal_bits(result.copy(), expected)
        del data, a, b, result


@pytest.mark.parametrize(
    ("batches", "m", "n", "tile"), [(1, 4096, 4096, 128), (1, 704, 704, 64), (1, 256, 256, 32), (96, 1024, 1024, 128)]
)
def test_tiles_are_as_large_as_leaves_no_processor_idle(batches: int, m: int, n: int, tile: int) -> None:
    steps = Steps(Rounding.NEAREST_EVEN, "scaled", "single")
    assert choose_tile(batches, m, n, steps, 132) == tile
    assert choose_tile(batches, m, n, Steps(Rounding.STOCHASTIC, "scaled", "single"), 132) <= 64


def test_more_tiles_than_blocks_of_a_launch_are_refused_with_advice() -> None:
    operand = Matrix(0, FLOAT32, 1, 1, (1,))
    with pytest.raises(ValueError, match="split the batch"):
        plan_product(WHOLE, Arrays((2**31,), (1, 1, 1), operand, operand, operand))


def test_more_products_than_a_card_counts_are_refused() -> None:
    operand = Matrix(0, FLOAT32, 1, 1, ())
    with pytest.raises(ValueError, match="got 2147483648 products for each result, must be at most 2147483616"):
        plan_product(WHOLE, Arrays((), (1, 2**31, 1), operand, operand, operand))


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
    run(device, Launch(COMMON, "pack", 2 * panels * -(-stages // 2), bytes(fields)))
    return to, largest


def expected(x: Values, fmt: FloatFormat, exponent: int, width: int) -> tuple[Values, Values]:
    lanes, k = x.shape[1:]
    panels, stages = -(-lanes // width), -(-k // STAGE)
    whole = np.zeros((2, panels * width, stages * STAGE), np.float32)
    whole[:, :lanes, :k] = np.ldexp(golden.quantize(x, fmt), exponent)
    shaped = whole.reshape(2, panels, width, stages * STAGE).swapaxes(2, 3)
    magnitudes = np.abs(shaped).reshape(2, panels, stages, STAGE * width)
    return np.ascontiguousarray(shaped), magnitudes.max(-1)


def check_panels(device: HostDevice, lanes: int, k: int, width: int) -> None:
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
            check_panels(host_device, lanes, k, width)
    finally:
        host_device.order = before
