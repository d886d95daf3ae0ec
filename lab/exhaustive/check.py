"""Checks over all inputs: each input is run once, and counted."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from tools.interrupts import end_with_parent, ended_by_interrupts, unheard_interrupts

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
    """Compare the codes that several operands gave together; apart from that, as `compare_bits`."""
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
        The judges, in words.
    compare : callable
        ``compare(start, stop)`` compares the inputs from `start` up to `stop`; several threads or processes call it.
    piece : int
        Inputs of one call: a power of two, few enough for the caches to hold all intermediate results.
    prepare : callable
        ``prepare()`` is called once, before the first comparison, to build the unit under test.
    by_processes : bool
        Whether processes compare instead of threads: for calls that mostly hold Python's lock, such as casts of
        ml_dtypes.
    """

    name: str
    total: int
    against: str
    compare: Callable[[int, int], Comparison]
    piece: int = 1 << 16
    prepare: Callable[[], object] = lambda: None
    by_processes: bool = False

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
        """Whether every input was compared."""
        return self.count == self.check.total

    @property
    def passed(self) -> bool:
        """Whether the check holds."""
        return self.complete and self.wrong == 0


def run(check: Check, jobs: int, advance: Callable[[int], object] = lambda _: None) -> Checked:
    """Run a check on some threads or processes; `advance` takes the number of inputs after each piece."""
    check.prepare()
    pool: Executor
    if check.by_processes:  # copies of this process, which share everything that `prepare` has built
        with ProcessPoolExecutor(jobs, get_context("fork"), _take, (check,)) as pool, ended_by_interrupts(pool):
            return _collect(check, pool, _compare, 4 * jobs, advance)
    with ThreadPoolExecutor(jobs) as pool, ended_by_interrupts(pool):
        return _collect(check, pool, check.compare, 4 * jobs, advance)


def _collect(
    check: Check,
    pool: Executor,
    compare: Callable[[int, int], Comparison],
    at_a_time: int,
    advance: Callable[[int], object],
) -> Checked:
    """Have a pool compare all pieces, a few at a time, without a list of them all."""
    outcome, pieces = Checked(check), check.ranges()
    with unheard_interrupts():
        under_way = deque(pool.submit(compare, *piece) for piece in itertools.islice(pieces, at_a_time))
    while under_way:
        found = under_way.popleft().result()
        under_way.extend(pool.submit(compare, *piece) for piece in itertools.islice(pieces, 1))
        outcome.count += found.count
        outcome.wrong += found.wrong
        outcome.examples = (outcome.examples + found.examples)[:SHOWN]
        advance(found.count)
    return outcome


#: The check of this copied process.
_taken: list[Check] = []


def _take(check: Check) -> None:
    _taken[:] = [check]
    end_with_parent()


def _compare(start: int, stop: int) -> Comparison:
    return _taken[0].compare(start, stop)
