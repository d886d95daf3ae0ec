"""Small checks of every kernel for cards, each sure to see certain faults of `test_faults`."""

from __future__ import annotations

import numpy as np

from golden import CBFLOAT16, FLOAT8_E4M3FN, FP16
from tests.cuda import products, test_accumulations, test_arrays, test_layouts
from tests.cuda.host import HostDevice
from tests.cuda.products import reduction_of, special_values, values


def product(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 12), values(1, 9, 40), values(2, 40, 35)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, initial=values(3, 35))


def large_tile(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 70, 20), values(2, 20, 70)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, tile=128)


def many_tiles(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 340, 2), values(2, 2, 100)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan)


def batches(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 2, 1, 2, 5, 7), values(2, 3, 2, 7, 4)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, initial=values(3, 2, 3, 2, 5, 4))


def specials(device: HostDevice) -> None:
    plan, a, b = reduction_of(FP16, 2, 6), special_values(1, FP16, 9, 30), special_values(2, FP16, 30, 33)
    start = special_values(3, FP16, 33)
    products.check(device, a, b, operand=FP16, reduction=plan, initial=start, out=FP16, native=(False, False))


def slow_overflow(device: HostDevice) -> None:
    """A sum that is beyond the largest value only after many stages, and comes back: it stays infinite."""
    a, b = np.full((3, 200), 16, np.float32), np.full((200, 2), 32, np.float32)
    a[:, 150:] = -16
    products.check(device, a, b, operand=FP16, reduction=reduction_of(FP16, 2, None), native=(False, False))


def stochastic(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 2, 6), values(1, 2, 9, 30), values(2, 2, 30, 33)
    options = {"rounding": "stochastic", "out_rounding": "stochastic", "seed": 5, "call": 6}
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, out=CBFLOAT16, **options)


def native(device: HostDevice) -> None:
    plan, a, b = reduction_of(FP16, 1, 6), values(1, 9, 30), values(2, 30, 33)
    products.check(device, a, b, operand=FP16, reduction=plan)


def panels(device: HostDevice) -> None:
    test_layouts.check_panels(device, 33, 48, 32)


def rounding(device: HostDevice) -> None:
    for fmt in test_arrays.NARROW_FORMATS:
        test_arrays.test_rounding_around_every_code_is_golden_s(device, fmt)


def modes(device: HostDevice) -> None:
    for mode in test_arrays.Rounding:
        test_arrays.test_rounding_in_a_mode_is_golden_s(device, mode)


def steps(device: HostDevice) -> None:
    test_arrays.test_stochastic_rounding_at_a_step_is_golden_s(device, 1)


def counts(device: HostDevice) -> None:
    test_arrays.test_rounding_of_any_count_writes_nothing_else(device, 4097)


def blocks(device: HostDevice) -> None:
    test_arrays.test_blocks_whose_values_are_all_zero_or_not_numbers_are_golden_s(device)
    for element in (FLOAT8_E4M3FN, test_arrays.LOW, test_arrays.HIGH):
        test_arrays.check(device, element)


def machines(device: HostDevice) -> None:
    for name in ("staged", "promoted", "nvidia_hopper", "nvidia_hopper_into_fp16", "amd_cdna2"):
        test_accumulations.test_sums_of_every_machine_are_golden_s(device, name)


def machine_rows(device: HostDevice) -> None:
    test_accumulations.test_sums_of_any_shape_are_golden_s(device, (33, 17, 64))


def machine_of_subnormals(device: HostDevice) -> None:
    for name in ("nvidia_volta", "arm_bfdot"):
        test_accumulations.test_sums_of_subnormal_factors_and_totals_are_golden_s(device, name)


def machine_of_no_products(device: HostDevice) -> None:
    test_accumulations.test_sums_of_any_shape_are_golden_s(device, (3, 0, 2))


def softmax(device: HostDevice) -> None:
    for fmt in (FP16, CBFLOAT16):
        test_arrays.test_softmax_is_golden_s(device, fmt)
        test_arrays.test_softmax_with_specials_is_golden_s(device, fmt)


def close_quotients(device: HostDevice) -> None:
    test_arrays.test_softmax_of_quotients_that_floats_confuse_is_golden_s(device)
