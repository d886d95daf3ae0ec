"""Stimulus of units with rounding modes and with operands that are widened: what it must meet, and who predicts it."""

from __future__ import annotations

import numpy as np
import pytest

from golden import CBFLOAT16, FLOAT8_E4M3FN, FLOAT8_E5M2, FP32, Reduction, Rounding, dot
from sim.bench.explain_reduction import products
from sim.run.simulate import prepare
from sim.scenario import Scenario
from sim.stimulus.reductions import Segment
from sim.stimulus.stepwise import predict_steps
from sim.units import UNITS

NAMES = ("mac_any_rounding", "mac_narrow", "vector_mac_any_rounding")


@pytest.mark.parametrize("name", NAMES)
def test_stimulus_meets_every_required_bin_whatever_the_seed(name: str) -> None:
    for seed in (1, 2):
        scenarios, required, _ = prepare.__wrapped__(UNITS[name], seed, 0.01)
        met = {key for scenario in scenarios for key, count in scenario.coverage.items() if count}
        assert sorted(required - met) == []
        assert all(len(scenario.answers) for scenario in scenarios)


@pytest.mark.parametrize("mode", Rounding, ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_prediction_step_by_step_of_one_mode_is_that_of_whole_reductions(level: int, mode: Rounding) -> None:
    rng = np.random.default_rng(level)
    chains, wanted = [], []
    for length in (1, 2, 7, 8, 9):
        a, b = (rng.integers(0, 1 << 16, length, np.uint16) & np.uint16(0xBFFF) for _ in "ab")
        random = [0] * length
        chains.append([Segment(0, level, a.tolist(), b.tolist(), chunk=4, modes=[mode.value] * length, random=random)])
        # Random bits of zeros never round up: towards zero, but for what is too large.
        same = Rounding.TOWARD_ZERO if mode is Rounding.STOCHASTIC else mode
        wanted.append(dot(a, b, operand=CBFLOAT16, level=level, chunk=4, rounding=same, return_flags=True))
    predict_steps(chains, [CBFLOAT16], None, 16)
    for (segment,), (result, flags) in zip(chains, wanted, strict=True):
        assert (hex(segment.result), segment.flags) == (hex(result), flags)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_prediction_step_by_step_of_narrow_operands_is_that_of_whole_reductions(level: int) -> None:
    rng = np.random.default_rng(level)
    for index, fmt in enumerate((FLOAT8_E4M3FN, FLOAT8_E5M2)):
        a, b = (rng.integers(0, 0x70, 9).astype(np.uint8) for _ in "ab")
        segment = Segment(index, level, a.tolist(), b.tolist(), chunk=2, modes=[0] * 9)
        predict_steps([[segment]], [FLOAT8_E4M3FN, FLOAT8_E5M2], CBFLOAT16, 16)
        plan = Reduction.for_level(level, fmt, chunk=2)
        result, flags = dot(a, b, operand=fmt, reduction=plan, return_flags=True)
        assert (hex(segment.result), segment.flags) == (hex(result), flags)
        assert plan.outer in (FP32, CBFLOAT16)


def test_failure_line_of_a_mode_without_a_name_shows_its_code() -> None:
    # It once ended the run of the fault mode_that_is_not_built_accepted, in place of telling what differs.
    one = np.array([0x3E00, 0x3E00])
    details = {"a": one, "b": one, "modes": np.array([2, 7])}
    scenario = Scenario("one", *(np.zeros(1, np.uint64) for _ in range(2)), np.zeros(1, int), details=details)
    assert products(scenario, {"products": 2, "start": 0}, CBFLOAT16) == (
        "0x3e00 (1.0) * 0x3e00 (1.0) down, 0x3e00 (1.0) * 0x3e00 (1.0) mode 7"
    )
