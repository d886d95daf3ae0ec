"""The source in a simulator: its payload in each cycle, its pauses, and its chunk length."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cocotb.types import Logic

from sim.bench.driver import Driver
from sim.scenario import Scenario

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
    # A cycle in which nothing would be offered anyway is no pause.
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
