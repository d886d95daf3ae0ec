"""The sink: it takes answers, and checks that a refused one does not change."""

from __future__ import annotations

from typing import Any

from cocotb.handle import Immediate

from sim.scenario import Scenario

__all__ = ["Monitor", "is_high"]


def is_high(signal: Any, name: str) -> bool:
    """Return whether a signal is 1; an unknown one (X) is a failure of the design, not of the testbench."""
    try:
        return bool(signal.value)
    except ValueError:
        raise AssertionError(f"{name} is unknown (X)") from None


class Monitor:
    """Take the output stream, one `step` on every falling edge. An answer with unknown bits (X) is taken as None."""

    def __init__(self, dut: Any, scenario: Scenario) -> None:
        self._answered, self._answer, self._take = dut.answered, dut.answer, dut.take
        self._takes, self._on_sight = scenario.takes.tolist(), scenario.on_sight
        self._is_taking: bool | None = None
        self._refused: tuple[int | None] | None = None
        self.answers: list[int | None] = []
        self.broken_promises: list[str] = []
        #: Whether there was an answer in the last cycle.
        self.is_answered = False

    def step(self, cycle: int) -> bool:
        """Decide whether to take at the coming edge and take an answer that is there; return whether there was one."""
        self.is_answered = is_high(self._answered, "valid of the output")
        takes = self._takes[cycle % len(self._takes)] and (self.is_answered or not self._on_sight)
        if takes != self._is_taking:
            self._take.value = Immediate(int(takes))
            self._is_taking = takes
        if not self.is_answered:
            if self._refused is not None:
                self.broken_promises.append(f"cycle {cycle}: valid fell before the answer was taken")
                self._refused = None
            return False
        try:
            # From its text, because reading the array bit by bit takes as long as simulating a converter.
            word = int(str(self._answer.value), 2)
        except ValueError:
            word = None
        if self._refused is not None and self._refused[0] != word:
            self.broken_promises.append(f"cycle {cycle}: the answer changed before it was taken")
        self._refused = None if takes else (word,)
        if takes:
            self.answers.append(word)
        return takes
