"""The kernels' instructions, run one after the other, give golden's bits and do nothing that no kernel may do."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

import golden
from golden import BF16, CBFLOAT16, FP16, FloatFormat, Rounding
from golden.arrays.requests import last_rounding
from golden.reduction import Reduction
from golden.rounding import Randomness
from golden.torch.products.gpu.checking import check_product
from tests.cuda import checks, counts, test_arrays, test_checking, test_products
from tests.cuda.products import assert_equal_bits, check, reduction_of, special_values, values
from tests.cuda.ptx.device import PtxDevice

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'cbfloat[cuda]'")

Check = Callable[[PtxDevice], None]

#: From 8.0 on copies into shared memory are not waited for, and bfloat16 has fused steps.
OLDEST, USUAL, NEWEST = 75, 80, 120


@pytest.fixture(scope="module")
def devices() -> dict[int, PtxDevice]:
    """A machine for the instructions of each architecture; compiled kernels stay."""
    return {architecture: PtxDevice(architecture) for architecture in (OLDEST, USUAL, NEWEST)}


def some_rounding(device: PtxDevice) -> None:
    for seed, mode in enumerate(Rounding):
        modes = Reduction(out_rounding=mode, random=Randomness(13, seed=99, call=3))
        for fmt in (CBFLOAT16, BF16, golden.FLOAT8_E4M3FN, FloatFormat("fine", 5, 22, 15)):
            x = np.concatenate([test_arrays.any_floats(seed, 300), test_arrays.edges_of(FP16)[seed::977]])
            expected = golden.quantize(x, fmt, **last_rounding(x.shape, modes))
            assert_equal_bits(test_arrays.rounded(device, x, fmt, modes=modes), expected)


def some_blocks(device: PtxDevice) -> None:
    test_arrays.check(device, golden.FLOAT8_E4M3FN, ((9, 45, 32), (2, 2100, 5000)))


def some_softmax(device: PtxDevice) -> None:
    for rows, length in [(65, 7), (3, 300)]:
        x = values(rows, rows, length, spread=3)
        assert_equal_bits(test_arrays.softmax(device, x, FP16), test_arrays.expected_softmax(x, FP16))


def large_tile(device: PtxDevice) -> None:
    plan, start = reduction_of(CBFLOAT16, 1, 10), values(3, 70)
    check(device, values(1, 70, 50), values(2, 50, 70), operand=CBFLOAT16, reduction=plan, tile=128, initial=start)


def brains(device: PtxDevice) -> None:
    for each in (special_values, lambda seed, fmt, *shape: values(seed, *shape)):
        a, b = each(1, BF16, 9, 30), each(2, BF16, 30, 33)
        check(device, a, b, operand=BF16, reduction=reduction_of(BF16, 2, 6))


def near_ties(device: PtxDevice) -> None:
    """Sums beside the middle of two values that 24 bits would hold as the middle: rounded twice they are others."""
    whole = 1 << CBFLOAT16.fraction_bits
    significands = range(whole, 2 * whole)
    pairs = [(a, b) for a in significands for b in significands if 0 < abs(2 * whole**2 - a * b) < 64][::8]
    sums = [sign * c for c in (1, 1 + 1 / whole, 1.5) for sign in (1, -1)]
    cases = [(c, sign * a / whole, b / (4 * whole**2)) for a, b in pairs for c in sums for sign in (1, -1)]
    c, a, b = (np.array(each, np.float32) for each in zip(*cases, strict=True))
    x, y = np.stack([c, a], 1)[:, np.newaxis], np.stack([np.ones_like(b), b], 1)[..., np.newaxis]
    check(device, x, y, operand=CBFLOAT16, reduction=reduction_of(CBFLOAT16, 1, 32))


#: Every kernel, and what depends on the architecture on each.
SMALL = [checks.product, large_tile, checks.native, brains]
CHECKS = [
    *((each, architecture) for each in SMALL for architecture in (OLDEST, USUAL, NEWEST)),
    *((each, USUAL) for each in (
        checks.batches, checks.many_tiles, checks.specials, checks.slow_overflow, checks.stochastic, checks.panels,
        checks.counts, checks.machine_rows, checks.machine_of_subnormals, checks.machine_of_no_products,
        checks.close_quotients, near_ties, some_rounding, some_blocks, some_softmax,
    )),
]  # fmt: skip
QUICK = (checks.product, checks.native, checks.panels)


@pytest.mark.parametrize(
    ("wanted", "architecture"),
    [pytest.param(*each, marks=() if each[0] in QUICK else pytest.mark.long) for each in CHECKS],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_kernels_by_their_instructions_are_golden_s(
    devices: dict[int, PtxDevice], wanted: Check, architecture: int
) -> None:
    wanted(devices[architecture])


@pytest.mark.long
@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_products_of_any_codes_by_their_instructions_are_golden_s_in_every_mode(
    devices: dict[int, PtxDevice], mode: Rounding
) -> None:
    test_products.test_product_of_any_codes_in_a_mode_is_golden_s(devices[USUAL], mode)
    test_products.test_product_in_doubles_in_a_mode_is_golden_s(devices[USUAL], mode)


@pytest.mark.parametrize("mode", [Rounding.NEAREST_AWAY, Rounding.STOCHASTIC], ids=str)
def test_nan_of_any_bits_in_a_step_of_doubles_stays_a_nan(devices: dict[int, PtxDevice], mode: Rounding) -> None:
    """Rounding carried out of a negative NaN: of 1 * -NaN and 0 * 0 came 0x00000000, must be 0x7FC00000."""
    a = np.array([[np.nan, -np.nan, 1, 0, np.inf, 0, 1], [np.inf, 0, 0, 0, -np.nan, 1, 1]], np.float32)
    b = np.tile(np.array([[1, -1, 0, -np.inf]], np.float32), (7, 9))
    for level, operand in [(0, BF16), (1, CBFLOAT16), (2, FP16)]:
        check(devices[USUAL], a, b, operand=operand, reduction=reduction_of(operand, level, 5), rounding=mode)


@pytest.mark.long
@pytest.mark.parametrize("mode", list(Rounding), ids=str)
def test_counts_by_their_instructions_are_golden_s_in_every_mode(devices: dict[int, PtxDevice], mode: Rounding) -> None:
    a, b, start = special_values(1, FP16, 9, 40), special_values(2, FP16, 40, 33), special_values(3, FP16, 33)
    for level, operand in [(0, BF16), (2, FP16)]:
        plan = reduction_of(operand, level, 15)
        counts.check(devices[USUAL], a, b, operand=operand, reduction=plan, rounding=mode, initial=start, out=FP16)


# --- faults that are put into the instructions ---


def changed(kernel: str, what: str, instead: str, number: int | None = None) -> Callable[[str], str]:
    """Return a function that replaces one or all of the matching instructions of a kernel."""

    def change(text: str) -> str:
        if f".entry {kernel}(" not in text:
            return text
        before, name, after = text.partition(f".entry {kernel}(")
        body, end, rest = after.partition("\n}\n")
        places = list(re.finditer(what, body))
        for place in reversed(places) if number is None else [places[number]]:
            body = body[: place.start()] + place.expand(instead) + body[place.end() :]
        assert places
        return before + name + body + end + rest

    return change


#: The first and the last necessary barrier of each kernel: between two uses of shared memory.
BARRIERS = {
    ("multiply_32", checks.product): (1, 9),
    ("multiply_128", large_tile): (1, 33),
    ("pack", checks.panels): (0, 2),
    ("round_blocks", some_blocks): (0, 0),
    ("softmax16", some_softmax): (0, 4),
}
# In the largest tile the rows of a thread's results go through shared memory one after the other, all alike.
TRIED = [
    (*kernel, number)
    for kernel, (first, last) in BARRIERS.items()
    for number in range(first, last + 1)
    if kernel[0] != "multiply_128" or number % 5 < 2
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "wanted", "number"), TRIED, ids=lambda given: getattr(given, "__name__", str(given))
)
def test_barrier_that_is_missing_is_seen(kernel: str, wanted: Check, number: int) -> None:
    with pytest.raises(AssertionError, match=f"{kernel}: .*without a barrier"):
        wanted(PtxDevice(USUAL, changed(kernel, r"bar\.sync\s+0;", "", number)))


@pytest.mark.long
@pytest.mark.parametrize(("kernel", "wanted"), BARRIERS, ids=lambda given: getattr(given, "__name__", str(given)))
def test_barriers_of_a_kernel_are_those_that_have_to_be_and_the_outer_ones(kernel: str, wanted: Check) -> None:
    seen = set()

    def count(text: str) -> str:
        if f".entry {kernel}(" in text:
            body = text.partition(f".entry {kernel}(")[2].partition("\n}\n")[0]
            seen.add(len(re.findall(r"bar\.sync\s+0;", body)))
        return text

    wanted(PtxDevice(USUAL, count))
    first, last = BARRIERS[kernel, wanted]
    assert seen == {last + 2}
    assert first in (0, 1)


OTHERS = {
    "a copy that is not waited for": ("multiply_32", r"cp\.async\.wait_all;", ""),
    "a stage that is copied elsewhere": (
        "multiply_32",
        r"(cp\.async\.cg\.shared\.global \[%r\d+\], \[%rd\d+)\]",
        r"\1+16]",
    ),
    "a step rounded up first": ("multiply_32", r"fma\.rm\.f32", "fma.rp.f32"),
    "a step rounded down again": ("multiply_32", r"fma\.rp\.f32", "fma.rm.f32"),
    "a second sum of odd ones": ("multiply_32", r"@is_even", "@!is_even"),
    "a result beside its place": ("multiply_32", r"(st\.global\.f32\s+\[%rd\d+)\]", r"\1+4]"),
    "a result that is not aligned": ("multiply_32", r"(st\.global\.f32\s+\[%rd\d+)\]", r"\1+2]"),
    "a row that is read elsewhere": (
        "multiply_32", r"(ld\.shared\.v2\.f32\s+\{[^}]*\}, \[%rd\d+)(\+\d+)?\]", r"\1+8192]"
    ),
    "a value of the operand beside its place": ("pack", r"(ld\.global\.f32\s+%f\d+, \[%rd\d+)\]", r"\1+4]"),
    "a panel that is not written": ("pack", r"st\.global\.f32[^;]*;", ""),
}  # fmt: skip


@pytest.mark.parametrize("fault", OTHERS)
def test_fault_in_the_instructions_is_seen(fault: str) -> None:
    kernel, what, instead = OTHERS[fault]
    wanted = checks.panels if kernel == "pack" else near_ties if "step" in fault or "sum" in fault else checks.product
    with pytest.raises(AssertionError):
        wanted(PtxDevice(USUAL, changed(kernel, what, instead)))


@pytest.mark.long
def test_card_that_rounds_a_step_up_first_fails_its_own_check() -> None:
    """Of the 102,400 outputs of its first use a few differ."""
    card = PtxDevice(USUAL, changed("multiply_64", r"fma\.rm\.f32", "fma.rp.f32"))
    with pytest.raises(RuntimeError, match="nearest_even-scaled-"):
        check_product(card, torch.device("cpu"), test_checking.CBFLOAT16)
