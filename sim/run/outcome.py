"""The outcome of testing a unit."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Outcome"]

#: Registers whose every bit must change under a unit's full stimulus: counters, wait states and pointers.
_CONTROLS = re.compile(
    r"\.(chunks\.|cycles_|beyond_|reserved|pending|left$|held_valid|others_in_flight|passes_by|unsettled|tak)"
    r"|\.(queue|rows)\.(level|\w_port)"
)


@dataclass
class Outcome:
    """The outcome.

    Attributes
    ----------
    vectors : int
        Required answers that were compared.
    seconds : float
        Time in the simulator.
    bins, required : counts of all coverage bins; those that must not be empty
    register_bits : int
        Bits of registers and memories of the netlist.
    still : dict of str to list of int
        Bits that never changed, by register.
    failures : list of str
        Reasons for failure; empty if it passed.
    is_broken : bool
        It failed outside of comparing results: no design, no build, no simulator.
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
        """Required bins that are empty."""
        return sorted(name for name in self.required if not self.bins[name])

    @property
    def changed_bits(self) -> int:
        """Bits of registers and memories that have been both 0 and 1."""
        return self.register_bits - sum(map(len, self.still.values()))

    @property
    def stuck(self) -> list[str]:
        """Bits of control registers that never changed."""
        return [f"{name}[{bit}]" for name, bits in self.still.items() if _CONTROLS.search(name) for bit in bits]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def blame(self, line: str, *, broken: bool = True) -> None:
        """Add a failure."""
        self.failures.append(line)
        self.is_broken |= broken
