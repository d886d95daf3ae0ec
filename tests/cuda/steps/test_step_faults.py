"""The comparison of steps can fail: each fault in the headers is seen."""

from functools import cache

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, FloatFormat, Rounding, multiply_accumulate
from lab.mutants.table import seen_by

from .build import BFLOAT16, FLOAT16, build, build_switched
from .judge import differences, triples

pytestmark = pytest.mark.long

CASES = 20_000
NARROW = FloatFormat("e4m3", 4, 3)
EVEN = Rounding.NEAREST_EVEN
PINNED = seen_by(__file__)
#: With a fault the steps of its mode differ in some format, or the native steps of a card.
FAULTS = {name: fault for name, fault in PINNED.items() if fault.by != "native"}
NATIVE_FAULTS = {name: fault for name, fault in PINNED.items() if fault.by == "native"}


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """The steps of a mode with all its faults in them, built at the first use."""

    @cache
    def of(mode):
        faults = {name: fault for name, fault in FAULTS.items() if fault.by == str(mode) and not fault.alone}
        faults |= NATIVE_FAULTS if mode is EVEN else {}
        return build_switched(tmp_path_factory.mktemp("switched") / str(mode), mode, faults)

    return of


def seen(steps, mode):
    """Return the first differences from golden's steps, in the format that has any."""
    for fmt in (CBFLOAT16, FP16, BF16, NARROW, FP32):
        found = differences(steps, fmt, mode, triples(fmt, CASES, np.random.default_rng(5)))
        if found:
            return found
    return []


@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_the_steps_is_seen(tmp_path, switched, name):
    fault, mode = FAULTS[name], Rounding[FAULTS[name].by.upper()]
    assert seen(build(tmp_path / "faulty", mode, fault) if fault.alone else switched(mode).with_fault(name), mode)


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_steps_with_every_fault_switched_off_pass_the_same_comparison(switched, mode):
    assert seen(switched(mode).with_fault(None), mode) == []


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_steps_without_a_fault_pass_the_same_comparison(steps, mode):
    assert seen(steps[mode], mode) == []


def native_differences(steps):
    different = 0
    for fmt, kind in ((FP16, FLOAT16), (BF16, BFLOAT16)):
        given = [part[: part.size // 2 * 2] for part in triples(fmt, CASES, np.random.default_rng(6))]
        wanted = multiply_accumulate(*given, operand=fmt, accumulator=fmt)
        finite = (wanted & 0x7FFF) <= fmt.inf
        different += (steps.step(kind, fmt, 0.0, *given) != wanted)[finite].sum()
    return different


@pytest.mark.parametrize("fault", NATIVE_FAULTS)
def test_fault_in_the_native_steps_is_seen(switched, fault):
    assert native_differences(switched(EVEN).with_fault(fault))


def test_native_steps_with_every_fault_switched_off_are_the_same(switched):
    assert native_differences(switched(EVEN).with_fault(None)) == 0
