"""The parts of the bench: the source in a simulator, the sink bit by bit, and the scoreboard that pairs answers."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cocotb.types import Logic, LogicArray

from sim.bench.driver import Driver
from sim.bench.episode import Ran
from sim.bench.monitor import Monitor
from sim.bench.scoreboard import Scoreboard
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario


def monitor_of(*answers, takes=(True,)):
    """A monitor after it has seen these answers, one a cycle; None where none is valid."""
    return seen(*answers, takes=takes)[0]


def seen(*answers, takes=(True,)):
    """A monitor, and the value of its port ``take`` in each of these cycles."""
    pins = SimpleNamespace(
        answered=SimpleNamespace(value=Logic(1)), answer=SimpleNamespace(value=None), take=SimpleNamespace(value=None)
    )
    empty = np.zeros(0, np.uint64)
    monitor = Monitor(pins, Scenario("one", empty, empty, empty, takes=np.array(takes)))
    shown = []
    for cycle, answer in enumerate(answers):
        pins.answered.value = Logic(answer is not None)
        pins.answer.value = LogicArray(answer or "X")
        took = monitor.step(cycle)
        shown.append(pins.take.value.value)
        assert took == bool(shown[-1] and answer is not None)
        assert monitor.is_answered == (answer is not None)
    return monitor, shown


def test_monitor_takes_answers_as_unsigned_numbers_of_any_width():
    assert monitor_of("0" * 49, "1" + "0" * 99 + "1").answers == [0, 1 << 100 | 1]


@pytest.mark.parametrize("bit", ["X", "Z", "U", "W"])
@pytest.mark.parametrize("place", [0, 20, 48])
@pytest.mark.parametrize("rest", ["0", "1"])
def test_monitor_takes_an_answer_with_an_unknown_bit_as_none(bit, place, rest):
    assert monitor_of(rest * place + bit + rest * (48 - place)).answers == [None]


def test_monitor_reports_a_refused_answer_whose_bit_becomes_unknown():
    assert monitor_of("0101", "01X1", takes=(False,)).broken_promises == [
        "cycle 1: the answer changed before it was taken"
    ]


def test_monitor_reports_a_refused_answer_whose_bit_changes():
    found = monitor_of("0101", "0101", "0111", "0111", takes=(False,)).broken_promises
    assert found == ["cycle 2: the answer changed before it was taken"]


def test_monitor_reports_a_refused_answer_that_is_no_longer_valid_once():
    found = monitor_of("0101", None, None, "0111", takes=(False,)).broken_promises
    assert found == ["cycle 1: valid fell before the answer was taken"]


def test_monitor_lets_what_was_taken_change_or_go():
    monitor = monitor_of("01", "10", None, "11", None)
    assert (monitor.answers, monitor.broken_promises) == ([1, 2, 3], [])


def test_monitor_takes_in_the_cycles_of_its_scenario_only():
    monitor, shown = seen("01", "01", "10", "10", None, "11", takes=(False, True))
    assert (monitor.answers, monitor.broken_promises) == ([1, 2, 3], [])
    assert shown == [0, 1, 0, 1, 0, 1]


PAYLOADS = [10, 11, 12, 13]


class Pin:
    """A signal, which the bench sets at once."""

    def __init__(self) -> None:
        self._value: Any = Logic(0)

    @property
    def value(self) -> Any:
        return self._value

    @value.setter
    def value(self, given: Any) -> None:
        self._value = getattr(given, "value", given)


def driven(
    ready: str, span: range = range(len(PAYLOADS)), cycles: int = 12, first: int = 0, **given: Any
) -> tuple[Driver, list[tuple[int, int | None, int]]]:
    """A driver, and its outputs in each cycle: chunk length, the payload if it offers one, and the number of lost ones.

    `ready` says in which cycles the unit accepts, again and again; `first` is the number of the first cycle.
    """
    words = np.array(PAYLOADS, np.uint64)
    scenario = Scenario("one", words, words, np.arange(4), **{key: np.array(each) for key, each in given.items()})
    dut = SimpleNamespace(accepted=Pin(), valid=Pin(), payload=Pin(), chunk=Pin())
    driver, shown, taken = Driver(dut, scenario, span), [], []
    for cycle in range(first, first + cycles):
        went = driver.step(cycle)
        assert went == bool(dut.accepted.value)
        offers = bool(dut.valid.value)
        shown.append((int(dut.chunk.value), int(dut.payload.value) if offers else None, driver.accepted))
        accepts = offers and ready[cycle % len(ready)] == "1"
        assert driver.is_blocked == (cycle > first and shown[-2][1] is not None and not dut.accepted.value)
        taken += [int(dut.payload.value)] if accepts else []
        dut.accepted.value = Logic(accepts)
    assert taken == PAYLOADS[span.start : span.stop][: len(taken)]
    return driver, shown


def offered(shown: list[tuple[int, int | None, int]]) -> list[int | None]:
    return [payload for _, payload, _ in shown]


def test_driver_offers_each_payload_of_its_span_once_and_then_no_more() -> None:
    driver, shown = driven("1", range(1, 4))
    assert offered(shown) == [11, 12, 13] + [None] * 9
    assert (driver.accepted, driver.is_done, driver.first_cycle, driver.last_cycle) == (3, True, 1, 3)


def test_driver_keeps_what_is_refused() -> None:
    driver, shown = driven("001")
    assert offered(shown) == [10] * 3 + [11] * 3 + [12] * 3 + [13] * 3
    assert (driver.is_done, driver.first_cycle, driver.last_cycle) == (False, 3, 9)


@pytest.mark.parametrize("offers", [[True, False], [False, True], [True, False, False]])
def test_driver_offers_in_the_cycles_of_its_scenario_only(offers: list[bool]) -> None:
    _, shown = driven("1", offers=offers)
    assert [payload is not None for payload in offered(shown)][:8] == [*offers * 8][:8]
    assert [payload for payload in offered(shown) if payload is not None] == PAYLOADS[: 12 // len(offers)][:4]


def test_driver_pauses_ahead_of_each_payload_as_long_as_it_says() -> None:
    _, shown = driven("1", pauses=[1, 0, 3, 2])
    assert offered(shown) == [None, 10, 11, None, None, None, 12, None, None, 13, None, None]
    # A cycle in which nothing would be offered anyway is not a pause.
    _, shown = driven("1", pauses=[0, 1, 0, 0], offers=[True, False], cycles=8)
    assert offered(shown) == [10, None, None, None, 11, None, 12, None]


def test_driver_shows_the_chunk_of_a_payload_and_behind_it_that_of_the_gap() -> None:
    given: dict[str, Any] = {"chunks": [1, 2, 3, 4], "pauses": [2, 1, 0, 1]}
    _, shown = driven("1", cycles=9, **given)
    assert [chunk for chunk, *_ in shown] == [0, 0, 1, 1, 2, 3, 3, 4, 4]
    _, shown = driven("1", cycles=9, gaps=[5, 6, 7, 8], **given)
    assert [chunk for chunk, *_ in shown] == [0, 0, 1, 5, 2, 3, 7, 4, 8]


def test_driver_whose_unit_is_neither_ready_nor_not_ends_the_test() -> None:
    words = np.array(PAYLOADS, np.uint64)
    dut = SimpleNamespace(accepted=Pin(), valid=Pin(), payload=Pin(), chunk=Pin())
    driver = Driver(dut, Scenario("one", words, words, np.arange(4)), range(4))
    driver.step(0)
    dut.accepted.value = Logic("X")
    with pytest.raises(AssertionError, match=r"ready is unknown \(X\)"):
        driver.step(1)


PORT = Port(Fields({"a": 16}), Fields({"result": 16, "error": 2, "register": 4}))


def words(*rows: tuple[int, int, int]) -> list[int]:
    results, errors, registers = zip(*rows, strict=True)
    return PORT.answer.pack(result=np.array(results), error=np.array(errors), register=np.array(registers)).tolist()


def compared(expected: list[int], answers: list[int | None]) -> Scoreboard:
    scenario = Scenario("one", np.zeros(1, np.uint64), np.array(expected, np.uint64), np.arange(len(expected)))
    scoreboard = Scoreboard(PORT)
    scoreboard.compare(scenario, Ran(answers))
    return scoreboard


A, B, C = words((1, 0, 0), (2, 0, 1), (3, 0, 0))
ELSEWHERE, REFUSED = words((1, 0, 5), (0, 1, 3))
#: Expectations, answers, and the findings: wrong answers by their place, missing places, surplus answers.
COMPARISONS = {
    "everything answered": ([A, B, REFUSED], [A, B, REFUSED], [], [], []),
    "unanswered": ([A, B], [A], [], [1], []),
    "no answer at all": ([A], [], [], [0], []),
    "surplus": ([A], [A, A], [], [], [A]),
    # Behind a reset nothing need be answered: there the right answer, which is missing, tells nothing.
    "a register that expects none": ([A], [A, ELSEWHERE], [], [], [ELSEWHERE]),
    "two with unknown bits in one place": ([A], [None, None], [(0, A, None)], [], [None]),
    "wrong bit": ([A, B], [B, C], [(0, A, C)], [], []),
    "registers that overtake each other": ([A, B, C], [B, A, C], [], [], []),
    "one register out of order": ([A, C], [C, A], [(0, A, C), (1, C, A)], [], []),
    "unknown bits": ([A], [None], [(0, A, None)], [], []),
}


@pytest.mark.parametrize("case", COMPARISONS)
def test_scoreboard_finds_wrong_missing_and_surplus_answers_and_nothing_else(case: str) -> None:
    expected, answers, *wanted = COMPARISONS[case]
    scoreboard = compared(expected, answers)
    mismatches = [(each.index, each.expected, each.actual) for each in scoreboard.mismatches]
    assert [mismatches, scoreboard.unanswered, scoreboard.unexpected] == wanted
    assert scoreboard.is_clean == (not any(wanted))


def test_scoreboard_answer_missing_in_an_earlier_episode_is_still_missing() -> None:
    rows = np.array(words((1, 0, 0), (2, 0, 1), (3, 0, 2)), np.uint64)
    scenario = Scenario("three", np.zeros(3, np.uint64), rows, np.arange(3), ends=np.arange(3))
    scenario.episodes = np.array([[0, 0, 0], [1, 1, 9], [2, 2, 0]])
    scoreboard = Scoreboard(PORT)
    for at, answers in enumerate(([], [int(rows[1])], [])):
        scoreboard.compare(scenario, Ran(answers, accepted=1), at)
    assert scoreboard.unanswered == [0, 2]
