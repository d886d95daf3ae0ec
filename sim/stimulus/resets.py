"""Resets in the middle of work: several episodes, each but the last cut off somewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.scenario import Scenario
from sim.stimulus.patterns import pattern

__all__ = ["EPISODES", "cut_off", "required_resets", "stalled_and_cut_off"]

#: Episodes of a scenario; the last one runs to its end.
EPISODES = 32
#: Cycles before a reset, two of each in turn: early, and with many operations in flight.
_EARLIEST, _SOON, _LATEST = 2, 14, 90
#: Cycles after which a unit is surely full, beyond its latency.
_SPARE = 6


def cut_off(scenario: Scenario, starts: Sequence[int], rng: np.random.Generator) -> Scenario:
    """Reset the unit before some payloads, each time while earlier ones are still in flight.

    Parameters
    ----------
    scenario : Scenario
        With `ends`. Nothing from a start on may need what came before it.
    starts : sequence of int
        The first payload of each episode, 0 first.
    rng : numpy.random.Generator
    """
    assert scenario.ends is not None
    cuts = rng.integers(_EARLIEST, np.resize([_SOON, _SOON, _LATEST, _LATEST], len(starts)))
    cuts[-1] = 0
    scenario.episodes = np.stack([np.asarray(starts), np.searchsorted(scenario.ends, starts), cuts], 1)
    return scenario


def stalled_and_cut_off(scenario: Scenario, starts: Sequence[int], latency: int, rng: np.random.Generator) -> Scenario:
    """Reset a unit that answers every payload: shortly after its start, when it is full and stalled, and at random.

    An episode begins with payloads in every cycle and a receiver that waits; random patterns follow. The first two
    episodes therefore meet the states of `required_resets` with any seed.

    Parameters
    ----------
    scenario, starts, rng
        As of `cut_off`; at least two episodes are cut off.
    latency : int
        Cycles from a payload to its answer.
    """
    full = latency + _SPARE
    scenario.offers = np.concatenate([np.ones(full, np.bool_), pattern("random", rng)])
    scenario.takes = np.concatenate([np.zeros(full, np.bool_), pattern("bursts", rng)])
    cut_off(scenario, starts, rng)
    scenario.episodes[:2, 2] = _EARLIEST, full
    return scenario


def required_resets(latency: int, *, answers_wait_for_more: bool) -> set[str]:
    """Return the states in which a reset must have met a unit.

    Parameters
    ----------
    latency : int
        Cycles from a payload to its answer.
    answers_wait_for_more : bool
        A payload may be accepted without requiring an answer yet.
    """
    states = {"in_operation", "payload_refused", "answer_waits"}
    states |= {"answers_on_their_way"} if latency > 1 else set()
    states |= {"nothing_due"} if answers_wait_for_more else set()
    return {f"reset/{state}" for state in states}
