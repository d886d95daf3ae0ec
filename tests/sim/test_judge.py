"""cocotb's runner does not fail by itself: the judge must."""

from pathlib import Path

import pytest

from sim.run.judge import judge

PASSED = '<testcase classname="tb" name="t/scenario=steps" time="1"/>'


def results(folder: Path, cases: str) -> Path:
    path = folder / "results.xml"
    path.write_text(f'<testsuites><testsuite name="tb">{cases}</testsuite></testsuites>')
    return path


def test_judge_all_scenarios_passed_is_clean(tmp_path: Path) -> None:
    assert judge(results(tmp_path, PASSED), ["steps"]).failures == []


def test_judge_without_results_fails(tmp_path: Path) -> None:
    judgement = judge(tmp_path / "results.xml", ["steps"])
    assert "without results" in judgement.failures[0]
    assert judgement.is_broken


def test_judge_zero_tests_fails(tmp_path: Path) -> None:
    judgement = judge(results(tmp_path, ""), [])
    assert "no test ran" in judgement.failures[0]
    assert judgement.is_broken


def test_judge_missing_scenario_fails(tmp_path: Path) -> None:
    judgement = judge(results(tmp_path, PASSED), ["steps", "hazards"])
    assert "hazards" in judgement.failures[0]


def test_judge_skipped_test_fails(tmp_path: Path) -> None:
    skipped = PASSED.replace("/>", "><skipped/></testcase>")
    assert "skipped" in judge(results(tmp_path, skipped), ["steps"]).failures[0]


@pytest.mark.parametrize(("error_type", "is_broken"), [("AssertionError", False), ("KeyError", True)])
def test_judge_failed_test_tells_comparison_from_crash(tmp_path: Path, error_type: str, is_broken: bool) -> None:
    failed = PASSED.replace("/>", f'><failure message="3 answers" type="{error_type}">text</failure></testcase>')
    judgement = judge(results(tmp_path, failed), ["steps"])
    assert "3 answers" in judgement.failures[0]
    assert judgement.is_broken is is_broken


@pytest.mark.parametrize("other", ["steps_sampled", "all_steps"])
def test_judge_scenario_of_a_longer_name_does_not_stand_for_a_missing_one(tmp_path: Path, other: str) -> None:
    judgement = judge(results(tmp_path, PASSED.replace("steps", other)), [other, "steps"])
    assert judgement.failures == ["1 of 2 scenarios did not run: steps"]


def test_judge_test_that_ended_with_an_error_fails(tmp_path: Path) -> None:
    ended = PASSED.replace("/>", '><error message="it ended" type="AssertionError">text</error></testcase>')
    judgement = judge(results(tmp_path, ended), ["steps"])
    assert "it ended" in judgement.failures[0]
    assert judgement.is_broken


def test_judge_every_failure_of_every_suite_is_told(tmp_path: Path) -> None:
    path = tmp_path / "results.xml"
    wrong = PASSED.replace("/>", '><failure message="wrong" type="AssertionError"/></testcase>')
    suites = (f'<testsuite name="{name}">{PASSED}{wrong}</testsuite>' for name in ("one", "two"))
    path.write_text(f"<testsuites>{''.join(suites)}</testsuites>")
    assert judge(path, ["steps"]).failures == ["t/scenario=steps: wrong"] * 2
