"""The pace of the units: the table of the results page, and the costs that the advisor takes from it."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from golden.formats import CBFLOAT16, FLOAT8_E4M3FN
from golden.torch.instruments.advise.costs import vector_unit
from hdl import MatrixMac, MultiplyAccumulate, VectorMac
from lab.fpga.report import published
from lab.pace.measure import products_per_beat, products_per_cycle
from lab.pace.report import PEERS, Pace, every_pace, figures, measured_units
from tools.results import Table, read


@pytest.mark.parametrize(("level", "pace"), [(0, 1), (1, Fraction(4, 5)), (2, Fraction(4, 5))])
def test_scalar_unit_gives_a_cycle_for_each_promotion(level, pace):
    unit = MultiplyAccumulate(stages=4)
    assert products_per_cycle(unit, level=level, chunk=4) == pace


@pytest.mark.turns
@pytest.mark.parametrize(("level", "pace"), [(0, 2), (1, 4 * Fraction(8, 10)), (2, 4 * Fraction(8, 9))])
def test_vector_unit_gives_two_cycles_for_a_promotion_to_fp32_and_one_for_another(level, pace):
    unit = VectorMac(lanes=4, stages=4, registers=8)
    assert products_per_cycle(unit, level=level, chunk=8) == pace


@pytest.mark.turns
@pytest.mark.parametrize(("level", "pace"), [(0, 2), (1, 2 * Fraction(8, 9)), (2, 2 * Fraction(8, 9))])
def test_array_gives_a_cycle_of_all_lanes_for_each_promotion(level, pace):
    unit = MatrixMac(operands=(CBFLOAT16,), rows=1, columns=2)
    assert products_per_cycle(unit, level=level, chunk=8) == pace


@pytest.mark.turns
@pytest.mark.parametrize("level", [1, 2])
def test_array_without_level_0_promotes_beside_its_lanes(level):
    unit = MatrixMac(operands=(CBFLOAT16,), rows=1, columns=2, levels=(1, 2))
    assert products_per_cycle(unit, level=level, chunk=8) == 2


def test_measured_unit_is_simulated_without_the_primitive_of_its_family():
    build = measured_units(published())["mac_cbfloat16_level_2"]
    assert products_per_cycle(build(), level=2, chunk=4, chunks=3) == Fraction(4, 5)


def test_products_of_a_beat_are_one_or_as_many_as_lanes_of_the_level():
    assert [products_per_beat(MultiplyAccumulate(), level) for level in (0, 1, 2)] == [1, 1, 1]
    assert [products_per_beat(VectorMac(lanes=8), level) for level in (0, 1, 2)] == [4, 8, 8]
    assert [products_per_beat(MatrixMac(rows=2, columns=3), level) for level in (0, 1, 2)] == [6, 6, 6]


def test_row_of_the_table_is_pace_times_frequency_and_that_by_area():
    row = Pace("mac", "cbfloat16", 1, Fraction(32, 33), 165.0, 1280)
    assert (row.rate, row.density) == (160.0, 125.0)
    table = every_pace([row]).markdown()
    assert "| `mac` | cbfloat16 | 1 | 0.97 | 165 | 160 | 1280 | 125 |" in table
    assert all(peer.name in table for peer in PEERS)


def test_table_of_the_page_has_a_row_for_each_unit_unless_its_formats_differ():
    same = [Pace("mac", fmt, level, Fraction(32, 32 + level), 165.0, 1280) for fmt in ("a", "b") for level in (0, 1)]
    other = [replace(row, format="c", products_per_cycle=Fraction(1, 2)) for row in same[:2]]
    table = figures(every_pace(same + other))
    assert list(table.rows[:2]) == [
        ("`mac`", "a, b", "0 · 1", "1280", "165", "1.00 · 0.97", "165 · 160", "129 · 125"),
        ("`mac`", "c", "0 · 1", "1280", "165", "0.50 · 0.50", "82 · 82", "64 · 64"),
    ]
    assert [row[0] for row in table.rows[2:]] == [peer.name for peer in PEERS]


def test_table_of_the_page_is_made_of_all_rows_that_are_kept():
    kept = read("pace")
    assert [list(row) for row in figures(Table(**kept.data)).rows] == kept.tables[0].rows
    assert len(kept.tables[0].rows) < len(kept.data["rows"]) / 2


def test_page_tells_the_pace_of_every_measured_unit():
    told = {row[0] for row in read("pace").tables[0].rows}
    assert {f"`{name}`" for name in measured_units(published())} <= told


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


@pytest.mark.turns
def test_costs_of_the_advisor_for_8_bits_are_the_pace_of_the_simulated_unit_with_twice_the_lanes():
    unit = VectorMac(operands=(FLOAT8_E4M3FN,), lanes=8, stages=4, registers=8)
    pace = products_per_cycle(unit, level=1, chunk=8, chunks=3)
    assert Fraction(vector_unit(1, 8, FLOAT8_E4M3FN.width)).limit_denominator(1000) == pace
    assert pace == 2 * Fraction(vector_unit(1, 8)).limit_denominator(1000)
