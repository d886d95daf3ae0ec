"""The launcher, end to end: it passes when it should, and fails whenever something is missing."""

import contextlib
import dataclasses
import os
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest
from junitparser import JUnitXml

import sim.__main__ as launcher
from sim.run import options, pool, report, simulate
from sim.run.compiled import Engine
from sim.run.outcome import Outcome
from sim.run.simulate import Job, prepare, run_unit
from sim.scenario import Scenario
from sim.units import UNITS

from ..shared import full_disk

SMALL = [
    "--units",
    "float16_to_float32_stages_3",
    "--scenarios",
    "stream_idle_none*",
    "--effort",
    "0.05",
    "--jobs",
    "1",
]


def test_regression_of_small_unit_passes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launcher.main([*SMALL, "--seed", "3", "--folder", str(tmp_path)]) == 0
    shown = capfd.readouterr().out
    assert "seed 3" in shown
    assert "float16_to_float32_stages_3" in (tmp_path / "sim" / "table.md").read_text()
    xml = JUnitXml.fromfile(str(tmp_path / "sim" / "results.xml"))
    assert (xml.tests, xml.failures, xml.errors) == (4, 0, 0)


def test_regression_of_a_share_runs_the_other_units_as_machine_code_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(
        launcher, "run_all", lambda given, *rest: jobs.extend(given) or [Outcome(job.unit) for job in given]
    )
    names = [unit for unit in UNITS if unit.startswith("mac_")]
    for number in (1, 2, 3):
        launcher.main(["--units", "mac_*", "--share", f"{number}/3", "--folder", str(tmp_path)])
    assert [job.unit for job in jobs] == 3 * names
    simulated = [job.unit for job in jobs if Engine.SIMULATOR in job.engines]
    # Machine code does not drive the bus of counters.
    assert {name: simulated.count(name) for name in names} == {
        name: 1 + 2 * (name == "mac_axi_counters") for name in names
    }
    assert all(Engine.COMPILED in job.engines for job in jobs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--units", "mac_bfloat17"],
            "got 'mac_bfloat17', must be some of those that --help lists, or have a *; did you mean",
        ),
        ([*SMALL, "--sim", "modelsim"], "must be one of icarus, verilator"),
        ([*SMALL, "--folder", "/proc/nothing"], "sim: --folder: got /proc/nothing, where nothing can be written"),
    ],
)
def test_regression_of_a_wrong_argument_names_it(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launcher.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_regression_without_simulator_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launcher.main(SMALL) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "iverilog" in lines[0]
    assert "not found" in lines[0]


def test_regression_bad_seed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SEED", "one")
    with pytest.raises(SystemExit):
        launcher.main(SMALL)
    assert "SEED: got 'one', must be a whole number" in capsys.readouterr().err


def test_unit_without_matching_scenario_fails(small_job: Job) -> None:
    outcome = run_unit(dataclasses.replace(small_job, scenarios="nothing_like_it"))
    assert not outcome.passed
    assert "must be some of all_codes" in "".join(outcome.failures) or "must be some of" in "".join(outcome.failures)


def test_scenario_with_a_typo_is_answered_with_the_nearest(small_job: Job) -> None:
    (failure,) = run_unit(dataclasses.replace(small_job, scenarios="boundary_code")).failures
    assert "; did you mean boundary_codes?" in failure


@pytest.mark.parametrize("scenarios", ["nosuch", "resets,boundary_code", "stream*,nosuch*"])
def test_regression_of_a_scenario_that_there_is_not_does_not_start(
    scenarios: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert launcher.main([*SMALL, "--scenarios", scenarios, "--folder", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"sim: scenarios: got {scenarios.split(',')[-1]!r}, must be some of all_blocks, " in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("value", "waves"), [("1", True), ("0", False), ("", False), ("x", None)])
def test_regression_waves_of_the_environment_are_1_or_0(
    value: str, waves: bool | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WAVES", value)
    if waves is None:
        with pytest.raises(SystemExit):
            options.parse([], "sim", "")
        assert "WAVES: got 'x', must be 1 or 0" in capsys.readouterr().err
    else:
        assert options.parse([], "sim", "").waves is waves


def test_regression_on_a_full_disk_names_the_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    passed = Outcome("float16_to_float32_stages_3", vectors=1)
    monkeypatch.setattr(launcher, "run_all", lambda *_: [passed])
    monkeypatch.setattr(launcher, "figures", lambda _: type("Figures", (), {"markdown": lambda self: "x" * 2000})())
    with full_disk():
        assert launcher.main([*SMALL, "--folder", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said == f"sim: --folder: got {tmp_path}, where nothing can be written: [Errno 27] File too large\n"


def test_regression_stopped_by_interrupt_says_so_in_one_line_with_the_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(launcher, "run_all", interrupted)
    assert launcher.main([*SMALL, "--seed", "7", "--folder", str(tmp_path)]) == 130
    said = capsys.readouterr().err
    assert said == "sim: stopped by Ctrl-C: 0 of 1 unit ended, nothing is kept of this run; --seed 7 repeats it\n"


def test_pool_ends_its_processes_on_an_interrupt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = []

    class Executor(contextlib.nullcontext[None]):
        def __init__(self, *given: object, **options: object) -> None:
            super().__init__(self)

        def submit(self, run: object, job: Job) -> Future[Outcome]:
            raise KeyboardInterrupt

        def shutdown(self, **how: bool) -> None:
            ended.append(how)

    monkeypatch.setattr(pool, "ProcessPoolExecutor", Executor)
    monkeypatch.setattr("tools.interrupts._end_descendants", lambda but: None)
    with pytest.raises(KeyboardInterrupt):
        pool.run_all([Job("mac", 1, tmp_path)], 1, lambda outcome: None)
    assert ended == [{"cancel_futures": True}]


@pytest.mark.parametrize(("scenarios", "waveforms"), [("boundary_codes", 1), ("", 0)])
def test_waves_of_a_named_scenario_are_written_although_it_runs_as_machine_code(
    small_job: Job, monkeypatch: pytest.MonkeyPatch, scenarios: str, waveforms: int
) -> None:
    monkeypatch.setattr(simulate, "prepare", lambda *given: ([s for s in prepare(*given)[0] if s.is_bulk], set(), []))
    outcome = run_unit(dataclasses.replace(small_job, scenarios=scenarios, waves=True))
    assert outcome.passed
    assert outcome.vectors > 2000
    assert len(list(small_job.folder.rglob("*.fst"))) == waveforms


@pytest.mark.parametrize("engines", [(), (Engine.SIMULATOR,)], ids=["none", "simulator"])
def test_unit_whose_scenarios_no_engine_runs_is_broken(small_job: Job, engines: tuple[Engine, ...]) -> None:
    # Machine code alone runs all codes: its vectors were counted although a simulator had none of them.
    outcome = run_unit(dataclasses.replace(small_job, scenarios="boundary_codes", engines=engines))
    assert (outcome.vectors, outcome.passed, outcome.is_broken) == (0, False, True)
    assert outcome.failures == ["no vectors: nothing was compared"]


@pytest.mark.parametrize(
    ("status", "result", "failures", "is_broken"),
    [
        (0, "", [], False),
        (1, "", ["the simulator ended with status 1; see simulation.log"], True),
        (-11, "", ["the simulator ended with status -11; see simulation.log"], True),
        (1, '<failure message="1 of 2 answers" type="AssertionError"/>', ["t/scenario=one: 1 of 2 answers"], False),
        (0, '<failure message="1 of 2 answers" type="AssertionError"/>', ["t/scenario=one: 1 of 2 answers"], False),
        (1, '<error message="it ended"/>', ["t/scenario=one: it ended\n"], True),
    ],
)
def test_simulator_that_ends_badly_fails_and_so_does_a_scenario_that_does(
    monkeypatch: pytest.MonkeyPatch, small_job: Job, status: int, result: str, failures: list[str], is_broken: bool
) -> None:
    small_job.folder.mkdir()
    suite = f'<testsuite name="tb"><testcase name="t/scenario=one">{result}</testcase></testsuite>'
    (small_job.folder / "results.xml").write_text(f"<testsuites>{suite}</testsuites>")
    monkeypatch.setattr(simulate, "_simulate", lambda *given: (status, 1.0))
    outcome = Outcome("unit")
    simulate._run_simulator(small_job, UNITS[small_job.unit], [], ["one"], outcome)
    assert (outcome.failures, outcome.is_broken, outcome.passed) == (failures, is_broken, not failures)


@pytest.mark.parametrize(
    ("unit", "effort", "scenarios", "failures"),
    [
        ("float16_to_bfloat16", 1.0, "", ["coverage: register bits that never change: a[0]", "coverage: 1 of 1 bins"]),
        # Little stimulus need not move every register bit; the bins that are required are asked of it all the same.
        ("float16_to_float32_stages_3", 1.0, "", ["coverage: 1 of 1 bins"]),
        ("float16_to_float32_stages_3", 0.9, "", []),
        ("float16_to_float32_stages_3", 1.0, "stream*", []),
    ],
)
def test_unit_that_misses_coverage_fails_where_all_of_its_stimulus_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unit: str, effort: float, scenarios: str, failures: list[str]
) -> None:
    def short(*given: object) -> tuple[list[Scenario], set[str], list[str]]:
        made, _, formats = prepare(*given)  # type: ignore[arg-type]
        return [one for one in made if one.name == "stream_idle_none_backpressure_none"], {"never/met"}, formats

    monkeypatch.setattr(simulate, "prepare", short)
    monkeypatch.setattr(Outcome, "stuck", ["a[0]"])
    job = Job(unit, 1, tmp_path / "run", effort=effort, scenarios=scenarios, engines=(Engine.COMPILED,))
    said = run_unit(job).failures
    assert [line.startswith(must) for line, must in zip(said, failures, strict=True)] == [True] * len(failures)


def test_unit_of_which_no_coverage_is_required_is_broken(monkeypatch: pytest.MonkeyPatch, small_job: Job) -> None:
    made, _, formats = prepare(UNITS[small_job.unit], small_job.seed, 0.05)
    monkeypatch.setattr(simulate, "prepare", lambda *given: (made[-1:], set(), formats))
    job = dataclasses.replace(small_job, scenarios="", engines=(Engine.COMPILED,))
    assert run_unit(job).passed
    outcome = run_unit(dataclasses.replace(job, effort=1.0))
    assert outcome.failures == ["no coverage is required: whatever was driven would be enough"]
    assert outcome.is_broken


def test_stimulus_that_a_reset_cuts_off_covers_nothing_and_is_not_counted(small_job: Job) -> None:
    # Its coverage is counted when it is made: of all payloads, though most are never driven.
    unit, compiled = UNITS[small_job.unit], (Engine.COMPILED,)
    scenarios, *_ = prepare(unit, small_job.seed, unit.effort)
    resets = next(scenario for scenario in scenarios if scenario.name == "resets")
    outcome = run_unit(dataclasses.replace(small_job, scenarios="resets", effort=1.0, engines=compiled))
    assert outcome.passed
    assert resets.coverage
    # Only the last of its 32 episodes runs to its end: the answers of the others are not required.
    assert (len(resets.answers), resets.due, outcome.vectors) == (3200, 100, 100)
    assert {name for name in outcome.bins if not name.startswith("reset/")} == set()


def test_unit_that_never_answers_fails(small_job: Job, tmp_path: Path) -> None:
    silent = tmp_path / "silent.v"
    ports = "input clk, input rst, input [15:0] i__payload, input i__valid, output i__ready,"
    ports += " output [36:0] o__payload, output o__valid, input o__ready"
    silent.write_text(
        f"module {small_job.unit}({ports});\n"
        "  assign i__ready = 1; assign o__valid = 0; assign o__payload = 0;\nendmodule\n"
    )
    outcome = run_unit(dataclasses.replace(small_job, verilog=silent))
    assert not outcome.passed
    assert not outcome.is_broken
    assert "unanswered" in outcome.failures[0]
    assert "python -m sim --seed 1 --units float16_to_float32_stages_3 --scenarios" in outcome.failures[0]


def test_unit_that_does_not_compile_is_broken(small_job: Job, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.v"
    wrong.write_text("module nothing; endmodule\n")
    outcome = run_unit(dataclasses.replace(small_job, verilog=wrong))
    assert outcome.is_broken
    assert not outcome.passed


def test_outcome_with_coverage_hole_names_it() -> None:
    outcome = Outcome("unit", required={"tie", "exact"})
    outcome.bins["exact"] = 3
    assert outcome.holes == ["tie"]


def test_slow_units_are_started_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = []

    class Executor(contextlib.nullcontext[None]):
        def __init__(self, *given: object, **options: object) -> None:
            super().__init__(self)

        def submit(self, run: object, job: Job) -> Future[Outcome]:
            started.append(job.unit)
            future: Future[Outcome] = Future()
            future.set_result(Outcome(job.unit))
            return future

    monkeypatch.setattr(pool, "ProcessPoolExecutor", Executor)
    names = ["float32_to_float16", "mac_stages_1", "mac", "vector_mac_no_flags", "vector_mac_lanes_8", "vector_mac"]
    outcomes = pool.run_all([Job(name, 1, tmp_path) for name in names], 2, lambda outcome: None)
    assert [outcome.unit for outcome in outcomes] == names
    assert started == [
        "vector_mac_lanes_8", "vector_mac", "vector_mac_no_flags", "mac", "mac_stages_1", "float32_to_float16",
    ]  # fmt: skip


def test_conclusion_counts_failures_and_holes_and_the_table_has_every_unit() -> None:
    passed = Outcome("mac", vectors=1200, required={"a", "b"}, bins=Counter(a=1, b=1))
    failed = [dataclasses.replace(passed, failures=["wrong"]) for _ in range(2)]
    outcomes = [passed, failed[0], dataclasses.replace(failed[1], bins=Counter(a=1))]
    said = report.conclusion(outcomes)
    assert said == "3,600 vectors on 3 units: 2 failed, 1 of the required coverage bins missed"
    assert [row[:3] for row in report.figures(outcomes).rows] == [
        ("`mac`", "pass", "1,200"), ("`mac`", "FAIL", "1,200"), ("`mac`", "FAIL", "1,200"),
    ]  # fmt: skip


def test_environment_is_left_alone_by_the_tests() -> None:
    assert "CBFLOAT_SIM_RUN" not in os.environ
