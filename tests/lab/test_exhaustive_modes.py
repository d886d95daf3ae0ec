"""The exhaustive checks of converters in every rounding mode: their inputs, and faults that they see."""

import numpy as np
import pytest

from golden import FLOAT4_E2M1FN, FLOAT8_E4M3FN, FLOAT8_E5M2, FORMATS, Rounding
from lab.exhaustive import modes
from lab.exhaustive.check import run
from lab.exhaustive.modes import ROUNDS, mode_checks
from tests.lab.netlist_fault import with_a_changed_gate

pytestmark = pytest.mark.long

SOME = (FLOAT8_E5M2, FLOAT4_E2M1FN)


def test_modes_are_checked_of_every_source_of_at_most_16_bits():
    checks = mode_checks()
    sources = [fmt for fmt in FORMATS if fmt.width <= 16]
    assert [check.name for check in checks] == [f"netlists_{source}_in_modes" for source in sources]
    assert {check.total for check in checks} == {len(ROUNDS) << 16}
    assert set(ROUNDS) == {*(mode.value for mode in Rounding), 7}


@pytest.mark.parametrize("check", mode_checks(SOME), ids=lambda check: check.name)
def test_netlists_in_modes_are_right_on_every_code(check):
    outcome = run(check, 2)
    assert (outcome.count, outcome.examples, outcome.passed) == (check.total, [], True)


@pytest.mark.parametrize("which", [1, 12, 60])
def test_a_changed_gate_of_a_converter_in_modes_is_seen_with_its_operands(monkeypatch, which):
    with_a_changed_gate(monkeypatch, which)
    outcome = run(mode_checks(SOME)[0], 1)
    assert outcome.complete
    assert outcome.wrong > 0
    assert outcome.examples[0].startswith("float8_e5m2 to float4_e2m1fn, mode ")


@pytest.mark.parametrize("mode", Rounding, ids=str)
def test_a_fault_in_one_mode_alone_is_seen(monkeypatch, mode):
    right = modes.golden.convert

    def wrong(codes, *given, rounding, **options):
        bits, flags = right(codes, *given, rounding=rounding, **options)
        return np.where((rounding is mode) & (codes == 0x41), bits ^ 1, bits), flags

    monkeypatch.setattr(modes.golden, "convert", wrong)
    outcome = run(mode_checks((FLOAT8_E4M3FN, FLOAT4_E2M1FN))[0], 1)
    rounds = ROUNDS.count(mode.value)
    assert outcome.wrong == rounds << 8
    assert f"mode {mode.value}, bits: 0x41, " in outcome.examples[0]
