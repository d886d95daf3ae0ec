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
