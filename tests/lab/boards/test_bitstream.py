"""From a board's name to files for the tools, and from the tools' answers to words; no tool runs here."""

import json
import re
import sys
from functools import cache, partial
from pathlib import Path

import pytest

from lab.boards import __main__ as bitstream
from lab.boards import bitstream as making
from lab.boards.bitstream import prepare, read_report
from lab.boards.board import BOARDS, PllSettings, platform_of
from lab.boards.expectation import expect
from lab.boards.plan import Plan
from lab.boards.station import EngineStation, Station
from tools.errors import PlacementFailed
from tools.programs import Tool

pytestmark = pytest.mark.long

TINY = Plan(windows=2)
EXPECTED = 0x1234ABCD
STATIONS = {"": partial(Station, EXPECTED, plan=TINY), "engine": partial(EngineStation, rows=1, columns=1, memory=4096)}
REPORT = {
    "fmax": {"clk": {"achieved": 60.0, "constraint": 25.0}},
    "utilization": {"TRELLIS_COMB": {"used": 2500, "available": 83640}, "DCUA": {"used": 0, "available": 2}},
}


@pytest.fixture
def commands(monkeypatch):
    """Replace the tools by some that succeed at once, and list their commands."""
    asked = []

    def run(tool, arguments, folder, log):
        asked.append((tool.function.partition(":")[2], list(arguments)))
        if "--report" in arguments:
            (folder / arguments[arguments.index("--report") + 1]).write_text(json.dumps(REPORT))
        if "--bit" in arguments:
            (folder / arguments[arguments.index("--bit") + 1]).write_bytes(b"bits")

    monkeypatch.setattr(Tool, "run", run)
    monkeypatch.setattr(Tool, "version", "1.0")
    monkeypatch.setattr(bitstream, "expect", lambda plan: expect(TINY))
    monkeypatch.setattr(making, "prepare", lambda board, station, design, megahertz: prepared(board, design, megahertz))
    return asked


@cache
def prepared(board, design="", megahertz=None):
    """Return a build plan, made once for all tests; no test changes it."""
    return prepare(board, STATIONS[design], design=design, megahertz=megahertz)


@pytest.mark.parametrize("design", STATIONS)
@pytest.mark.parametrize("board", BOARDS)
def test_top_elaborates_on_every_board_with_its_pins_and_its_size(board, design):
    made, platform = prepared(board, design), platform_of(board)
    name = board.replace("-", "_") + ("_engine" if design else "")
    located = re.findall(r'LOCATE COMP "(\w+)"', made.files[f"{name}.lpf"])
    leds = [f"led_{number}__io" for number in range(4)]
    lines = ["uart_0__rx__io", "uart_0__tx__io"] if design else ["uart_0__tx__io"]
    assert sorted(located) == sorted([*leds, *lines, f"{platform.default_clk}_0__io"])
    size = re.search(r"-(\d+)F$", platform.device)[1]
    assert f"--{size}k" in json.loads(made.files[f"build_{name}.json"])["commands"][1]


def test_suffix_of_the_board_chooses_the_size():
    sizes = {board: platform_of(board).device for board in BOARDS if board.startswith("ulx3s")}
    assert sizes.pop("ulx3s") == "LFE5U-85F"
    assert sizes == {f"ulx3s-{size}f": f"LFE5U-{size}F" for size in (12, 25, 45, 85)}


def test_unknown_board_is_refused_with_the_names_of_the_others(capsys):
    with pytest.raises(SystemExit, match="2"):
        bitstream.main(["ulx3"])
    assert "board: got 'ulx3', must be one of ulx3s, ulx3s-12f, ulx3s-25f" in capsys.readouterr().err


def test_missing_amaranth_boards_is_told_with_what_installs_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "amaranth_boards.ulx3s", None)
    assert bitstream.main(["ulx3s"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("python -m lab.boards: amaranth-boards is not installed: run `make bitstream`")


def test_build_runs_the_tools_in_turn_and_tells_what_came_out(commands, tmp_path, capsys):
    assert bitstream.main(["ulx3s", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert [tool for tool, _ in commands] == ["run_yosys", "run_nextpnr_ecp5", "run_ecppack"]
    assert re.findall(r"^\[(\d)/5\]", said, re.MULTILINE) == list("12345")
    assert f"signature: {expect(TINY).signature:08x}" in said
    assert "clock: 25.0 MHz wanted, 60.0 MHz achieved" in said
    assert "cells: COMB 2500 of 83640\n" in said
    assert f"bitstream: {tmp_path / 'ulx3s.bit'}, 4 bytes" in said


def test_build_of_the_engine_has_its_own_name_and_publishes_its_figures(commands, tmp_path, capsys, monkeypatch):
    published = []
    monkeypatch.setattr(bitstream, "publish", published.append)
    monkeypatch.setitem(REPORT, "utilization", {**REPORT["utilization"], **{
        kind: {"used": 5, "available": 9} for kind in ("TRELLIS_FF", "DP16KD", "MULT18X18D")
    }})  # fmt: skip
    given = ["ulx3s", "--design", "engine", "-o", str(tmp_path)]
    assert bitstream.main(given) == 0
    said = capsys.readouterr().out
    assert "engine: 4 x 4 lanes, 256 KiB; the driver is hdl.engine.Engine.serial" in said
    assert f"bitstream: {tmp_path / 'ulx3s_engine.bit'}, 4 bytes" in said
    assert published == []
    assert bitstream.main([*given, "--update-docs"]) == 0
    [row] = published[0].tables[0].rows
    assert row == ("`ulx3s`", "4 × 4", "256 KiB", "2500 of 83640", *["5 of 9"] * 3, "60.0")


def test_figures_of_the_self_test_are_not_published(commands, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        bitstream.main(["ulx3s", "--update-docs", "-o", str(tmp_path)])
    assert "--update-docs: got the design selftest, must be engine" in capsys.readouterr().err


def test_bitstream_expects_what_the_golden_model_says_of_the_whole_round(monkeypatch):
    asked = []

    def build(board, station, folder, **how):
        asked.append((board, *station.args))
        raise PlacementFailed("this is far enough", Path("none.log"))

    monkeypatch.setattr(bitstream, "build", build)
    assert bitstream.main(["ulx3s"]) == 1
    assert asked == [("ulx3s", expect(Plan()).signature)]


def test_missed_timing_is_a_failure_that_leaves_no_bitstream(commands, tmp_path, capsys, monkeypatch):
    (tmp_path / "ulx3s.bit").write_bytes(b"of an earlier build")
    monkeypatch.setitem(REPORT, "fmax", {"clk": {"achieved": 60.0, "constraint": 100.0}})
    assert bitstream.main(["ulx3s", "--clock", "100", "-o", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"timing missed: 60.0 MHz achieved, 100.0 MHz wanted; log: {tmp_path / 'ulx3s.tim'}" in said
    assert [tool for tool, _ in commands] == ["run_yosys", "run_nextpnr_ecp5"]
    assert not (tmp_path / "ulx3s.bit").exists()


def test_failed_tool_is_a_failure_that_names_its_log(commands, tmp_path, capsys, monkeypatch):
    succeed = Tool.run

    def fail(tool: Tool, arguments: list[str], folder: Path, log: str) -> None:
        if tool.failure is PlacementFailed:
            (folder / log).write_text("ERROR: no room\n")
            raise PlacementFailed("it does not fit", folder / log)
        succeed(tool, arguments, folder, log)

    monkeypatch.setattr(Tool, "run", fail)
    assert bitstream.main(["ulx3s", "-o", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"placement failed: it does not fit; log: {tmp_path / 'ulx3s.nextpnr-ecp5.log'}\n    ERROR: no room" in said


def test_report_with_several_clocks_gives_the_one_nearest_to_being_missed():
    fmax = {"fast": {"achieved": 110.0, "constraint": 100.0}, "slow": {"achieved": 60.0, "constraint": 25.0}}
    wanted, achieved, cells = read_report(REPORT | {"fmax": fmax})
    assert (wanted, achieved) == (100.0, 110.0)
    assert cells == {"TRELLIS_COMB": (2500, 83640)}


@pytest.mark.parametrize("wanted", [50, 60, 62.5, 75, 80])
def test_pll_settings_give_the_wanted_clock_within_the_limits(wanted):
    found = PllSettings.find(25, wanted)
    assert 25 * found.feedback / found.input == pytest.approx(wanted)
    assert 400 <= wanted * found.output <= 800
    assert 25 / found.input >= 3.125


def test_top_with_another_clock_has_a_pll_that_makes_it():
    rtlil = prepare("ulx3s", STATIONS[""], megahertz=50).files["ulx3s.il"]
    [pll] = re.findall(r"cell \\EHXPLLL .*?\n +end\n", rtlil, re.DOTALL)
    parameters = dict(re.findall(r"parameter (?:signed )?\\(\w+) (\S+)", pll))
    assert [int(parameters[f"{name}_DIV"].rpartition("'")[2], 0) for name in ("CLKI", "CLKFB", "CLKOP")] == [1, 2, 12]
    assert "EHXPLLL" not in prepared("ulx3s").files["ulx3s.il"]


@pytest.mark.parametrize("wanted", ["0.1", "-25", "900", "25.01"])
def test_clock_that_no_pll_makes_is_refused(wanted, commands, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        bitstream.main(["ulx3s", f"--clock={wanted}", "-o", str(tmp_path)])
    assert f"clock: got {float(wanted):g} MHz, must be one that a PLL makes of 25 MHz" in capsys.readouterr().err
    assert commands == []
