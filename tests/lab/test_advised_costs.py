"""The costs of the advisor's default table are those of the vector unit, kept and measured."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from golden.formats import FLOAT8_E4M3FN
from golden.torch.instruments.advise.costs import vector_unit
from hdl import VectorMac
from lab.pace.measure import products_per_cycle

KEPT = Path(__file__).resolve().parents[2] / "docs" / "results" / "pace.json"


def kept():
    """Return products per cycle of the vector unit by level, as they were measured."""
    table = json.loads(KEPT.read_text())["data"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    return [(int(row["level"]), row["products per cycle"]) for row in rows if row["unit"] == "`vector_mac`"]


def test_costs_of_the_advisor_are_those_of_the_results_page():
    rows = kept()
    assert {level for level, _ in rows} == {0, 1, 2}
    for level, pace in rows:
        assert f"{vector_unit(level, 32):.2f}" == pace
    assert any(f"{vector_unit(level, 16):.2f}" != pace for level, pace in rows)  # the page tells chunk lengths apart


@pytest.mark.long
@pytest.mark.parametrize(("level", "chunk"), [(0, 16), (1, 8), (1, 16), (2, 8), (2, 16)])
def test_costs_of_the_advisor_for_other_chunks_are_the_pace_of_the_simulated_unit(level, chunk):
    pace = products_per_cycle(VectorMac(lanes=4, stages=4, registers=8), level=level, chunk=chunk, chunks=4)
    assert Fraction(vector_unit(level, chunk)).limit_denominator(1000) == pace


def test_costs_of_the_advisor_for_8_bits_are_the_pace_of_the_simulated_unit_with_twice_the_lanes():
    unit = VectorMac(operands=(FLOAT8_E4M3FN,), lanes=8, stages=4, registers=8)
    pace = products_per_cycle(unit, level=1, chunk=8, chunks=3)
    assert Fraction(vector_unit(1, 8, FLOAT8_E4M3FN.width)).limit_denominator(1000) == pace
    assert pace == 2 * Fraction(vector_unit(1, 8)).limit_denominator(1000)
