"""The self-test in Amaranth's simulator, and its expectation, from golden alone and not from easy numbers."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import lab.boards.expectation
from golden import CBFLOAT16, Flag, reference
from hdl import MultiplyAccumulate
from lab.boards.expectation import _noise, expect, operands
from lab.boards.plan import Plan
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


PLAN = Plan(windows=96)
whole_round = cache(lambda: expect(Plan()))


def test_expectation_is_computed_with_golden_and_not_with_the_rtl():
    tree = ast.parse(Path(lab.boards.expectation.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert "golden" in imported
    # The plan is numbers and no hardware.
    assert {name for name in imported if name.startswith(("hdl", "amaranth", "lab", "sim"))} == {"lab.boards.plan"}


def test_expectation_agrees_with_the_exact_reference():
    expected = expect(PLAN)
    a, b = operands(PLAN)
    for window, lane in ((0, 0), (3, 1), (13, 5), (95, 7)):
        level = (window + lane) % 3
        code, flags = reference.dot(
            [int(x) for x in a[window, :, lane]],
            [int(x) for x in b[window, :, lane]],
            operand=CBFLOAT16,
            level=level,
            chunk=PLAN.chunk,
        )
        assert (int(expected.bits[window, lane]), int(expected.flags[window, lane])) == (code, int(flags))


def test_noise_is_what_the_shift_register_gives_step_by_step():
    state, wanted = Plan.SEED, []
    for _ in range(1000):
        wanted.append(state)
        for _ in range(32):
            state = (state << 1 ^ (Plan.POLYNOMIAL if state >> 31 else 0)) & 0xFFFF_FFFF
    assert _noise(PLAN, 1000).tolist() == wanted


def test_signature_of_shift_register_starts_as_the_plan_says():
    a, b = (codes[0, 0, 0] for codes in operands(PLAN))
    low, high = Plan.SEED & 0xFFFF, Plan.SEED >> 16
    # Window 0 keeps the sign and the fraction, and puts the exponent field around 1.0.
    for code, noise in ((a, low), (b, high)):
        assert code & 0x81FF == noise & 0x81FF
        assert code >> 9 & 63 == CBFLOAT16.bias - 8 + (noise >> 9 & 15)


@pytest.mark.parametrize("flag", [Flag.INEXACT, Flag.UNDERFLOW, Flag.OVERFLOW, Flag.INVALID], ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_results_raise_every_flag_that_their_level_can(level, flag):
    expected = whole_round()
    window, lane = np.indices(expected.flags.shape)
    raised = int((expected.flags[(window + lane) % 3 == level] & flag != 0).sum())
    # fp32 holds every product of two cbfloat16 and every sum of a few of them without leaving its range.
    assert (raised > 0) == (level > 0 or flag in (Flag.INEXACT, Flag.INVALID))


def test_operands_and_results_contain_the_rare_numbers():
    plan = Plan()
    expected = whole_round()
    a, b = operands(plan)
    magnitudes = np.concatenate([a.ravel(), b.ravel()]) & 0x7FFF
    assert np.any(magnitudes == 0)
    assert np.any(CBFLOAT16.is_inf(magnitudes))
    assert np.any(CBFLOAT16.is_nan(magnitudes))
    assert np.any((magnitudes > 0) & (magnitudes < CBFLOAT16.min_normal))
    narrow = (np.arange(plan.windows)[:, np.newaxis] + np.arange(plan.lanes)) % 3 == 2
    results = expected.bits[narrow] & 0x7FFF
    assert np.any((results > 0) & (results < CBFLOAT16.min_normal))
    assert np.any(CBFLOAT16.is_inf(results))
    assert np.any(results == CBFLOAT16.nan)
    # Factors none of which is zero can only cancel to an exact zero.
    has_no_zero = np.all((a & 0x7FFF > 0) & (b & 0x7FFF > 0), axis=1)
    assert np.sum((expected.bits == 0) & has_no_zero & (expected.flags == 0)) > 10


def test_every_lane_runs_at_every_level_with_every_kind_of_operand():
    seen = {(lane, (window + lane) % 3, window % 4) for window in range(12) for lane in range(PLAN.lanes)}
    assert len(seen) == PLAN.lanes * 3 * 4
    assert set(expect(PLAN).registers.ravel().tolist()) == set(range(0, 16))


@pytest.mark.parametrize(
    "given", [{"windows": 0}, {"windows": 65537}, {"length": 0}, {"length": 1025}, {"chunk": 0}], ids=str
)
def test_plan_out_of_range_is_refused(given):
    [(name, value)] = given.items()
    with pytest.raises(ValueError, match=f"{name}: got {value}, must be from 1 to"):
        Plan(**given)
