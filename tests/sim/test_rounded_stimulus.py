"""Stimulus of units with rounding modes and with widened operands: its required coverage, and its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden import (
    CBFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FP16,
    FP32,
    FloatFormat,
    Reduction,
    Rounding,
    dot,
)
from hdl.catalogue import Kind, Unit
from sim.bench.explain_reduction import products
from sim.run.compiled import Engine
from sim.run.simulate import Job, prepare, run_unit
from sim.scenario import Scenario
from sim.stimulus.reductions import Segment
from sim.stimulus.stepwise import predict_steps
from sim.units import UNITS

#: Units that the catalogue does not have, but could.
NEW: dict[str, tuple[Kind, dict[str, Any]]] = {
    "axi_down": (Kind.AXI_STREAM, {"operands": (CBFLOAT16,), "roundings": "down"}),
    "axi_narrow": (Kind.AXI_STREAM, {"operands": (FLOAT8_E5M2,)}),
    "vector_narrow": (Kind.VECTOR, {"operands": (FLOAT8_E4M3FN, FLOAT8_E5M2), "lanes": 2}),
    # Deep enough that two beats are held: the port `chunk` belongs to the second one.
    "vector_narrow_deep": (Kind.VECTOR, {"operands": (FLOAT8_E4M3FN,), "lanes": 2, "stages": 9, "registers": 16}),
    "vector_float16": (Kind.VECTOR, {"operands": (FP16,), "lanes": 2, "roundings": tuple(Rounding)}),
    # Counters beside modes and narrow operands, and narrow operands that stay as they are.
    "mac_modes_counted": (Kind.MAC, {"operands": (CBFLOAT16,), "roundings": tuple(Rounding), "counters": True}),
    "mac_narrow_counted": (
        Kind.MAC,
        {"operands": (FLOAT8_E4M3FN, FLOAT4_E2M1FN), "inner": FP16, "levels": (1,), "counters": True},
    ),
    "axi_up_counted": (Kind.AXI_STREAM, {"operands": (FLOAT8_E5M2,), "roundings": "up", "counters": True}),
    "vector_narrow_counted": (
        Kind.VECTOR,
        {"operands": (FLOAT8_E5M2,), "lanes": 2, "levels": (1,), "roundings": ("down", "stochastic"), "counters": True},
    ),
    "mac_as_they_are": (
        Kind.MAC,
        {"operands": (FLOAT8_E5M2, FP16), "inner": "operand", "roundings": ("nearest_even", "to_odd")},
    ),
    "vector_as_they_are": (
        Kind.VECTOR,
        {"operands": (FLOAT8_E5M2,), "inner": "operand", "lanes": 2, "counters": True},
    ),
}
NAMES = ("mac_any_rounding", "mac_narrow", "vector_mac_any_rounding")


@pytest.mark.turns
@pytest.mark.parametrize("name", NAMES)
def test_stimulus_meets_every_required_bin_whatever_the_seed(name: str) -> None:
    for seed in (1, 2):
        scenarios, required, _ = prepare.__wrapped__(UNITS[name], seed, 0.01)
        met = {key for scenario in scenarios for key, count in scenario.coverage.items() if count}
        assert sorted(required - met) == []
        assert all(len(scenario.answers) for scenario in scenarios)


def new_unit(name: str, kind: Kind, **arguments: Any) -> Unit:
    return Unit(name=name, kind=kind, arguments={"stages": 3, "registers": 8, **arguments}, effort=0.03)


@pytest.mark.long
@pytest.mark.parametrize("name", NEW)
def test_new_unit_that_rounds_otherwise_or_widens_passes_and_meets_its_bins(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Behind AXI ports 0x3d0e * 0x3576 + 0xc408 * 0x4946 + 0x3bd6 * 0x8771, rounded down to 0xc3d4c0b8 at level 0, was
    # compared with 0xc3d4c0b7, the result to nearest.
    kind, arguments = NEW[name]
    monkeypatch.setitem(UNITS, name, new_unit(name, kind, **arguments))
    outcome = run_unit(Job(name, 1, tmp_path / "run", engines=(Engine.COMPILED,)))
    assert outcome.failures == []
    assert outcome.vectors > 100
    assert outcome.required


def test_stimulus_of_float16_asks_for_no_promotion_that_there_is_not() -> None:
    # A quarter of an ulp of 1 in float32 is 2**-25, and the smallest partial sum of float16 2**-24.
    unit = new_unit("mac_float16_away", Kind.MAC, operands=(FP16,), roundings="nearest_away", levels=(1,))
    scenarios, required, _ = prepare.__wrapped__(unit, 1, 0.03)
    assert required
    assert required <= {key for scenario in scenarios for key, count in scenario.coverage.items() if count}


@pytest.mark.parametrize("fmt", [FLOAT8_E5M2, FloatFormat("e4m1", 4, 1), FloatFormat("e8m3", 8, 3)], ids=str)
def test_stimulus_of_narrow_operands_that_stay_as_they_are_meets_every_required_bin(fmt: FloatFormat) -> None:
    # Seed 1 left e4m1 at level 2, rounded down, without an underflow to a negative number: 0x21 * 0x01 makes one.
    arguments = {"operands": (fmt,), "inner": "operand", "roundings": tuple(Rounding)}
    arguments |= {"inner": None} if fmt.width > 8 else {}
    for seed in (1, 2, 3):
        scenarios, required, _ = prepare.__wrapped__(new_unit("one", Kind.MAC, **arguments), seed, 0.01)
        assert required
        assert sorted(required - {key for scenario in scenarios for key in scenario.coverage}) == []


@pytest.mark.parametrize("mode", Rounding, ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_prediction_step_by_step_of_one_mode_is_that_of_whole_reductions(level: int, mode: Rounding) -> None:
    rng = np.random.default_rng(level)
    chains, wanted = [], []
    for length in (1, 2, 7, 8, 9):
        a, b = (rng.integers(0, 1 << 16, length, np.uint16) & np.uint16(0xBFFF) for _ in "ab")
        random = [0] * length
        chains.append([Segment(0, level, a.tolist(), b.tolist(), chunk=4, modes=[mode.value] * length, random=random)])
        # Random bits of zeros never round up: towards zero, except for overflows.
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
    # Such a mode once ended the run of the fault mode_that_is_not_built_accepted, without a report of the difference.
    one = np.array([0x3E00, 0x3E00])
    details = {"a": one, "b": one, "modes": np.array([2, 7])}
    scenario = Scenario("one", *(np.zeros(1, np.uint64) for _ in range(2)), np.zeros(1, int), details=details)
    assert products(scenario, {"products": 2, "start": 0}, CBFLOAT16) == (
        "0x3e00 (1.0) * 0x3e00 (1.0) down, 0x3e00 (1.0) * 0x3e00 (1.0) mode 7"
    )
