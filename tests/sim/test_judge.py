"""The judge of a run, since cocotb's runner does not fail by itself, and the predictions of reductions."""

from pathlib import Path

import numpy as np
import pytest

from golden import BF16, CBFLOAT16, dot
from sim.run.judge import judge
from sim.stimulus import reductions
from sim.stimulus.operands import random_codes
from sim.stimulus.order import Order
from sim.stimulus.reductions import Segment, predict

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


OPERANDS = (CBFLOAT16, BF16)


def chains(chunk):
    """Return chains of one or two reductions of all lengths up to 70, of any operands."""
    rng = np.random.default_rng(chunk)
    made = []
    for length in (*range(1, 20), 31, 32, 33, 63, 64, 65, 70):
        for level in range(3):
            index = length % 2
            parts = [random_codes(OPERANDS[index], count, rng).tolist() for count in (length, length, 3, 3)]
            first = Segment(index, level, *parts[:2], chunk=chunk)
            made.append([first, Segment(index, level, *parts[2:], first=False, chunk=chunk)][: 1 + length % 3])
    return made


def wrong(made):
    """Return the reductions whose answers differ from a call of golden for each alone."""
    found = []
    for chain in made:
        start, raised = None, 0
        for one in chain:
            operands = (np.array(codes, np.uint16) for codes in (one.a, one.b))
            given = {"operand": OPERANDS[one.format], "level": one.level, "chunk": one.chunk or None}
            start, flags = dot(*operands, **given, initial=start, return_flags=True)
            raised |= int(flags)
            found += [one] * ((one.result, one.flags) != (int(start), raised))
    return found


@pytest.mark.parametrize("chunk", [0, 1, 2, 7, 32, 100])
def test_reductions_of_many_lengths_predicted_together_are_golden_s_one_by_one(chunk):
    made = chains(chunk)
    predict(made, OPERANDS)
    assert not wrong(made)


def test_reduction_that_is_lengthened_over_the_end_of_a_chunk_is_seen(monkeypatch):
    monkeypatch.setattr(reductions, "_length_class", lambda segment, goes_on: 0)
    made = chains(7)
    predict(made, OPERANDS)
    assert wrong(made)


def test_order_gives_products_as_they_came_one_by_one_in_rows_and_from_another_order():
    first, second, third = (Segment(0, 0, [1, 2, 3], [1, 1, 1]) for _ in range(3))
    order = Order([(first, 0), (second, 0)])
    order.extend(np.array([[0, 1, 0, 1], [1, 1, 2, 2]]))
    order += [(third, 0)]
    other = Order([(third, 1), (first, 0)])
    order += other
    wanted = [
        (first, 0),
        (second, 0),
        (first, 1),
        (second, 1),
        (first, 2),
        (second, 2),
        (third, 0),
        (third, 1),
        (first, 0),
    ]
    assert len(order) == len(wanted)
    for at, (segment, place) in enumerate(order):
        assert segment is wanted[at][0]
        assert place == wanted[at][1]
        assert order[at] == (segment, place)
    assert [order.segments[which] for which in order.columns()[0].tolist()] == [segment for segment, _ in wanted]
