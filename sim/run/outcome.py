"""What came of testing a unit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """What came of it.

    Attributes
    ----------
    vectors : int
        Answers that were compared.
    seconds : float
        Time in the simulator.
    bins, required : counts of all coverage bins; those that must not be empty
    failures : list of str
        Why it failed; empty if it passed.
    is_broken : bool
        It failed before or outside of comparing results: no design, no build, no simulator.
    """

    unit: str
    vectors: int = 0
    seconds: float = 0.0
    bins: Counter[str] = field(default_factory=Counter)
    required: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    is_broken: bool = False

    @property
    def holes(self) -> list[str]:
        """Bins that must not be empty but are."""
        return sorted(name for name in self.required if not self.bins[name])

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def blame(self, line: str, *, broken: bool = True) -> None:
        """Add a failure."""
        self.failures.append(line)
        self.is_broken |= broken
