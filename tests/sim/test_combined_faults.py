"""Units of combined parameters: deliberate faults in what only they have, which the regression must find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import data

from golden import CBFLOAT16, FLOAT8_E5M2, FP16, Flag, format_named
from hdl.catalogue import Kind, Unit
from hdl.cores import outcome
from hdl.cores.result import flags_layout
from hdl.mac import lane
from sim.bench.explain_reduction import inner_format
from sim.run.compiled import Engine
from sim.run.simulate import Job, prepare, run_unit
from sim.units import UNITS

_MODES = ("nearest_even", "toward_zero")


def failures(unit: Unit, folder: Path, monkeypatch: pytest.MonkeyPatch, scenarios: str) -> list[str]:
    """What the regression says of a unit as it is built now."""
    monkeypatch.setitem(UNITS, unit.name, unit)
    return run_unit(Job(unit.name, 1, folder / "run", scenarios=scenarios, engines=(Engine.COMPILED,))).failures


def unit_of(kind: Kind, **arguments: Any) -> Unit:
    lanes = {"lanes": 2} if kind is Kind.VECTOR else {}
    return Unit(name="one", kind=kind, arguments={"stages": 3, "registers": 8, **lanes, **arguments}, effort=0.03)


@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_counter_that_misses_one_event_in_one_mode_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Toward zero 0x7dff * 0x3e00 + 0x7dff stays 0x7dff, so the product is lost whole.
    def without_largest(formats: Any, index: Any, rounded: Any) -> Any:
        return is_swamped(formats, index, rounded.but(watched=rounded.watched.but(is_largest=0)))

    unit = unit_of(kind, operands=(CBFLOAT16,), levels=(2,), roundings=_MODES, counters=True)
    assert failures(unit, tmp_path, monkeypatch, "counted_events") == []
    is_swamped = outcome.is_swamped
    monkeypatch.setattr(outcome, "is_swamped", without_largest)
    (found,) = failures(unit, tmp_path, monkeypatch, "counted_events")
    assert "products.swamped counts" in found


@pytest.mark.parametrize("kind", [Kind.MAC, Kind.VECTOR])
def test_flag_of_narrow_operands_that_stay_as_they_are_and_is_lost_is_found(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 0x01 * 0x01 is 2**-32, and the least float8_e5m2 is 2**-16: inexact and underflow.
    def without_underflow(*given: Any, **named: Any) -> Any:
        finished = finish(*given, **named)
        return finished.but(flags=data.View(flags_layout(), finished.flags.as_value() & ~Flag.UNDERFLOW & 31))

    unit = unit_of(kind, operands=(FLOAT8_E5M2,), inner="operand", levels=(2,))
    assert failures(unit, tmp_path, monkeypatch, "steps") == []
    finish = lane.finish
    monkeypatch.setattr(lane, "finish", without_underflow)
    found = failures(unit, tmp_path, monkeypatch, "steps")
    assert "float8_e5m2 level 2" in found[0]
    assert "underflow" in found[0]


def test_failure_line_of_operands_that_stay_as_they_are_has_no_wider_inner_format() -> None:
    # Beside float16, chunks of float8_e5m2 were taken for sums in float16.
    for operands, names in (
        ((FLOAT8_E5M2, FP16), ["float8_e5m2", "float16", "float8_e5m2"]),
        ((FP16, FLOAT8_E5M2), ["float16", "float8_e5m2"]),
    ):
        *_, found = prepare.__wrapped__(unit_of(Kind.MAC, operands=operands, inner="operand", levels=(2,)), 1, 0.01)
        assert found == names
        formats = [format_named(name) for name in found]
        assert [inner_format(formats, operand) for operand in operands] == list(operands)
