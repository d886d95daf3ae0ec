"""Counts of products by the kernels for cards, run on this machine, equal golden's for every result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Reduction, Rounding
from golden.formats import NARROW_FORMATS
from golden.torch.instruments.observe.tallies import Counted, Histogram
from golden.torch.products.gpu import devices
from golden.torch.products.gpu.counting import add_exponents, counted_product, is_counted
from tests.cuda.counts import NAMES, assert_equal_counts, check, in_form
from tests.cuda.host import ORDERS, HostDevice
from tests.cuda.products import assert_equal_bits, reduction_of, special_values, values
from tests.cuda.test_products import FORMATS
from tests.golden.kernels.operands import (
    KINDS,
    beyond_double,
    codes,
    grown_by_rounding,
    late_overflow,
    near_smallest_normal,
    specials,
    tiny_by_the_last_digit,
)

SUMMING = replace(Reduction.for_level(1, CBFLOAT16, chunk=7), operand=CBFLOAT16, out=CBFLOAT16)


@pytest.fixture
def card(host_device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    """The kernels on this machine, in the place of card 0."""
    monkeypatch.setitem(devices.cards, 0, host_device)
    return host_device


# --- all formats, levels, chunks and modes ---


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fmt", [*FORMATS, FP32], ids=str)
def test_counts_of_every_format_and_level_are_golden_s(host_device: HostDevice, fmt: FloatFormat, level: int) -> None:
    spread = max(1, min(12, fmt.emax // 2))
    a, b, start = values(1, 7, 70, spread=spread), values(2, 70, 13, spread=spread), values(3, 13)
    check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, 33))
    check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, 16), initial=start, out=fmt)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, FloatFormat("tiny", 3, 2, 2)], ids=str)
def test_counts_of_any_codes_are_golden_s(host_device: HostDevice, fmt: FloatFormat, level: int) -> None:
    """Infinities, NaNs, zeros of both signs, subnormals, sums beyond the largest value, values between two codes."""
    a, b = special_values(level, fmt, 17, 40), special_values(level + 10, fmt, 40, 19)
    start = special_values(level + 20, fmt, 19)
    for chunk in (1, 4, 33, None):
        check(host_device, a, b, operand=fmt, reduction=reduction_of(fmt, level, chunk), initial=start)


@pytest.mark.parametrize("mode", [Rounding.NEAREST_EVEN, Rounding.DOWN, Rounding.UP, Rounding.TO_ODD], ids=str)
def test_counts_of_all_kinds_of_sums_are_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    """Short sums, so that zeros of both signs, infinities and NaNs are results, too."""
    random, found = np.random.default_rng(11), Counted().counts
    for fmt in (CBFLOAT16, FP16):
        plans = Reduction(fmt, 7, fmt), Reduction(fmt, 2, FP32), Reduction(FP32, None, FP32)
        each = golden.decode(specials(fmt), fmt).astype(np.float32)
        for plan in plans:  # each with each
            found += check(host_device, each[:, None], each[None], operand=fmt, reduction=plan, rounding=mode).sum()
        for kind in KINDS:
            for length in (1, 2, 20):
                shapes = (9, length), (length, 13)
                a, b = (golden.decode(codes(kind, fmt, shape, random), fmt).astype(np.float32) for shape in shapes)
                for plan in plans:
                    found += check(host_device, a, b, operand=fmt, reduction=plan, rounding=mode).sum()
    assert all(getattr(found.products, event) for event in NAMES)


@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16], ids=str)
def test_sum_rounded_to_the_largest_value_counts_no_overflow(host_device: HostDevice, fmt: FloatFormat) -> None:
    """The largest value, and a quarter, a half and a whole of its ulp beyond it, of either sign."""
    largest = np.float32(golden.decode(fmt.max_finite, fmt))
    ulp = np.float32(2.0 ** (fmt.emax - fmt.fraction_bits))
    a = np.array([[largest, part * ulp] for part in (-0.5, -0.25, 0.25, 0.5, 0.75, 1)], np.float32)
    b = np.array([[1, -1], [1, -1]], np.float32)
    plan = Reduction(fmt, None, fmt)
    counts = check(host_device, a[np.isfinite(a).all(-1)], b, operand=fmt, reduction=plan)
    assert counts.products.inexact[2, 0] == 1
    assert counts.products.overflow[:, 0].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16], ids=str)
def test_counts_of_sums_that_overflow_late_are_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    for pair in (late_overflow(fmt), grown_by_rounding(fmt), beyond_double(fmt)):
        a, b = (golden.decode(each, fmt).astype(np.float32) for each in pair)
        for plan in (Reduction(fmt, None, fmt), Reduction(fmt, 300, FP32), Reduction(FP32, None, FP32)):
            check(host_device, a, b, operand=fmt, reduction=plan)


@pytest.mark.parametrize("fmt", [CBFLOAT16, FP16, BF16, FP32], ids=str)
def test_counts_of_sums_near_the_smallest_normal_value_are_golden_s(host_device: HostDevice, fmt: FloatFormat) -> None:
    for pair in (near_smallest_normal(fmt), *tiny_by_the_last_digit(fmt)):
        a, b = (golden.decode(each, fmt).astype(np.float32) for each in pair)
        for plan in (Reduction(fmt, None, fmt), Reduction(FP32, None, FP32)):
            counts = check(host_device, a, b, operand=fmt, reduction=plan)
            assert counts.products.underflow.any() == (plan.inner == fmt)


@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_counts_in_every_mode_are_golden_s(host_device: HostDevice, mode: Rounding) -> None:
    for fmt, level in [(FP16, 2), (CBFLOAT16, 1), (BF16, 0), (BF16, 2)]:
        a, b = special_values(level, fmt, 9, 40), special_values(level + 10, fmt, 40, 15)
        start = special_values(level + 20, fmt, 9, 15)
        for chunk in (7, None):
            options: dict[str, Any] = {"operand": fmt, "reduction": reduction_of(fmt, level, chunk), "rounding": mode}
            check(host_device, a, b, initial=start, out_rounding=mode, out=fmt, seed=3, call=5, **options)
            check(host_device, np.stack([a, -a]), b, seed=1 << 40, random_bits=3, **options)


@pytest.mark.parametrize("operand", NARROW_FORMATS, ids=str)
def test_counts_of_narrow_operands_are_golden_s(host_device: HostDevice, operand: FloatFormat) -> None:
    a, b = values(13, 9, 40, spread=6), values(14, 40, 11, spread=6)
    for level in (0, 1, 2):
        check(host_device, a, b, operand=operand, reduction=Reduction.for_level(level, operand, inner=FP16, chunk=12))


@pytest.mark.parametrize(
    "plan",
    [Reduction(FP32, 20, FP32), Reduction(FP32, 20, CBFLOAT16), Reduction(BF16, 7, FP16), Reduction(FP16, None, BF16)],
    ids=lambda plan: f"{plan.inner}-{plan.chunk}-{plan.outer}",
)
def test_counts_of_any_two_formats_are_golden_s(host_device: HostDevice, plan: Reduction) -> None:
    a, b, start = values(15, 9, 50), values(16, 50, 8), values(17, 9, 8)
    check(host_device, a, b, operand=CBFLOAT16, reduction=plan, initial=start, out=BF16)


# --- shapes, strides, memories ---


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 2), (0, 4, 5), (3, 4, 0), (2, 1, 300), (300, 3, 1), (1, 600, 2)])
def test_counts_of_any_shape_are_golden_s(host_device: HostDevice, shape: tuple[int, int, int]) -> None:
    rows, length, columns = shape
    a, b, start = values(1, rows, length), values(2, length, columns), values(3, rows, columns)
    for level in (0, 1, 2):
        check(host_device, a, b, operand=FP16, reduction=reduction_of(FP16, level, 9), initial=start)


def test_counts_of_batches_are_golden_s(host_device: HostDevice) -> None:
    plan = reduction_of(CBFLOAT16, 1, 3)
    for batch_a, batch_b in [((2,), ()), ((2, 1), (3,)), ((), (2, 3)), ((2, 1, 2, 1, 3), (1, 2, 1, 2, 1))]:
        a, b = values(1, *batch_a, 3, 7), values(2, *batch_b, 7, 4)
        check(host_device, a, b, operand=CBFLOAT16, reduction=plan, initial=values(3, 3, 4))


def test_counts_of_strided_halves_are_golden_s(host_device: HostDevice) -> None:
    generator = torch.Generator().manual_seed(1)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        a, b = (torch.randn(shape, generator=generator).to(dtype) for shape in ((2, 9, 21), (2, 8, 21)))
        check(host_device, a[:, ::2, 1:], b.mT[:, 1:], operand=BF16, reduction=reduction_of(BF16, 2, 5))
        check(host_device, a[:1, :1].expand(2, 5, 21), b.mT, operand=BF16, reduction=reduction_of(BF16, 1, 5))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_counts_in_any_order_of_threads_are_golden_s(card: HostDevice, order: tuple[int, int, int]) -> None:
    before, card.order = card.order, order
    try:
        check(card, values(1, 33, 20), values(2, 20, 40), operand=FP16, reduction=reduction_of(FP16, 2, 6))
    finally:
        card.order = before


# --- forms, rows, sums over calls ---


def test_counts_in_every_form_are_those_of_each_result(card: HostDevice) -> None:
    a, b = special_values(1, CBFLOAT16, 2, 30, 20), special_values(2, CBFLOAT16, 20, 19)
    options: dict[str, Any] = {"operand": CBFLOAT16, "reduction": SUMMING}
    wanted = check(card, a, b, **options)
    for form in (True, "rows", "sum"):
        _, counted = counted_product(torch.from_numpy(a), torch.from_numpy(b), None, SUMMING, counts=form)
        assert_equal_counts(counted.counts(), in_form(wanted, form))


@pytest.mark.parametrize("form", [True, "rows", "sum"], ids=str)
def test_counts_of_some_rows_are_those_of_golden_s_rows(card: HostDevice, form: bool | str) -> None:
    a, b = special_values(1, FP16, 2, 30, 20), special_values(2, FP16, 20, 19)
    for mode in (Rounding.NEAREST_EVEN, Rounding.STOCHASTIC):
        modes: dict[str, Any] = {"rounding": mode, "seed": 4}
        plan = reduction_of(FP16, 2, 7)
        summing = replace(plan, operand=FP16, out=FP16, rounding=mode, random=golden.Randomness(seed=4))
        rows = [0, 3, 4, 29]
        found, counted = counted_product(
            torch.from_numpy(a), torch.from_numpy(b), None, summing, counts=form, counted_rows=torch.tensor(rows)
        )
        expected, counts = golden.matmul_values(
            a, b, operand=FP16, reduction=plan, counts=form, counted_rows=rows, **modes
        )
        assert_equal_bits(found[:, rows].numpy(), expected[:, rows])
        assert_equal_counts(counted.counts(), counts)


def test_counts_are_added_to_those_of_other_calls(card: HostDevice) -> None:
    pairs = [(values(seed, 9, 30), values(seed + 10, 30, 8)) for seed in range(3)]
    numbers = torch.zeros(11, dtype=torch.int64)
    wanted = None
    for a, b in pairs:
        counted_product(torch.from_numpy(a), torch.from_numpy(b), None, SUMMING, numbers=numbers)
        _, counts = golden.matmul_values(a, b, reduction=SUMMING, counts="sum")
        wanted = counts if wanted is None else wanted + counts
    _, last = counted_product(torch.zeros(0, 1), torch.zeros(1, 1), None, SUMMING, numbers=numbers)
    assert wanted is not None
    found = last._replace(products=wanted.products.steps, promotions=wanted.promotions.steps).counts()
    assert_equal_counts(found, wanted)


def test_product_that_is_not_wanted_counts_and_stores_nothing(card: HostDevice) -> None:
    a, b, reference = torch.ones(4, 40), torch.ones(40, 3) / 3, torch.full((4, 3), -7.0)
    for wanted in (0, 1):
        given = {"reference": reference, "only_if": torch.tensor([wanted])}
        _, counted = counted_product(a, b, None, SUMMING, **given)
        assert bool(counted.numbers.any()) == bool(wanted)
        assert bool((reference == -7).all()) != bool(wanted)


@pytest.mark.parametrize("operand", [CBFLOAT16, *NARROW_FORMATS[:1]], ids=str)
def test_reference_is_a_chain_of_the_values_as_they_are_and_then_the_initial_value(
    card: HostDevice, operand: FloatFormat
) -> None:
    a, b, start = values(1, 2, 5, 60), values(2, 60, 7), values(3, 2, 5, 7)
    for initial in (None, start):
        reference = torch.empty(2, 5, 7)
        given = (None if each is None else torch.from_numpy(each) for each in (a, b, initial))
        summing = replace(Reduction.for_level(1, operand, inner=FP16), operand=operand, out=FP16)
        counted_product(*given, summing, reference=reference)
        chain = golden.matmul_values(a, b, operand=FP32, reduction=Reduction(FP32, None, FP32))
        assert_equal_bits(reference.numpy(), chain if initial is None else chain + initial)


def test_accumulators_of_other_machines_are_not_counted() -> None:
    assert is_counted(SUMMING, 100)
    other = next(iter(golden.accumulators.values()))
    assert not is_counted(Reduction(accumulator=other), 100)


# --- histograms ---


def fields_of(x: torch.Tensor) -> Histogram:
    """Return the histogram of the host."""
    histogram = Histogram(FP16)
    histogram.add(x.float().numpy(force=True))
    return histogram


def on_the_card(x: torch.Tensor) -> Histogram:
    """Return the histogram of the kernels."""
    slots = torch.zeros(258, dtype=torch.int64)
    add_exponents(x, slots)
    histogram = Histogram(FP16)
    histogram.slots += slots.numpy()
    return histogram


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_exponents_of_every_code_are_those_of_the_host(card: HostDevice, dtype: torch.dtype) -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int16)
    codes = bits.view(dtype) if dtype.itemsize == 2 else (bits.int() << 16 | (bits.int() & 0xFFFF)).view(torch.float32)
    x = codes.to(dtype)
    assert on_the_card(x).record() == fields_of(x).record()


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 16383, 16384, 16385, 40000])
def test_exponents_of_any_count_are_those_of_the_host(card: HostDevice, count: int) -> None:
    x = torch.randn(count, generator=torch.Generator().manual_seed(count))
    assert on_the_card(x).record() == fields_of(x).record()


def test_exponents_of_strided_values_are_those_of_the_host(card: HostDevice) -> None:
    x = torch.randn(30, 40, generator=torch.Generator().manual_seed(1))
    for view in (x.T, x[::3, 1:7], x[:1].expand(9, 40), torch._neg_view(x)):
        assert on_the_card(view).record() == fields_of(view).record()
