"""Resets in the middle of work: several episodes, each but the last cut off somewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.scenario import Scenario

__all__ = ["EPISODES", "cut_off", "required_resets"]

#: Episodes of a scenario; the last one runs to its end.
EPISODES = 32
#: After how many cycles, in turn: soon, and when much is under way.
_EARLIEST, _SOON, _LATEST = 2, 14, 90


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
    cuts = rng.integers(_EARLIEST, np.resize([_SOON, _LATEST], len(starts)))
    cuts[-1] = 0
    scenario.episodes = np.stack([np.asarray(starts), np.searchsorted(scenario.ends, starts), cuts], 1)
    return scenario


def required_resets(latency: int, *, answers_wait_for_more: bool) -> set[str]:
    """Return the states in which a reset must have met a unit.

    Parameters
    ----------
    latency : int
        Cycles from a payload to its answer.
    answers_wait_for_more : bool
        A payload may be accepted and ask for no answer yet.
    """
    states = {"in_operation", "payload_refused", "answer_waits"}
    states |= {"answers_on_their_way"} if latency > 1 else set()
    states |= {"nothing_due"} if answers_wait_for_more else set()
    return {f"reset/{state}" for state in states}
