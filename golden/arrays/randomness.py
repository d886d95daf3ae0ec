"""The random bits of stochastic rounding on NumPy arrays: `golden.philox` for many places at once."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from golden.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from golden.rounding import Randomness

__all__ = ["philox4x32_10", "random_words"]

Words = NDArray[np.uint64] | np.uint64

_LOW, _HIGH = np.uint64(2**32 - 1), np.uint64(32)


def philox4x32_10(counter: tuple[Words, Words, Words, Words], key: tuple[int, int]) -> tuple[Words, ...]:
    """Return the four words of Philox4x32-10 for arrays of counters, whose words stand in 64 bits, and broadcast."""
    c0, c1, c2, c3 = counter
    keys = list(key)
    for _ in range(ROUNDS):
        k0, k1 = (np.uint64(each) for each in keys)
        first, second = np.uint64(MULTIPLIERS[0]) * c0, np.uint64(MULTIPLIERS[1]) * c2
        c0, c1, c2, c3 = second >> _HIGH ^ c1 ^ k0, second & _LOW, first >> _HIGH ^ c3 ^ k1, first & _LOW
        keys = [(each + step) % 2**32 for each, step in zip(keys, KEY_STEPS, strict=True)]
    return c0, c1, c2, c3


def random_words(
    shape: tuple[int, ...], random: Randomness, index: NDArray[np.uint64] | None = None
) -> Callable[[int], NDArray[np.uint32]]:
    """Return a function of the step: the random bits of each result of a call there (NUMERICS section 10).

    `shape` covers all results of the call, unless `index` gives their numbers within it.
    """
    if index is None:
        index = np.arange(prod(shape), dtype=np.uint64).reshape(shape)
    low, high, call = index & _LOW, index >> _HIGH, np.uint64(random.call)
    key, unused = (random.seed % 2**32, random.seed // 2**32), np.uint64(32 - random.random_bits)

    def at(step: int) -> NDArray[np.uint32]:
        words = philox4x32_10((low, high, np.uint64(step), call), key)
        return np.asarray(words[0] >> unused, np.uint32)

    return at
