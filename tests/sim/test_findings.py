"""Findings of a run, each kind by itself: a missing one would pass a wrong unit."""

from dataclasses import replace

import numpy as np
import pytest

from sim.bench.episode import Ran
from sim.bench.findings import Context, findings
from sim.counts import COUNTERS
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario

PORT = Port(Fields({"code": 16}), Fields({"bits": 16}))
CONTEXT = Context("unit", 1, 1.0, PORT, [])
CODES = (0x3C00, 0xC000)


def scenario(**given) -> Scenario:
    codes = np.array(CODES, np.uint64)
    return replace(Scenario("two", codes, codes, np.arange(2), ends=np.arange(2)), **given)


def explained(context, scenario, index, actual) -> str:
    return f"answer {index}: got {actual}"


def found(ran: list[Ran], context: Context = CONTEXT, **given) -> list[str]:
    """Return all findings but for the last line, the command."""
    lines = findings(context, scenario(**given), ran, explained)
    assert not lines or lines[-1] == "repeat: python -m sim --seed 1 --units unit --scenarios two"
    return lines[:-1]


def right(**given) -> Ran:
    return replace(Ran(list(CODES), accepted=2, cycles=2), **given)


def test_findings_of_right_answers_are_none() -> None:
    assert found([right()]) == []
    assert found([right()], cycles=2) == []


def test_findings_answer_that_never_came_is_one() -> None:
    assert found([right(answers=[0x3C00])]) == ["1 of 2 answers: unanswered", "answer 1: got nothing"]
    both = ["2 of 2 answers: unanswered", "answer 0: got nothing", "answer 1: got nothing"]
    assert found([right(answers=[])]) == both


def test_findings_answer_with_a_wrong_bit_is_one() -> None:
    assert found([right(answers=[0x3C00, 0xC001])]) == ["1 of 2 answers: mismatches", f"answer 1: got {0xC001}"]


@pytest.mark.parametrize(("answer", "said"), [(0x3C00, "{'bits': 15360}"), (None, "unknown bits")])
def test_findings_answer_too_many_is_one(answer: int | None, said: str) -> None:
    assert found([right(answers=[*CODES, answer])]) == [f"answer that nobody expects: {said}"]


def test_findings_payload_that_was_not_accepted_is_one() -> None:
    assert found([right(accepted=1)]) == ["only 1 of 2 payloads were accepted"]


@pytest.mark.parametrize("cycles", [1, 3])
def test_findings_products_that_took_other_than_their_cycles_are_one(cycles: int) -> None:
    assert found([right(cycles=cycles)], cycles=2) == [f"2 products took {cycles} cycles, must be 2"]


def test_findings_broken_promises_of_the_stream_are_all_told() -> None:
    said = ["cycle 3: valid fell", "cycle 9: the answer changed"]
    assert found([right(broken_promises=said)]) == said


def test_findings_broken_promise_names_its_episode() -> None:
    episodes = np.array([[0, 0, 5], [2, 2, 0]])
    ran = [right(), Ran(broken_promises=["cycle 3: valid fell"])]
    assert found(ran, episodes=episodes) == ["cycle 3: valid fell (episode 1 of 2)"]


@pytest.mark.parametrize("at", [0, 1])
def test_findings_broken_promise_of_any_episode_is_told(at: int) -> None:
    ran = [right(answers=[], accepted=0), right()]
    ran[at].broken_promises.append("cycle 3: valid fell")
    assert found(ran, episodes=np.array([[0, 0, 5], [0, 0, 0]])) == [f"cycle 3: valid fell (episode {at} of 2)"]


def test_findings_scenario_that_expects_nothing_is_one() -> None:
    nothing = np.zeros(0, np.uint64)
    ran = [Ran(accepted=2, cycles=2)]
    assert found(ran, answers=nothing) == ["the scenario expects no answer: nothing was tested"]


@pytest.mark.parametrize("episodes", [1, 2])
def test_findings_episode_that_was_not_run_is_one(episodes: int) -> None:
    ran = [right()][: episodes - 1]
    plan = np.array([[0, 0, 5], [2, 2, 0]])[:episodes]
    assert found(ran, episodes=plan) == [f"{episodes - 1} of {episodes} episodes were run"]


def test_findings_counters_that_were_not_read_are_one() -> None:
    counting = replace(CONTEXT, port=replace(PORT, counters="ports"))
    counts = np.zeros((2, len(COUNTERS)), np.int64)
    assert found([right(counts=[0] * len(COUNTERS))], counting, counts=counts) == []
    assert found([right()], counting, counts=counts) == ["the counters were not read"]


def test_findings_counter_that_miscounts_behind_an_episode_that_was_cut_off_is_one() -> None:
    counting = replace(CONTEXT, port=replace(PORT, counters="ports"))
    one = [1, *[0] * (len(COUNTERS) - 1)]
    ran = [Ran(), right(counts=one)]
    said = found(
        ran, counting, counts=np.zeros((2, len(COUNTERS)), np.int64), episodes=np.array([[0, 0, 5], [0, 0, 0]])
    )
    assert said == [f"{COUNTERS[0]} counts 1, must be 0 (episode 1 of 2)"]


@pytest.mark.parametrize("at", range(len(COUNTERS)))
def test_findings_any_counter_that_miscounts_is_one(at: int) -> None:
    counting = replace(CONTEXT, port=replace(PORT, counters="ports"))
    wrong = [int(place == at) for place in range(len(COUNTERS))]
    said = found([right(counts=wrong)], counting, counts=np.zeros((2, len(COUNTERS)), np.int64))
    assert said == [f"{COUNTERS[at]} counts 1, must be 0"]
