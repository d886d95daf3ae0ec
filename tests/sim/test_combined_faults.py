"""Units of combined parameters: deliberate faults in what only they have, which the regression must find."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from golden import CBFLOAT16, FLOAT8_E5M2, FP16, format_named
from hdl.catalogue import Kind, Unit
from sim.bench.explain_reduction import inner_format
from sim.run.compiled import Engine
from sim.run.simulate import Job, prepare, run_unit
from sim.units import UNITS

_MODES = ("nearest_even", "toward_zero")


def failures(
    unit: Unit, folder: Path, monkeypatch: pytest.MonkeyPatch, scenarios: str, fault: tuple[str, str]
) -> list[str]:
    """What the regression says of a unit with a fault in all lanes of its Verilog, which passes without it."""
    monkeypatch.setitem(UNITS, unit.name, unit)
    job = Job(unit.name, 1, folder / "run", scenarios=scenarios, engines=(Engine.COMPILED,))
    assert run_unit(job).failures == []
    old, new = fault
    text, times = re.subn(old, new, (job.folder / "one.v").read_text())
    assert times == unit.arguments.get("lanes", 1)
    faulty = folder / "faulty.v"
    faulty.write_text(text)
    return run_unit(replace(job, verilog=faulty)).failures


def unit_of(kind: Kind, **arguments: Any) -> Unit:
    lanes = {"lanes": 2} if kind is Kind.VECTOR else {}
    return Unit(name="one", kind=kind, arguments={"stages": 3, "registers": 8, **lanes, **arguments}, effort=0.03)


@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_counter_that_misses_one_event_in_one_mode_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Toward zero 0x7dff * 0x3e00 + 0x7dff stays 0x7dff, so the product is lost whole.
    fault = r"(round_watched_is_largest & )round_to_largest;", r"\g<1>1'h0;"
    unit = unit_of(kind, operands=(CBFLOAT16,), levels=(2,), roundings=_MODES, counters=True)
    (found,) = failures(unit, tmp_path, monkeypatch, "counted_events", fault)
    assert "products.swamped counts" in found


@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_flag_of_narrow_operands_that_stay_as_they_are_and_is_lost_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 0x01 * 0x01 is 2**-32, and the least float8_e5m2 is 2**-16: inexact and underflow.
    fault = r"assign step_flags\[1\] = .*;", "assign step_flags[1] = 1'h0;"
    unit = unit_of(kind, operands=(FLOAT8_E5M2,), inner="operand", levels=(2,))
    found = failures(unit, tmp_path, monkeypatch, "steps", fault)
    assert "float8_e5m2 level 2" in found[0]
    assert "underflow" in found[0]


def test_failure_line_of_operands_that_stay_as_they_are_has_no_wider_inner_format() -> None:
    # Otherwise, beside float16, float8_e5m2 would be taken for widened to float16.
    for operands, names in (
        ((FLOAT8_E5M2, FP16), ["float8_e5m2", "float16", "float8_e5m2"]),
        ((FP16, FLOAT8_E5M2), ["float16", "float8_e5m2"]),
    ):
        *_, found = prepare.__wrapped__(unit_of(Kind.MAC, operands=operands, inner="operand", levels=(2,)), 1, 0.01)
        assert found == names
        formats = [format_named(name) for name in found]
        assert [inner_format(formats, operand) for operand in operands] == list(operands)
