"""The pace of the units: what the table of the results page is made of."""

from dataclasses import replace
from fractions import Fraction

import pytest

from hdl import MultiplyAccumulate, VectorMac
from lab.fpga.report import published
from lab.pace.measure import products_per_beat, products_per_cycle
from lab.pace.report import PEERS, Pace, every_pace, figures, measured_units
from tools.results import Table, read


@pytest.mark.parametrize(("level", "pace"), [(0, 1), (1, Fraction(4, 5)), (2, Fraction(4, 5))])
def test_scalar_unit_gives_a_cycle_for_each_promotion(level, pace):
    unit = MultiplyAccumulate(stages=4)
    assert products_per_cycle(unit, level=level, chunk=4) == pace


@pytest.mark.parametrize(("level", "pace"), [(0, 2), (1, 4 * Fraction(8, 10)), (2, 4 * Fraction(8, 9))])
def test_vector_unit_gives_two_cycles_for_a_promotion_to_fp32_and_one_for_another(level, pace):
    unit = VectorMac(lanes=4, stages=4, registers=8)
    assert products_per_cycle(unit, level=level, chunk=8) == pace


def test_products_of_a_beat_are_one_or_as_many_as_lanes_of_the_level():
    assert [products_per_beat(MultiplyAccumulate(), level) for level in (0, 1, 2)] == [1, 1, 1]
    assert [products_per_beat(VectorMac(lanes=8), level) for level in (0, 1, 2)] == [4, 8, 8]


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
