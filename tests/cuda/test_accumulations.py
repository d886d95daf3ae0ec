"""Sums of other machines by the kernel for cards, run on this machine, are golden's, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, FusedSum, Rounding
from golden.accumulator import Accumulator
from golden.arrays.operands import carried_values
from golden.cuda.accumulations import plan_accumulation
from golden.cuda.plan import Arrays
from golden.formats import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2
from lab.suites.accumulators.faults import faults_of
from tests.cuda.host import HostDevice
from tests.cuda.products import Values, assert_equal_bits, matrix, run, special_values, values

VOLTA = golden.accumulators["nvidia_volta"]
#: Machines unlike the presets: an order, a stage that is cut, unrounded sums, promotion of a flushed total.
OWN = {
    "ordered": replace(VOLTA, block=4, order=(2, 0, 3, 1), join=FusedSum(5, 11, Rounding.TO_ODD, Rounding.TO_ODD)),
    "staged": Accumulator(
        16, 8, FusedSum(3, 20, Rounding.DOWN, Rounding.TOWARD_ZERO), VOLTA.provenance,
        stages=(FusedSum(2, 9, rounding=None, interleaved=True), FusedSum(2, 30)), total_fraction_bits=12,
        total_reach=9, zero_exponent=-30, products_overflow=True,
    ),
    "promoted": replace(golden.accumulators["amd_cdna2"], promote_every=8),
}  # fmt: skip
RULES = {**golden.accumulators, **OWN}


def operands_of(rule: Accumulator) -> tuple[FloatFormat, ...]:
    return (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1FN) if rule.operand_bits == 8 else (FP16, BF16, CBFLOAT16)


def multiply(
    device: HostDevice,
    a: Values,
    b: Values,
    rule: Accumulator,
    operand: FloatFormat,
    out: FloatFormat = FP32,
    initial: Values | None = None,
    **modes: Any,
) -> Values:
    """Multiply as `golden.matmul_values` does, by the kernels."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    (m, k), n = a.shape[-2:], b.shape[-1]
    whole = golden.reduction.reduction_of(operand=operand, reduction=rule, out=out, **modes)
    x, y = carried_values(operand, a, b)
    result = np.full((*batch, m, n), -7, np.float32)
    start = None if initial is None else matrix(np.broadcast_to(initial, result.shape), batch)
    places = [matrix(each, batch) for each in (x, y, result)]
    plan = plan_accumulation(whole, Arrays(batch, (m, k, n), *places, start))
    memory = np.full(plan.workspace_bytes + 256, 0xFF, np.uint8)
    for launch in plan.launches(-(-memory.ctypes.data // 256) * 256):
        run(device, launch)
    return result


def check(device: HostDevice, a: Values, b: Values, rule: Accumulator, operand: FloatFormat, **options: Any) -> None:
    """Multiply by the kernels and by golden, and compare; initial values are of the results' format."""
    found = multiply(device, a, b, rule, operand, **options)
    expected = golden.matmul_values(a, b, operand=operand, reduction=rule, **{"out": FP32} | options)
    assert_equal_bits(found, expected)


@pytest.mark.turns
@pytest.mark.parametrize("name", RULES)
def test_sums_of_every_machine_are_golden_s(host_device: HostDevice, name: str) -> None:
    for seed, operand in enumerate(operands_of(RULES[name])):
        a, b = (special_values(2 * seed + each, operand, *shape) for each, shape in enumerate(((9, 85), (85, 34))))
        start = values(seed, 34)
        start[:4] = np.inf, -0.0, 1e-40, -3e38
        check(host_device, a, b, RULES[name], operand, initial=start)
        check(host_device, values(seed, 9, 85, spread=2), values(seed + 9, 85, 34, spread=2), RULES[name], operand)


@pytest.mark.parametrize("name", RULES)
def test_sums_of_subnormal_factors_and_totals_are_golden_s(host_device: HostDevice, name: str) -> None:
    for operand in operands_of(RULES[name])[:2]:
        tiny = np.random.default_rng(1).integers(1, 1 << operand.fraction_bits, (3, 40))
        a = np.ldexp(tiny, operand.emin - operand.fraction_bits).astype(np.float32)
        b = values(2, 40, 5, spread=1)
        b[20:] = golden.quantize(b[20:] * np.float32(2.0**-120), FP32)
        start = np.array([1e-40, -1e-40, -0.0, 1e-44, 1], np.float32)
        check(host_device, a, b, RULES[name], operand, initial=start)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 2), (0, 4, 3), (40, 16, 33), (33, 17, 64), (7, 33, 65)])
def test_sums_of_any_shape_are_golden_s(host_device: HostDevice, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    for rule in (VOLTA, OWN["promoted"]):
        start = np.where(np.arange(n) % 2, values(3, n, spread=2), np.float32(-0.0))
        check(host_device, values(1, m, k), values(2, k, n), rule, FP16, initial=golden.quantize(start, BF16), out=BF16)


def test_sums_of_batches_and_views_are_golden_s(host_device: HostDevice) -> None:
    a, b = values(1, 3, 1, 9, 20)[:, :, ::-2], np.swapaxes(values(2, 2, 7, 20), 1, 2)
    check(host_device, a, b, golden.accumulators["nvidia_hopper"], BF16, initial=values(3, 3, 2, 5, 1), out=FP32)


@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_sums_converted_in_a_mode_are_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    options = {"out_rounding": mode, "seed": 2**40 + 5, "call": 6}
    check(host_device, values(1, 2, 5, 20), values(2, 2, 20, 7), VOLTA, FP16, out=BF16, **options)


@pytest.mark.parametrize("name", golden.accumulators)
def test_sums_of_machines_that_differ_in_one_property_are_golden_s(host_device: HostDevice, name: str) -> None:
    operand = operands_of(RULES[name])[0]
    a, b = special_values(1, operand, 9, 85), special_values(2, operand, 85, 34)
    for _, changed in faults_of(RULES[name]):
        check(host_device, a, b, changed, operand)
