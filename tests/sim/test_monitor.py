"""The sink: what it takes an answer for, bit by bit."""

from types import SimpleNamespace

import numpy as np
import pytest
from cocotb.types import Logic, LogicArray

from sim.bench.monitor import Monitor
from sim.scenario import Scenario


def monitor_of(*answers, takes=(True,)):
    """A monitor after it has seen these answers, one a cycle, all valid."""
    pins = SimpleNamespace(
        answered=SimpleNamespace(value=Logic(1)), answer=SimpleNamespace(value=None), take=SimpleNamespace(value=None)
    )
    empty = np.zeros(0, np.uint64)
    monitor = Monitor(pins, Scenario("one", empty, empty, empty, takes=np.array(takes)))
    for cycle, answer in enumerate(answers):
        pins.answer.value = LogicArray(answer)
        monitor.step(cycle)
    return monitor


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
