"""An episode: the part of a scenario between two resets, and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["PATIENCE", "SURPLUS", "Ran"]

#: Cycles without a transfer after which missing answers are given up.
PATIENCE = 400
#: Cycles in which nothing more may come once everything has come.
SURPLUS = 40


@dataclass
class Ran:
    """The record of an episode.

    Attributes
    ----------
    answers : list of int or None
        None: it had unknown bits.
    accepted : int
        Payloads.
    cycles : int
        From the first accepted payload to the last one, both counted.
    broken_promises : list of str
        Violations of the protocol by the output stream.
    counts : list of int, optional
        Counts of the counters; None if they were not read.
    met_clears : int
        Clears of the counters in the same cycle as a counted step.
    is_blocked, is_answered : bool
        In the last cycle: a payload was refused, an answer was there.
    """

    answers: list[int | None] = field(default_factory=list)
    accepted: int = 0
    cycles: int = 0
    broken_promises: list[str] = field(default_factory=list)
    counts: list[int] | None = None
    met_clears: int = 0
    is_blocked: bool = False
    is_answered: bool = False
