"""The scoreboard pairs answers with expectations and finds wrong, missing and surplus ones."""

import numpy as np

from sim.bench.episode import Ran
from sim.bench.scoreboard import Scoreboard
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario

PORT = Port(Fields({"a": 16}), Fields({"result": 16, "error": 2, "register": 4}))


def words(*rows: tuple[int, int, int]) -> list[int]:
    results, errors, registers = zip(*rows, strict=True)
    return PORT.answer.pack(result=np.array(results), error=np.array(errors), register=np.array(registers)).tolist()


def compared(expected: list[int], answers: list[int | None]) -> Scoreboard:
    scenario = Scenario("one", np.zeros(1, np.uint64), np.array(expected, np.uint64), np.arange(len(expected)))
    scoreboard = Scoreboard(PORT)
    scoreboard.compare(scenario, Ran(answers))
    return scoreboard


def test_scoreboard_everything_answered_is_clean() -> None:
    rows = words((1, 0, 0), (2, 0, 1), (0, 1, 3))
    assert compared(rows, list(rows)).is_clean


def test_scoreboard_unanswered_transaction_fails() -> None:
    rows = words((1, 0, 0), (2, 0, 1))
    scoreboard = compared(rows, rows[:1])
    assert scoreboard.unanswered == [1]
    assert not scoreboard.is_clean


def test_scoreboard_no_answer_at_all_fails() -> None:
    assert not compared(words((1, 0, 0)), []).is_clean


def test_scoreboard_surplus_answer_fails() -> None:
    rows = words((1, 0, 0))
    scoreboard = compared(rows, rows * 2)
    assert scoreboard.unexpected == rows
    assert not scoreboard.is_clean


def test_scoreboard_answer_of_a_register_that_expects_none_fails() -> None:
    # Behind a reset nothing need be answered: there the right answer, which is missing, tells nothing.
    rows = words((1, 0, 0), (1, 0, 5))
    scoreboard = compared(rows[:1], rows)
    assert scoreboard.unexpected == rows[1:]
    assert not scoreboard.is_clean


def test_scoreboard_two_answers_with_unknown_bits_in_one_place_fail() -> None:
    rows = words((1, 0, 0))
    scoreboard = compared(rows, [None, None])
    assert [mismatch.index for mismatch in scoreboard.mismatches] == [0]
    assert scoreboard.unexpected == [None]


def test_scoreboard_answer_missing_in_an_earlier_episode_is_still_missing() -> None:
    rows = np.array(words((1, 0, 0), (2, 0, 1), (3, 0, 2)), np.uint64)
    scenario = Scenario("three", np.zeros(3, np.uint64), rows, np.arange(3), ends=np.arange(3))
    scenario.episodes = np.array([[0, 0, 0], [1, 1, 9], [2, 2, 0]])
    scoreboard = Scoreboard(PORT)
    for at, answers in enumerate(([], [int(rows[1])], [])):
        scoreboard.compare(scenario, Ran(answers, accepted=1), at)
    assert scoreboard.unanswered == [0, 2]


def test_scoreboard_wrong_bit_fails_with_both_words() -> None:
    rows = words((1, 0, 0), (2, 0, 1))
    wrong = words((2, 0, 1), (3, 0, 0))
    (mismatch,) = compared(rows, list(wrong)).mismatches
    assert (mismatch.index, mismatch.expected, mismatch.actual) == (0, rows[0], wrong[1])


def test_scoreboard_registers_overtaking_each_other_are_clean() -> None:
    rows = words((1, 0, 0), (2, 0, 1), (3, 0, 0))
    assert compared(rows, [rows[1], rows[0], rows[2]]).is_clean


def test_scoreboard_one_register_out_of_order_fails() -> None:
    rows = words((1, 0, 0), (3, 0, 0))
    assert len(compared(rows, rows[::-1]).mismatches) == 2


def test_scoreboard_unknown_bits_fail() -> None:
    rows = words((1, 0, 0))
    (mismatch,) = compared(rows, [None]).mismatches
    assert mismatch.actual is None
