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
    register_bits : int
        Bits of registers and memories of the netlist.
    still : dict of str to list of int
        Those that had one value throughout, by their registers.
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
    register_bits: int = 0
    still: dict[str, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    is_broken: bool = False

    @property
    def holes(self) -> list[str]:
        """Bins that must not be empty but are."""
        return sorted(name for name in self.required if not self.bins[name])

    @property
    def changed_bits(self) -> int:
        """Bits of registers and memories that have been both 0 and 1."""
        return self.register_bits - sum(map(len, self.still.values()))

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def blame(self, line: str, *, broken: bool = True) -> None:
        """Add a failure."""
        self.failures.append(line)
        self.is_broken |= broken
