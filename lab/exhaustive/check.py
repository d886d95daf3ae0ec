"""Checks over all inputs: each input is run once, and counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tools.interrupts import ended_by_interrupts

__all__ = ["Check", "Checked", "Comparison", "compare_bits", "compare_operands", "run"]

#: Differences that a report shows.
SHOWN = 5


@dataclass
class Comparison:
    """The counts of one range of inputs: how many were compared and how many differed, and the first differences."""

    count: int
    wrong: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, other: Comparison) -> None:
        """Join the findings about the same inputs."""
        if other.count != self.count:
            raise ValueError(f"other: got a comparison of {other.count} inputs, must be of the same {self.count}")
        self.wrong += other.wrong
        self.examples = (self.examples + other.examples)[:SHOWN]


def compare_bits(label: str, inputs: NDArray, got: NDArray, wanted: NDArray) -> Comparison:
    """Compare the codes that inputs gave; `wanted` may be one code for all; `label` begins each difference."""
    return compare_operands(label, [inputs], got, wanted)


def compare_operands(label: str, operands: Sequence[NDArray], got: NDArray, wanted: NDArray) -> Comparison:
    """Compare the codes that several operands gave together; otherwise as `compare_bits`."""
    shape = operands[0].shape
    if got.shape != shape:
        raise ValueError(f"got: got shape {got.shape}, must be that of inputs, {shape}")
    wanted = np.broadcast_to(wanted, shape)
    differ = np.flatnonzero(got != wanted)
    examples = []
    for at in differ[:SHOWN]:
        given = ", ".join(f"{each[at]:#x}" for each in operands)
        examples.append(f"{label}: {given} gives {got[at]:#x}, must be {wanted[at]:#x}")
    return Comparison(got.size, len(differ), examples)


@dataclass(frozen=True)
class Check:
    """A comparison over the inputs 0 to total - 1.

    Parameters
    ----------
    name : str
    total : int
        How many inputs there are.
    against : str
        In words, what judges.
    compare : callable
        ``compare(start, stop)`` compares the inputs from `start` up to `stop`; several threads call it.
    piece : int
        Inputs of one call: a power of two, few enough that all that is computed from them stays in the caches.
    prepare : callable
        ``prepare()`` is called once, before the first comparison, to build what is compared.
    """

    name: str
    total: int
    against: str
    compare: Callable[[int, int], Comparison]
    piece: int = 1 << 16
    prepare: Callable[[], object] = lambda: None

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Cut all inputs into pieces."""
        return ((start, min(start + self.piece, self.total)) for start in range(0, self.total, self.piece))


@dataclass
class Checked:
    """The result of a whole check. It passed if nothing differs *and* every input was compared."""

    check: Check
    count: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether as many inputs were compared as there are."""
        return self.count == self.check.total

    @property
    def passed(self) -> bool:
        """Whether the check holds."""
        return self.complete and self.wrong == 0


def run(check: Check, jobs: int, advance: Callable[[int], object] = lambda _: None) -> Checked:
    """Run a check on some threads; `advance` is told how many inputs each piece held."""
    outcome = Checked(check)
    check.prepare()
    with ThreadPoolExecutor(jobs) as pool, ended_by_interrupts(pool):
        pieces = check.ranges()
        # As many pieces at a time as keep the threads busy: a list of all would be as long as the check.
        while batch := list(itertools.islice(pieces, 8 * jobs)):
            for found in pool.map(lambda piece: check.compare(*piece), batch):
                outcome.count += found.count
                outcome.wrong += found.wrong
                outcome.examples = (outcome.examples + found.examples)[:SHOWN]
                advance(found.count)
    return outcome
