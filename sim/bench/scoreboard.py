"""The scoreboard: it compares answers with expectations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.bench.episode import Ran
from sim.port import Port
from sim.scenario import Scenario

__all__ = ["Mismatch", "Scoreboard"]


@dataclass(frozen=True)
class Mismatch:
    """An answer that differs from the expected one.

    Parameters
    ----------
    index : int
        Index into the scenario's expected answers.
    expected : int
    actual : int or None
        None: it had unknown bits.
    """

    index: int
    expected: int
    actual: int | None


@dataclass
class Scoreboard:
    """Pair answers with expectations, queue by queue.

    Attributes
    ----------
    mismatches : list of Mismatch
    unanswered : list of int
        Expected answers that never came.
    unexpected : list of int or None
        Unexpected answers.
    """

    port: Port
    mismatches: list[Mismatch] = field(default_factory=list)
    unanswered: list[int] = field(default_factory=list)
    unexpected: list[int | None] = field(default_factory=list)

    def compare(self, scenario: Scenario, ran: Ran, episode: int = 0) -> None:
        """Compare all bits of all answers: result, flags, register and error.

        Payloads cut off by a reset need no answer; payloads not accepted before it must have none.
        """
        span, answers, is_cut = scenario.answer_span(episode), ran.answers, bool(scenario.episodes[episode][2])
        within = np.arange(span.start, span.stop)
        if is_cut and scenario.ends is not None:
            within = within[scenario.ends[within] < scenario.payload_span(episode).start + ran.accepted]
        unanswered: list[int] = []
        # An answer with unknown bits belongs to no queue; it takes the first remaining place.
        known = np.array([answer for answer in answers if answer is not None], self.port.answer.dtype)
        unknown = sum(answer is None for answer in answers)
        expected_queue, actual_queue = self.port.queue_of(scenario.answers[within]), self.port.queue_of(known)
        for queue in np.union1d(expected_queue, actual_queue).tolist():
            expected = within[expected_queue == queue]
            actual = known[actual_queue == queue]
            unanswered += self._compare_queue(scenario.answers, expected, actual)
        self.unanswered += [] if is_cut else unanswered
        self.mismatches.sort(key=lambda mismatch: mismatch.index)
        self.unanswered.sort()
        for _ in range(unknown):
            if not self.unanswered:
                self.unexpected.append(None)
                continue
            index = self.unanswered.pop(0)
            self.mismatches.append(Mismatch(index, int(scenario.answers[index]), None))

    def _compare_queue(self, answers: Any, expected: NDArray[Any], actual: NDArray[Any]) -> list[int]:
        """Return the expected answers that never came."""
        paired = min(len(expected), len(actual))
        differs = np.flatnonzero(answers[expected[:paired]] != actual[:paired])
        self.mismatches += [
            Mismatch(int(expected[at]), int(answers[expected[at]]), int(actual[at])) for at in differs.tolist()
        ]
        self.unexpected += actual[paired:].tolist()
        left: list[int] = expected[paired:].tolist()
        return left

    @property
    def is_clean(self) -> bool:
        """Whether all answers came, no others did, and all were right."""
        return not (self.mismatches or self.unanswered or self.unexpected)
