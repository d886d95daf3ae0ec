"""The sink: how it reads an answer, bit by bit."""

from types import SimpleNamespace

import numpy as np
import pytest
from cocotb.types import Logic, LogicArray

from sim.bench.monitor import Monitor
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
