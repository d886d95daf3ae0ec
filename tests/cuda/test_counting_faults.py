"""Tests of what kernels for cards count see faults: each is put into the source, and a check has to fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from golden import BF16, CBFLOAT16, FP16, Rounding
from golden.kernels.products import Formats
from golden.reduction import Reduction
from golden.torch.products.gpu import checking_counts, devices
from tests.cuda import counts, test_counting
from tests.cuda.host import HostDevice, SwitchedDevice
from tests.cuda.products import reduction_of, special_values, values
from tests.golden.kernels.build import Change
from tests.shared import shared_folder

Check = Callable[[HostDevice], None]
CPU = torch.device("cpu")


def _specials(device: HostDevice) -> None:
    a, b, start = special_values(1, FP16, 9, 30), special_values(2, FP16, 30, 11), special_values(3, FP16, 11)
    counts.check(device, a, b, operand=FP16, reduction=reduction_of(FP16, 2, 7), initial=start, out=FP16)


def _chain(device: HostDevice) -> None:
    a, b, start = values(1, 9, 30), values(2, 30, 11), values(3, 9, 11)
    counts.check(device, a, b, operand=BF16, reduction=reduction_of(BF16, 0, None), initial=start)


def _batches(device: HostDevice) -> None:
    a, b = values(1, 2, 3, 9), values(2, 3, 1, 9, 150)
    counts.check(device, a, b, operand=CBFLOAT16, reduction=reduction_of(CBFLOAT16, 1, 4))


def _tiny(device: HostDevice) -> None:
    test_counting.test_counts_of_sums_near_the_smallest_normal_value_are_golden_s(device, CBFLOAT16)


def _down(device: HostDevice) -> None:
    test_counting.test_counts_of_all_kinds_of_sums_are_golden_s(device, Rounding.DOWN)


def _kinds(device: HostDevice) -> None:
    test_counting.test_counts_of_all_kinds_of_sums_are_golden_s(device, Rounding.NEAREST_EVEN)


def _largest(device: HostDevice) -> None:
    test_counting.test_sum_rounded_to_the_largest_value_counts_no_overflow(device, FP16)


def _stochastic(device: HostDevice) -> None:
    test_counting.test_counts_in_every_mode_are_golden_s(device, Rounding.STOCHASTIC)


def _rows(device: HostDevice) -> None:
    for form in (True, "rows", "sum"):
        test_counting.test_counts_of_some_rows_are_those_of_golden_s_rows(device, form)


def _unwanted(device: HostDevice) -> None:
    test_counting.test_product_that_is_not_wanted_counts_and_stores_nothing(device)


def _reference(device: HostDevice) -> None:
    test_counting.test_reference_is_a_chain_of_the_values_as_they_are_and_then_the_initial_value(device, CBFLOAT16)


def _codes(device: HostDevice) -> None:
    test_counting.test_exponents_of_every_code_are_those_of_the_host(device, torch.bfloat16)


def _many(device: HostDevice) -> None:
    test_counting.test_exponents_of_any_count_are_those_of_the_host(device, 16385)


def _fault(file: str, old: str, new: str, check: Check, before: str = "", after: str = "") -> tuple[Change, Check]:
    return Change(file, old, new, before, after), check


FAULTS = {
    "a flag": _fault("counting_steps.h", "is_finite(exact) && after != exact", "after != exact", _specials),
    "tiny sums": _fault("counting_steps.h", "magnitude < min_normal_", "magnitude <= min_normal_", _tiny),
    "overflow": _fault("counting_steps.h", "magnitude > max_finite_", "magnitude >= max_finite_", _largest),
    "swamped": _fault("counting_steps.h", "after == before", "after >= before", _chain),
    "infinity times zero": _fault("counting_steps.h", "infinity_times_zero", "false", _kinds, before="+= "),
    "the largest": _fault("counting_steps.h", "is_finite(after)", "true", _specials, after=" && magnitude"),
    "a zero of the other sign": _fault("counting_steps.h", "MODE == Mode::down && exact == 0", "false", _down),
    "the end of a chunk": _fault("counted.h", "k + 1 < product_.k", "k < product_.k", _batches),
    "the length of a chunk": _fault(
        "counted.h",
        "product_.chunk",
        "product_.chunk + 1",
        _batches,
        before="            left = ",
        after=";\n        }",
    ),
    "partial sums that go on": _fault("counted.h", "sum = 0;", "", _batches, after="\n            left"),
    "the start of a chain": _fault("counted.h", "given_.joins ? 0 : total", "0", _chain, before="sum = "),
    "operands that are not rounded": _fault("counted.h", "rounded(x)", "x", _chain, before="step("),
    "a column": _fault("counted.h", "number % product_.n", "number % product_.n / 2", _batches),
    "a row": _fault("counted.h", "rest % given.computed", "0", _rows, after=";"),
    "which row": _fault("counted.h", "given.rows[slot_]", "slot_", _rows, after=" :"),
    "a matrix": _fault("counted.h", "matrix_ * given_.matrix_place", "0", _batches, after=" + slot_"),
    "a place": _fault("counted.h", "slot_ * given_.row_place", "0", _rows),
    "promotions": _fault("counted.h", "add(of_promotions, EVENTS)", "add(of_promotions, 0)", _batches),
    "the larger of two": _fault("counted.h", "of_products.largest[0] > of_promotions.largest[0]", "true", _batches),
    "numbers that are replaced": _fault("host_threads.h", "*to += number;", "*to = number;", _rows),
    "the number of a step": _fault("counted.h", "words.at(static_cast<uint32_t>(k))", "words.at(0)", _stochastic),
    "the number of a promotion": _fault(
        "counted.h", "FIRST_PROMOTION + chunk++", "FIRST_PROMOTION + chunk", _stochastic
    ),
    "the index of a result": _fault("counted.h", "result.row_", "result.slot_", _rows, after=", result.column_"),
    "what is not wanted": _fault("counted.h", "if (given.only_if && *given.only_if == 0) return;", "", _unwanted),
    "a reference of rounded values": _fault(
        "counted.h", "static_cast<double>(x)", "static_cast<double>(rounded(x))", _reference
    ),
    "a reference without initial values": _fault("counted.h", "after_initial(plain)", "plain", _reference, after=";\n"),
    "an exponent": _fault("exponents.h", "magnitude < INFINITY_BITS", "magnitude <= INFINITY_BITS", _codes),
    "zeros": _fault("exponents.h", "if (magnitude == 0) return ZEROS;", "", _codes),
    "values of the last block": _fault("exponents.h", "i < given.count", "i + 1 < given.count", _many),
    "slots that are not emptied": _fault("exponents.h", "shared.slots[slot] = 0", "shared.slots[slot] = 1", _many),
}
CHECKS = sorted({check for _, check in FAULTS.values()}, key=lambda check: check.__name__)


def _sees(device: HostDevice, check: Check) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(devices.cards, 0, device)
        try:
            check(device)
        except AssertionError:
            return True
    return False


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory, host_device: HostDevice) -> SwitchedDevice:
    """The kernels with all faults in them, each behind a switch."""
    folder = shared_folder(tmp_path_factory, "switched_counts", lambda folder: None)
    return SwitchedDevice(folder, {name: [change] for name, (change, _) in FAULTS.items()}, host_device)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_counts_of_kernels_is_seen(switched: SwitchedDevice, fault: str) -> None:
    switched.fault = fault
    assert _sees(switched, FAULTS[fault][1])


@pytest.mark.parametrize("check", CHECKS)
def test_counting_kernels_with_every_fault_switched_off_pass_the_same_checks(
    switched: SwitchedDevice, check: Check
) -> None:
    switched.fault = None
    assert not _sees(switched, check)


# --- the checks of a card at first use ---

FORMATS = Formats.of(CBFLOAT16, Reduction.for_level(1, CBFLOAT16), CBFLOAT16, as_values=True)
OF_A_CARD = {
    "swamped": lambda card: checking_counts.check_counts(card, CPU, FORMATS),
    "promotions": lambda card: checking_counts.check_counts(card, CPU, FORMATS),
    "partial sums that go on": lambda card: checking_counts.check_counts(card, CPU, FORMATS),
    "an exponent": lambda card: checking_counts.check_exponents(card, CPU),
    "zeros": lambda card: checking_counts.check_exponents(card, CPU),
}


@pytest.mark.parametrize("fault", OF_A_CARD)
def test_check_of_counts_names_operands_and_numbers_that_are_wrong(
    switched: SwitchedDevice, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(checking_counts, "_ROWS", 48)
    switched.fault = None
    OF_A_CARD[fault](switched)
    switched.fault = fault
    with pytest.raises(RuntimeError, match=r"^device: cpu, a host, computes other bits than the CPU: .* gives 0x"):
        OF_A_CARD[fault](switched)
