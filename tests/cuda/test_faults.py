"""The tests of the kernels for cards see faults: each fault is put into the source, and a check has to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda import checks
from tests.cuda.host import ORDERS, HostDevice, SwitchedDevice
from tests.golden.kernels.build import Change
from tests.shared import shared_folder

pytestmark = pytest.mark.long

Check = Callable[[HostDevice], None]


def _fault(
    file: str, old: str, new: str, check: Check, before: str = "", after: str = ""
) -> tuple[tuple[Change, ...], Check]:
    return (Change(file, old, new, before, after),), check


LOADED = "load_value(source.memory, source.data, place)"
FAULTS = {
    "columns of a thread's groups": _fault(
        "place.h", "WARP_COLUMNS", "WARP_ROWS", checks.large_tile, before="column0 + j / GROUP * (GROUP * "
    ),
    "rows of a thread's groups": _fault(
        "place.h", "GROUP * WARP_ROWS", "GROUP", checks.large_tile, before=" + i / GROUP * (", after=") +"
    ),
    "columns of the last tiles": _fault("place.h", "rest % swath / height", "rest % swath / SWATH", checks.many_tiles),
    "the matrix of a batch": _fault(
        "packing.h", "number /= lengths[axis];", "number /= lengths[AXES - 1];", checks.batches
    ),
    "the last lane of an operand": _fault(
        "packing.h", "packing.lanes", "packing.lanes - 1", checks.product, "lane < ", ")"
    ),
    "the last product of an operand": _fault(
        "packing.h", "k0 + k < packing.k", "k0 + k < packing.k - 1", checks.product, after=" &&"
    ),
    "the last column of the results": _fault(
        "finish.h", "j >= product_.n", "j >= product_.n - 1", checks.product, after=") return;"
    ),
    "scales of an operand": _fault(
        "rounding.h", "return short_(x) * factor_;", "return short_(x) * (factor_ * 2);", checks.product
    ),
    "the largest of a stage": _fault(
        "packing.h", "magnitude > largest", "magnitude < largest", checks.panels, before="largest = "
    ),
    "a stage that is copied into memory in use": _fault(
        "gemm.h", "shared.stages.b[stage % 2]", "shared.stages.b[0]", checks.product, after=");"
    ),
    "a copy that nobody waits for": _fault(
        "gemm.h", "copies_arrive();", "", checks.product, before="thread);\n                "
    ),
    "the length of a chunk": _fault(
        "gemm.h",
        "product_.chunk",
        "product_.chunk + 1",
        checks.product,
        before="        state.left = ",
        after=";\n        state.chunk++;",
    ),
    "the end of the last chunk": _fault(
        "gemm.h", "product_.k", "product_.depth", checks.product, before="+ k == ", after="))"
    ),
    "partial sums that go on": _fault(
        "gemm.h",
        "state.sum[i][v] = Plain::load(zero);",
        "",
        checks.product,
        after="\n            }\n        }\n        state.left",
    ),
    "sums that overflow unseen": _fault(
        "gemm.h", "return state.bound < product_.safe;", "return true;", checks.specials
    ),
    "a bound that forgets": _fault(
        "gemm.h", "state.bound", "0.0f", checks.slow_overflow, before="state.bound = (", after=" + count"
    ),
    "the number of a promotion": _fault(
        "gemm.h", "FIRST_PROMOTION + state.chunk", "FIRST_PROMOTION + state.chunk + 1", checks.stochastic
    ),
    "the number of a step": _fault(
        "gemm.h", "words.step(number + static_cast<uint32_t>(k))", "words.step(number)", checks.stochastic
    ),
    "the index of a row": _fault(
        "finish.h", "static_cast<uint32_t>(i) * product.row_index", "static_cast<uint32_t>(i)", checks.stochastic
    ),
    "the second of a pair": _fault(
        "gemm.h", "state.total[i][v * COUNT + c]", "state.total[i][v * COUNT]", checks.native, after=";"
    ),
    "initial values of another column": _fault(
        "gemm.h", "initial.at(row, place)", "initial.at(row, place ^ 1)", checks.product
    ),
    "initial values that are not rounded": _fault("finish.h", f"outer_(given_({LOADED}))", LOADED, checks.specials),
    "ties": _fault("rounding.h", "(rest == half && (kept & 1) != 0)", "rest == half", checks.rounding),
    "beyond the largest value": _fault(
        "rounding.h", "rounded > largest_", "rounded >= largest_", checks.rounding, "if ("
    ),
    "a zero without a sign": _fault(
        "rounding.h", "rounded == 0 && specials_ == Specials::fnuz", "rounded == 0", checks.rounding
    ),
    "a mode": _fault("rounding.h", "return rest != 0 && negative;", "return negative;", checks.modes),
    "random bits": _fault("rounding.h", "(word >> (32 - random_bits_))", "(word >> (31 - random_bits_))", checks.modes),
    "the step of a rounding": _fault("elementwise.h", "given.step", "FINAL_CONVERSION", checks.steps, before="step_("),
    "neighbours": _fault("elementwise.h", "round(values[i][j], index + j)", "round(values[i][j], index)", checks.modes),
    "values beyond the count": _fault(
        "elementwise.h", "index < given.count", "index <= given.count", checks.counts, after=";"
    ),
    "the last product of another machine": _fault(
        "accumulation.h", "k < count", "k + 1 < count", checks.machines, "x = "
    ),
    "the rows of another machine's block": _fault(
        "accumulation.h", "block.number % PARTS * ACCUMULATION_ROWS", "block.number % PARTS", checks.machine_rows
    ),
    "initial totals that are promoted": _fault("accumulation.h", "rule.promote", "false", checks.machines, "total = "),
    "no products of another machine": _fault(
        "accumulation.h", "!factors.count", "false", checks.machine_of_no_products
    ),
    "terms that are cut down": _fault(
        "one_lane.h", "std::floor(value.number)", "std::trunc(value.number)", checks.machines
    ),
    "comparisons of doubles": _fault("one_lane.h", "x.number > y.number", "x.number < y.number", checks.machines),
    "exponents of subnormal factors": _fault(
        "accumulate_lanes.h",
        "field < rule.operand_emin",
        "false",
        checks.machine_of_subnormals,
        before="zero_exponent : ",
    ),
    "subnormal factors that are kept": _fault(
        "accumulate_lanes.h", "std::fabs(value) < smallest", "false", checks.machine_of_subnormals
    ),
    "the least scale of a block": _fault("blocks.h", "scale < LEAST_SCALE", "false", checks.blocks),
    "the largest scale of a block": _fault("blocks.h", "scale > LARGEST_SCALE", "false", checks.blocks),
    "the exponent of a subnormal value": _fault("blocks.h", "149", "148", checks.blocks, before="- 127 - "),
    "an element beyond the largest": _fault("rounding.h", "saturates_", "false", checks.blocks, "return ", " || mode_"),
    "a block that is no number": _fault("blocks.h", "of_all < INFINITY_BITS", "of_all <= INFINITY_BITS", checks.blocks),
    "a block at the end of a row": _fault(
        "blocks.h", "given.length - column", "given.length - column - 1", checks.blocks, before="? "
    ),
    "a thread that does not know its neighbours": _fault("blocks.h", "i < lanes", "i + 1 < lanes", checks.blocks),
    "a largest value of a row": _fault(
        "softmax.h", "1", "2", checks.softmax, before="for (int i = ", after="; i < SOFTMAX_COLUMNS; i++)"
    ),
    "a row that is not summed to its end": _fault(
        "softmax.h", "i < columns", "i + 1 < columns", checks.softmax, after="; i++)"
    ),
    "quotients half way": _fault("softmax.h", "rest > 0 ? 1 : ~0u", "0", checks.close_quotients, after=";"),
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
        "packing.h", NEXT_OF_PACKING + "        const int stage", "const int stage", checks.panels
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
        checks.panels,
    ),
    "between the magnitudes of a block and the largest of them": _fault(
        "blocks.h",
        "    });\n    threads.each([&](BlocksState &, int thread) {\n        if (number",
        "if (number",
        checks.blocks,
    ),
    "between results in registers and in shared memory": _fault(
        "gemm.h", NEXT_OF_STATE + "                const Final", "const Final", checks.product
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
        checks.softmax,
    ),
}

#: Here the last thread of a stage gathers the others' findings, which is right with a barrier, and without one as
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
