"""The random bits with which the products of a precision round, the same ones in a checkpoint's second forward pass.

Products are numbered in the order in which they run forward. The number is the upper half of the generator's key, above
the seed. The products of the backward pass share the number of their forward product and differ in their calls.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from golden.reduction import Reduction
from golden.rounding import DEFAULT_RANDOM_BITS, Randomness

__all__ = ["Draws", "branched", "part_of", "rewound", "taken"]

_SEEDS = 2**32
_CALLS = 2**32
_SPREAD = 2654435761  # 2^32 divided by the golden ratio: multiples of it are far apart
# The branch of the first of several parts of a product; those before it are its gradients, and sums of these.
_FIRST_PART = 5


class Draws:
    """The random bits of a precision, and the number of its next product; or of a layer, and of its next call.

    Parameters
    ----------
    seed : int
        0 to 2**32 - 1.
    call : int
        What tells the layers of one seed apart.
    random_bits : int
        How many bits a stochastic rounding has.
    """

    def __init__(self, seed: int, call: int = 0, random_bits: int = DEFAULT_RANDOM_BITS) -> None:
        self._seed, self._call, self._random_bits, self.taken = seed, call, random_bits, 0
        _drawing.add(self)

    def __setstate__(self, state: dict[str, Any]) -> None:  # a copy counts by itself, and is rewound, too
        vars(self).update(state)
        _drawing.add(self)

    def next(self) -> Randomness:
        """Return the random bits of the next product."""
        number, self.taken = self.taken, self.taken + 1
        return Randomness(self._random_bits, self._seed + number % _SEEDS * _SEEDS, self._call)


_drawing: WeakSet[Draws] = WeakSet()


def branched(random: Randomness, branch: int) -> Randomness:
    """Return the random bits of a branch of a product, from 1: of a gradient, or of one of several parts."""
    return Randomness(random.random_bits, random.seed, (random.call * _SPREAD + branch) % _CALLS)


def part_of(reduction: Reduction, number: int) -> Reduction:
    """Return a reduction with separate random bits for one of several parts of a product, counted from 0."""
    if reduction.random is None:
        return reduction
    return reduction.with_random(branched(reduction.random, _FIRST_PART + number))


def taken() -> dict[Draws, int]:
    """Return the numbers of the next products."""
    return {draws: draws.taken for draws in _drawing}


def rewound(numbers: dict[Draws, int]) -> dict[Draws, int]:
    """Set the numbers of the next products to what `taken` has returned; return those that were in force."""
    before = {draws: draws.taken for draws in numbers}
    for draws, number in numbers.items():
        draws.taken = number
    return before
