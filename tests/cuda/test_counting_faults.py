"""Tests of the counts of kernels for cards see faults: each fault is put into the source, and a check must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from golden import BF16, CBFLOAT16, FP16, Rounding
from golden.reduction import Reduction
from golden.torch.products.gpu import checking_counts, devices
from lab.mutants.table import seen_by
from tests.cuda import counts, test_counting
from tests.cuda.host import HostDevice, SwitchedDevice
from tests.cuda.products import reduction_of, special_values, values
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


def _rows(device: HostDevice) -> None:
    for form in (True, "rows", "sum"):
        test_counting.test_counts_of_some_rows_are_those_of_golden_s_rows(device, form)


_NEAR_THE_SMALLEST = test_counting.test_counts_of_sums_near_the_smallest_normal_value_are_golden_s
_ALL_KINDS = test_counting.test_counts_of_all_kinds_of_sums_are_golden_s
_CHAIN_OF_VALUES = test_counting.test_reference_is_a_chain_of_the_values_as_they_are_and_then_the_initial_value
CHECKS: dict[str, Check] = {
    "specials": _specials,
    "chain": _chain,
    "batches": _batches,
    "rows": _rows,
    "tiny": lambda device: _NEAR_THE_SMALLEST(device, CBFLOAT16),
    "down": lambda device: _ALL_KINDS(device, Rounding.DOWN),
    "kinds": lambda device: _ALL_KINDS(device, Rounding.NEAREST_EVEN),
    "largest": lambda device: test_counting.test_sum_rounded_to_the_largest_value_counts_no_overflow(device, FP16),
    "stochastic": lambda device: test_counting.test_counts_in_every_mode_are_golden_s(device, Rounding.STOCHASTIC),
    "unwanted": test_counting.test_product_that_is_not_wanted_counts_and_stores_nothing,
    "reference": lambda device: _CHAIN_OF_VALUES(device, CBFLOAT16),
    "codes": lambda device: test_counting.test_exponents_of_every_code_are_those_of_the_host(device, torch.bfloat16),
    "many": lambda device: test_counting.test_exponents_of_any_count_are_those_of_the_host(device, 16385),
}
FAULTS = seen_by(__file__)


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
    return SwitchedDevice(folder, {name: [fault] for name, fault in FAULTS.items()}, host_device)


@pytest.mark.turns
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_counts_of_kernels_is_seen(switched: SwitchedDevice, fault: str) -> None:
    switched.fault = fault
    assert _sees(switched, CHECKS[FAULTS[fault].by])


@pytest.mark.parametrize("check", CHECKS)
def test_counting_kernels_with_every_fault_switched_off_pass_the_same_checks(
    switched: SwitchedDevice, check: str
) -> None:
    switched.fault = None
    assert not _sees(switched, CHECKS[check])


# --- checks that a card runs itself ---

WHOLE = replace(Reduction.for_level(1, CBFLOAT16), operand=CBFLOAT16, out=CBFLOAT16)
OF_A_CARD = {
    "swamped": lambda card: checking_counts.check_counts(card, CPU, WHOLE),
    "promotions": lambda card: checking_counts.check_counts(card, CPU, WHOLE),
    "partial_sums_that_go_on": lambda card: checking_counts.check_counts(card, CPU, WHOLE),
    "an_exponent": lambda card: checking_counts.check_exponents(card, CPU),
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
