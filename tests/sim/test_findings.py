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
    """Return all findings except the last line, the command."""
    lines = findings(context, scenario(**given), ran, explained)
    assert not lines or lines[-1] == "repeat: python -m sim --seed 1 --units unit --scenarios two"
    return lines[:-1]


def right(**given) -> Ran:
    return replace(Ran(list(CODES), accepted=2, cycles=2), **given)


FELL, CHANGED = "cycle 3: valid fell", "cycle 9: the answer changed"
NOTHING, EMPTY = np.zeros(0, np.uint64), np.array([[0, 0, 5], [0, 0, 0]])
EPISODES = np.array([[0, 0, 5], [2, 2, 0]])
LOST = "answer 0: got nothing", "answer 1: got nothing"
#: A run, changes of its scenario, and the findings.
RUNS = {
    "right": ([right()], {}, []),
    "right in its cycles": ([right()], {"cycles": 2}, []),
    "a lost answer": ([right(answers=[0x3C00])], {}, ["1 of 2 answers: unanswered", LOST[1]]),
    "no answer": ([right(answers=[])], {}, ["2 of 2 answers: unanswered", *LOST]),
    "a wrong bit": ([right(answers=[0x3C00, 1])], {}, ["1 of 2 answers: mismatches", "answer 1: got 1"]),
    "a surplus answer": ([right(answers=[*CODES, 3])], {}, ["answer that nobody expects: {'bits': 3}"]),
    "an unknown surplus answer": ([right(answers=[*CODES, None])], {}, ["answer that nobody expects: unknown bits"]),
    "a payload that was not accepted": ([right(accepted=1)], {}, ["only 1 of 2 payloads were accepted"]),
    "too few cycles": ([right(cycles=1)], {"cycles": 2}, ["2 products took 1 cycles, must be 2"]),
    "too many cycles": ([right(cycles=3)], {"cycles": 2}, ["2 products took 3 cycles, must be 2"]),
    "broken promises": ([right(broken_promises=[FELL, CHANGED])], {}, [FELL, CHANGED]),
    "a broken promise behind all payloads": (
        [right(), Ran(broken_promises=[FELL])],
        {"episodes": EPISODES},
        [f"{FELL} (episode 1 of 2)"],
    ),
    "a broken promise of an empty episode": (
        [right(answers=[], accepted=0, broken_promises=[FELL]), right()],
        {"episodes": EMPTY},
        [f"{FELL} (episode 0 of 2)"],
    ),
    "a broken promise behind an empty episode": (
        [right(answers=[], accepted=0), right(broken_promises=[FELL])],
        {"episodes": EMPTY},
        [f"{FELL} (episode 1 of 2)"],
    ),
    "no expectation": (
        [Ran(accepted=2, cycles=2)],
        {"answers": NOTHING},
        ["the scenario expects no answer: nothing was tested"],
    ),
    "no episode was run": ([], {"episodes": EPISODES[:1]}, ["0 of 1 episodes were run"]),
    "the second episode was not run": ([right()], {"episodes": EPISODES}, ["1 of 2 episodes were run"]),
}


@pytest.mark.parametrize("case", RUNS)
def test_findings_of_a_run_are_its_faults_and_nothing_else(case: str) -> None:
    ran, given, wanted = RUNS[case]
    assert found(ran, **given) == wanted


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
