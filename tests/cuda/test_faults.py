"""The tests of the kernels for cards see faults: each fault is put into the source, and a check has to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.mutants.table import Edit, seen_by
from tests.cuda import checks
from tests.cuda.host import ORDERS, HostDevice, SwitchedDevice
from tests.shared import shared_folder

pytestmark = pytest.mark.long

Check = Callable[[HostDevice], None]


PINNED = seen_by(__file__)
FAULTS = {name: fault for name, fault in PINNED.items() if not fault.alone}
#: Two phases that run as one: the barrier between them is missing.
WITHOUT_BARRIER = {name: fault for name, fault in PINNED.items() if fault.alone}
CHECKS = {name: getattr(checks, name) for name in sorted({fault.by for fault in PINNED.values()})}

#: Here the last thread of a stage gathers the results of the others. That is right with a barrier, and without one as
#: long as threads run in ascending order.
LAST_GATHERS = (
    Edit("packing.h", "thread % PER_STAGE || stage", "thread % PER_STAGE != PER_STAGE - 1 || stage"),
    Edit(
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
    return SwitchedDevice(folder, {name: [fault] for name, fault in FAULTS.items()}, host_device)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_in_the_kernels_is_seen(switched: SwitchedDevice, fault: str) -> None:
    switched.fault = fault
    assert _sees(switched, CHECKS[FAULTS[fault].by])


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_without_a_fault_pass_the_same_checks(host_device: HostDevice, check: str) -> None:
    assert not _sees(host_device, CHECKS[check])


@pytest.mark.parametrize("check", CHECKS)
def test_kernels_with_every_fault_switched_off_pass_the_same_checks(switched: SwitchedDevice, check: str) -> None:
    switched.fault = None
    assert not _sees(switched, CHECKS[check])


@pytest.mark.parametrize("place", WITHOUT_BARRIER)
def test_missing_barrier_is_seen_in_some_order_of_the_threads(
    tmp_path: Path, host_device: HostDevice, place: str
) -> None:
    fault = WITHOUT_BARRIER[place]
    device, seen = HostDevice(tmp_path, fault, plain=host_device), []
    for device.order in ORDERS:
        seen.append(_sees(device, CHECKS[fault.by]))
    assert any(seen)


def test_missing_barrier_that_ascending_threads_hide_is_seen_in_other_orders(
    tmp_path: Path, host_device: HostDevice
) -> None:
    fault = WITHOUT_BARRIER["no_barrier_between_the_largest_of_some_and_of_all"]
    with_barrier = HostDevice(tmp_path / "with", *LAST_GATHERS, plain=host_device)
    without = HostDevice(tmp_path / "without", fault, *LAST_GATHERS, plain=host_device)
    for order in ORDERS:
        with_barrier.order = without.order = order
        assert not _sees(with_barrier, CHECKS[fault.by])
        assert _sees(without, CHECKS[fault.by]) == (order[0] != 0)
