"""The tests of the kernels for cards see faults: each fault is put into the source, and a check has to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from golden import CBFLOAT16, FLOAT8_E4M3FN, FP16
from tests.cuda import products, test_accumulations, test_arrays, test_blocks, test_packing
from tests.cuda.host import ORDERS, HostDevice, SwitchedDevice
from tests.cuda.products import reduction_of, special_values, values
from tests.golden.kernels.build import Change
from tests.shared import shared_folder

pytestmark = pytest.mark.long

Check = Callable[[HostDevice], None]


def _product(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 12), values(1, 9, 40), values(2, 40, 35)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, initial=values(3, 35))


def _large_tile(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 70, 20), values(2, 20, 70)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, tile=128)


def _many_tiles(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 340, 2), values(2, 2, 100)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan)


def _batches(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 1, 10), values(1, 2, 1, 2, 5, 7), values(2, 3, 2, 7, 4)
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, initial=values(3, 2, 3, 2, 5, 4))


def _specials(device: HostDevice) -> None:
    plan, a, b = reduction_of(FP16, 2, 6), special_values(1, FP16, 9, 30), special_values(2, FP16, 30, 33)
    start = special_values(3, FP16, 33)
    products.check(device, a, b, operand=FP16, reduction=plan, initial=start, out=FP16, native=(False, False))


def _slow_overflow(device: HostDevice) -> None:
    """A sum that is beyond the largest value only after many stages, and comes back: it stays infinite."""
    a, b = np.full((3, 200), 16, np.float32), np.full((200, 2), 32, np.float32)
    a[:, 150:] = -16
    products.check(device, a, b, operand=FP16, reduction=reduction_of(FP16, 2, None), native=(False, False))


def _stochastic(device: HostDevice) -> None:
    plan, a, b = reduction_of(CBFLOAT16, 2, 6), values(1, 2, 9, 30), values(2, 2, 30, 33)
    options = {"rounding": "stochastic", "out_rounding": "stochastic", "seed": 5, "call": 6}
    products.check(device, a, b, operand=CBFLOAT16, reduction=plan, out=CBFLOAT16, **options)


def _native(device: HostDevice) -> None:
    plan, a, b = reduction_of(FP16, 1, 6), values(1, 9, 30), values(2, 30, 33)
    products.check(device, a, b, operand=FP16, reduction=plan)


def _panels(device: HostDevice) -> None:
    test_packing.check(device, 33, 48, 32)


def _rounding(device: HostDevice) -> None:
    for fmt in test_arrays.NARROW_FORMATS:
        test_arrays.test_rounding_around_every_code_is_golden_s(device, fmt)


def _modes(device: HostDevice) -> None:
    for mode in test_arrays.Rounding:
        test_arrays.test_rounding_in_a_mode_is_golden_s(device, mode)


def _steps(device: HostDevice) -> None:
    test_arrays.test_stochastic_rounding_at_a_step_is_golden_s(device, 1)


def _counts(device: HostDevice) -> None:
    test_arrays.test_rounding_of_any_count_writes_nothing_else(device, 4097)


def _blocks(device: HostDevice) -> None:
    test_blocks.test_blocks_whose_values_are_all_zero_or_not_numbers_are_golden_s(device)
    for element in (FLOAT8_E4M3FN, test_blocks.LOW, test_blocks.HIGH):
        test_blocks.check(device, element)


def _machines(device: HostDevice) -> None:
    for name in ("staged", "promoted", "nvidia_hopper", "amd_cdna2"):
        test_accumulations.test_sums_of_every_machine_are_golden_s(device, name)


def _machine_rows(device: HostDevice) -> None:
    test_accumulations.test_sums_of_any_shape_are_golden_s(device, (33, 17, 64))


def _machine_of_subnormals(device: HostDevice) -> None:
    for name in ("nvidia_volta", "arm_bfdot"):
        test_accumulations.test_sums_of_subnormal_factors_and_totals_are_golden_s(device, name)


def _machine_of_no_products(device: HostDevice) -> None:
    test_accumulations.test_sums_of_any_shape_are_golden_s(device, (3, 0, 2))


def _softmax(device: HostDevice) -> None:
    for fmt in (FP16, CBFLOAT16):
        test_arrays.test_softmax_is_golden_s(device, fmt)
        test_arrays.test_softmax_with_specials_is_golden_s(device, fmt)


def _close_quotients(device: HostDevice) -> None:
    test_arrays.test_softmax_of_quotients_that_floats_confuse_is_golden_s(device)


def _fault(
    file: str, old: str, new: str, check: Check, before: str = "", after: str = ""
) -> tuple[tuple[Change, ...], Check]:
    return (Change(file, old, new, before, after),), check


LOADED = "load_value(source.memory, source.data, place)"
FAULTS = {
    "columns of a thread's groups": _fault(
        "place.h", "WARP_COLUMNS", "WARP_ROWS", _large_tile, before="column0 + j / GROUP * (GROUP * "
    ),
    "rows of a thread's groups": _fault(
        "place.h", "GROUP * WARP_ROWS", "GROUP", _large_tile, before=" + i / GROUP * (", after=") +"
    ),
    "columns of the last tiles": _fault("place.h", "rest % swath / height", "rest % swath / SWATH", _many_tiles),
    "the matrix of a batch": _fault("packing.h", "number /= lengths[axis];", "number /= lengths[AXES - 1];", _batches),
    "the last lane of an operand": _fault("packing.h", "packing.lanes", "packing.lanes - 1", _product, "lane < ", ")"),
    "the last product of an operand": _fault(
        "packing.h", "k0 + k < packing.k", "k0 + k < packing.k - 1", _product, after=" &&"
    ),
    "the last column of the results": _fault(
        "finish.h", "j >= product_.n", "j >= product_.n - 1", _product, after=") return;"
    ),
    "scales of an operand": _fault(
        "rounding.h", "return short_(x) * factor_;", "return short_(x) * (factor_ * 2);", _product
    ),
    "the largest of a stage": _fault(
        "packing.h", "magnitude > largest", "magnitude < largest", _panels, before="largest = "
    ),
    "a stage that is copied into memory in use": _fault(
        "gemm.h", "shared.stages.b[stage % 2]", "shared.stages.b[0]", _product, after=");"
    ),
    "a copy that nobody waits for": _fault(
        "gemm.h", "copies_arrive();", "", _product, before="thread);\n                "
    ),
    "the length of a chunk": _fault(
        "gemm.h",
        "product_.chunk",
        "product_.chunk + 1",
        _product,
        before="        state.left = ",
        after=";\n        state.chunk++;",
    ),
    "the end of the last chunk": _fault(
        "gemm.h", "product_.k", "product_.depth", _product, before="+ k == ", after="))"
    ),
    "partial sums that go on": _fault(
        "gemm.h",
        "state.sum[i][v] = Plain::load(zero);",
        "",
        _product,
        after="\n            }\n        }\n        state.left",
    ),
    "sums that overflow unseen": _fault("gemm.h", "return state.bound < product_.safe;", "return true;", _specials),
    "a bound that forgets": _fault(
        "gemm.h", "state.bound", "0.0f", _slow_overflow, before="state.bound = (", after=" + count"
    ),
    "the number of a promotion": _fault(
        "gemm.h", "FIRST_PROMOTION + state.chunk", "FIRST_PROMOTION + state.chunk + 1", _stochastic
    ),
    "the number of a step": _fault(
        "gemm.h", "words.step(number + static_cast<uint32_t>(k))", "words.step(number)", _stochastic
    ),
    "the index of a row": _fault(
        "finish.h", "static_cast<uint32_t>(i) * product.row_index", "static_cast<uint32_t>(i)", _stochastic
    ),
    "the second of a pair": _fault(
        "gemm.h", "state.total[i][v * COUNT + c]", "state.total[i][v * COUNT]", _native, after=";"
    ),
    "initial values of another column": _fault(
        "gemm.h", "initial.at(row, place)", "initial.at(row, place ^ 1)", _product
    ),
    "initial values that are not rounded": _fault("finish.h", f"outer_(given_({LOADED}))", LOADED, _specials),
    "ties": _fault("rounding.h", "(rest == half && (kept & 1) != 0)", "rest == half", _rounding),
    "beyond the largest value": _fault("rounding.h", "rounded > largest_", "rounded >= largest_", _rounding, "if ("),
    "a zero without a sign": _fault(
        "rounding.h", "rounded == 0 && specials_ == Specials::fnuz", "rounded == 0", _rounding
    ),
    "a mode": _fault("rounding.h", "return rest != 0 && negative;", "return negative;", _modes),
    "random bits": _fault("rounding.h", "(word >> (32 - random_bits_))", "(word >> (31 - random_bits_))", _modes),
    "the step of a rounding": _fault("elementwise.h", "given.step", "FINAL_CONVERSION", _steps, before="step_("),
    "neighbours": _fault("elementwise.h", "round(values[i][j], index + j)", "round(values[i][j], index)", _modes),
    "values beyond the count": _fault(
        "elementwise.h", "index < given.count", "index <= given.count", _counts, after=";"
    ),
    "the last product of another machine": _fault("accumulation.h", "k < count", "k + 1 < count", _machines, "x = "),
    "the rows of another machine's block": _fault(
        "accumulation.h", "block.number % PARTS * ACCUMULATION_ROWS", "block.number % PARTS", _machine_rows
    ),
    "initial totals that are promoted": _fault("accumulation.h", "rule.promote", "false", _machines, "total = "),
    "no products of another machine": _fault("accumulation.h", "!factors.count", "false", _machine_of_no_products),
    "terms that are cut down": _fault("one_lane.h", "std::floor(value.number)", "std::trunc(value.number)", _machines),
    "comparisons of doubles": _fault("one_lane.h", "x.number > y.number", "x.number < y.number", _machines),
    "exponents of subnormal factors": _fault(
        "accumulate_lanes.h", "field < rule.operand_emin", "false", _machine_of_subnormals, before="zero_exponent : "
    ),
    "subnormal factors that are kept": _fault(
        "accumulate_lanes.h", "std::fabs(value) < smallest", "false", _machine_of_subnormals
    ),
    "the least scale of a block": _fault("blocks.h", "scale < LEAST_SCALE", "false", _blocks),
    "the largest scale of a block": _fault("blocks.h", "scale > LARGEST_SCALE", "false", _blocks),
    "the exponent of a subnormal value": _fault("blocks.h", "149", "148", _blocks, before="- 127 - "),
    "an element beyond the largest": _fault("rounding.h", "saturates_", "false", _blocks, "return ", " || mode_"),
    "a block that is no number": _fault("blocks.h", "of_all < INFINITY_BITS", "of_all <= INFINITY_BITS", _blocks),
    "a block at the end of a row": _fault(
        "blocks.h", "given.length - column", "given.length - column - 1", _blocks, before="? "
    ),
    "a thread that does not know its neighbours": _fault("blocks.h", "i < lanes", "i + 1 < lanes", _blocks),
    "a largest value of a row": _fault(
        "softmax.h", "1", "2", _softmax, before="for (int i = ", after="; i < SOFTMAX_COLUMNS; i++)"
    ),
    "a row that is not summed to its end": _fault(
        "softmax.h", "i < columns", "i + 1 < columns", _softmax, after="; i++)"
    ),
    "quotients half way": _fault("softmax.h", "rest > 0 ? 1 : ~0u", "0", _close_quotients, after=";"),
}

CHECKS = sorted({check for _, check in FAULTS.values()}, key=lambda check: check.__name__)

NEXT_OF_PACKING = "    });\n    threads.each([&](PackingState &, int thread) {\n"
NEXT_OF_STATE = "            });\n            threads.each([&](State &, int thread) {\n"
NEXT_OF_SUM = """        });
        threads.each([&](SoftmaxState &state, int thread) {
            if (thread >= rows) return;
"""
LAST = "        shared.largest[thread] = largest;\n"

#: Two phases that run as one: the barrier between them is missing.
WITHOUT_BARRIER = {
    "between the two halves of packing": _fault(
        "packing.h", NEXT_OF_PACKING + "        const int stage", "const int stage", _panels
    ),
    "between the largest of some and of all": (
        (
            Change(
                "packing.h",
                "        if (thread % SOME) return;\n        uint32_t",
                "        if (thread % SOME == 0) {\n        uint32_t",
            ),
            Change(
                "packing.h",
                LAST + NEXT_OF_PACKING + "        const int64_t stage",
                LAST + "        }\n        const int64_t stage",
            ),
        ),
        _panels,
    ),
    "between the magnitudes of a block and the largest of them": _fault(
        "blocks.h",
        "    });\n    threads.each([&](BlocksState &, int thread) {\n        if (number",
        "if (number",
        _blocks,
    ),
    "between results in registers and in shared memory": _fault(
        "gemm.h", NEXT_OF_STATE + "                const Final", "const Final", _product
    ),
    "between exponentials and their sum": (
        (
            Change(
                "softmax.h",
                NEXT_OF_SUM + "            for (int i = 0; i < columns",
                "            if (thread < rows) for (int i = 0; i < columns",
            ),
            Change(
                "softmax.h",
                "        threads.each([&](SoftmaxState &, int thread) {\n            const int lane",
                "        threads.each([&](SoftmaxState &state, int thread) {\n            const int lane",
            ),
        ),
        _softmax,
    ),
}

#: Here the last thread of a stage gathers what the others have found, which is right with a barrier, and without one as
#: long as threads run in ascending order.
LAST_GATHERS = (
    Change("packing.h", "thread % PER_STAGE || stage", "thread % PER_STAGE != PER_STAGE - 1 || stage"),
    Change(
        "packing.h",
        "i += SOME) {\n            const uint32_t other = shared.largest[thread + i]",
        "i += SOME) {\n            const uint32_t other = shared.largest[thread - (PER_STAGE - 1) + i]",
    ),
)


def _sees(device: HostDevice, check: Check) -> bool:
    try:
        check(device)
    except AssertionError:
        return True
    return False


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory, host_device: HostDevice) -> SwitchedDevice:
    """The kernels with all faults in them, each behind a switch."""
    folder = shared_folder(tmp_path_factory, "switched_kernels", lambda folder: None)
    return SwitchedDevice(folder, {name: changes for name, (changes, _) in FAULTS.items()}, host_device)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_kernels_is_seen(switched: SwitchedDevice, fault: str) -> None:
    _, check = FAULTS[fault]
    switched.fault = fault
    assert _sees(switched, check)


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_without_a_fault_pass_the_same_checks(host_device: HostDevice, check: Check) -> None:
    assert not _sees(host_device, check)


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_with_every_fault_switched_off_pass_the_same_checks(switched: SwitchedDevice, check: Check) -> None:
    switched.fault = None
    assert not _sees(switched, check)


@pytest.mark.parametrize("place", WITHOUT_BARRIER)
def test_missing_barrier_is_seen_in_some_order_of_the_threads(
    tmp_path: Path, host_device: HostDevice, place: str
) -> None:
    changes, check = WITHOUT_BARRIER[place]
    device, seen = HostDevice(tmp_path, *changes, plain=host_device), []
    for device.order in ORDERS:
        seen.append(_sees(device, check))
    assert any(seen)


def test_missing_barrier_that_ascending_threads_hide_is_seen_in_other_orders(
    tmp_path: Path, host_device: HostDevice
) -> None:
    changes, check = WITHOUT_BARRIER["between the largest of some and of all"]
    with_barrier = HostDevice(tmp_path / "with", *LAST_GATHERS, plain=host_device)
    without = HostDevice(tmp_path / "without", *changes, *LAST_GATHERS, plain=host_device)
    for order in ORDERS:
        with_barrier.order = without.order = order
        assert not _sees(with_barrier, check)
        assert _sees(without, check) == (order[0] != 0)
