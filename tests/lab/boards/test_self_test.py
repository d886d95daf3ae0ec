"""The self-test in Amaranth's simulator: it passes with the golden model's expectation alone."""

from functools import cache

import pytest

from hdl import MultiplyAccumulate
from lab.boards.self_test import SelfTest

from .bench import SIGNATURE, SMALL, Faulty, rounds

pytestmark = pytest.mark.long


@cache
def with_faults():
    return SelfTest(SIGNATURE, plan=SMALL, unit=Faulty())


def test_self_test_with_golden_signature_passes_in_every_round():
    assert rounds(SelfTest(SIGNATURE, plan=SMALL), count=2) == [(SIGNATURE, True)] * 2


@pytest.mark.parametrize("stages", [1, 4])
def test_self_test_of_unit_with_another_latency_passes(stages):
    assert rounds(SelfTest(SIGNATURE, plan=SMALL, unit=MultiplyAccumulate(stages=stages))) == [(SIGNATURE, True)]


def test_self_test_with_wrong_expectation_fails():
    assert rounds(SelfTest(SIGNATURE ^ 1, plan=SMALL)) == [(SIGNATURE, False)]


@pytest.mark.parametrize(
    "fault",
    [{"result": 1}, {"result": 1 << 31}, {"flags": 1}, {"flags": 16}, {"register": 2}, {"error": 1}],
    ids=str,
)
def test_self_test_of_unit_with_one_flipped_bit_fails(fault):
    number = SMALL.results - 1 if fault == {"result": 1} else 5
    [(signature, passed)] = rounds(with_faults(), number=number, **fault)
    assert not passed
    assert signature != SIGNATURE


def test_self_test_of_unit_that_loses_a_result_fails_instead_of_waiting_for_ever():
    [(_, passed)] = rounds(SelfTest(SIGNATURE, plan=SMALL, unit=Faulty(), patience=300), number=20, lost=1)
    assert not passed


def test_self_test_without_fault_in_the_same_harness_passes():
    assert rounds(with_faults(), number=5) == [(SIGNATURE, True)]


def test_self_test_with_expectation_of_more_than_32_bits_is_refused():
    with pytest.raises(ValueError, match="expected: got 0x100000000, must have at most 32 bits"):
        SelfTest(1 << 32)
