"""Which random bits the products of a precision round with, and which again in a checkpoint's second forward pass.

Each product that runs forward has a number of its own, in the order in which they run; it is the upper half of the
generator's key, above the seed. The products of its backward pass have that number, too, and calls of their own.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakSet

from golden.rounding import DEFAULT_RANDOM_BITS, ReductionRounding, Rounding

__all__ = ["FIRST_PART", "Draws", "branched", "rewound", "taken"]

_SEEDS = 2**32
_CALLS = 2**32
_SPREAD = 2654435761  # 2^32 divided by the golden ratio: multiples of it are far apart
#: The branch of the first of several parts of a product; those before it are its gradients, and sums of these.
FIRST_PART = 5


class Draws:
    """The random modes of a precision, and the number of its next product."""

    def __init__(self, rounding: Rounding, out_rounding: Rounding, seed: int) -> None:
        self._modes, self._seed, self.taken = (rounding, out_rounding), seed, 0
        _drawing.add(self)

    def next(self) -> ReductionRounding:
        """Return how the next product is rounded."""
        number, self.taken = self.taken, self.taken + 1
        return ReductionRounding(*self._modes, self._seed + number % _SEEDS * _SEEDS, 0, DEFAULT_RANDOM_BITS)


_drawing: WeakSet[Draws] = WeakSet()


def branched(rounding: ReductionRounding, branch: int) -> ReductionRounding:
    """Return how a product is rounded that belongs to another: a gradient, or one of several parts; `branch` from 1."""
    return replace(rounding, call=(rounding.call * _SPREAD + branch) % _CALLS)


def taken() -> dict[Draws, int]:
    """Return the numbers of the next products."""
    return {draws: draws.taken for draws in _drawing}


def rewound(numbers: dict[Draws, int]) -> dict[Draws, int]:
    """Set the numbers of the next products to what `taken` has returned; return those that were in force."""
    before = {draws: draws.taken for draws in numbers}
    for draws, number in numbers.items():
        draws.taken = number
    return before
