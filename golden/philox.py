"""The random bits of stochastic rounding: Philox4x32-10, and the place of a rounding as its counter (NUMERICS 10).

On Python integers, for `golden.reference`; `golden.arrays.randomness` is the same on arrays.
"""

from __future__ import annotations

__all__ = [
    "FINAL_CONVERSION",
    "FIRST_PROMOTION",
    "KEY_STEPS",
    "MOST_STEPS",
    "MULTIPLIERS",
    "ROUNDS",
    "philox4x32_10",
    "random_at",
]

#: Multipliers of words 0 and 2, the increments of the key between rounds, and the number of rounds.
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

#: The step of the promotion of chunk 0; those before are products.
FIRST_PROMOTION = 2**31
#: The step of the conversion into `out`.
FINAL_CONVERSION = 2**32 - 1
#: The most products of one result: each needs a step number below `FIRST_PROMOTION`.
MOST_STEPS = FIRST_PROMOTION

_WORD = 2**32


def philox4x32_10(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the four words that Random123's generator has for a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = divmod(MULTIPLIERS[0] * c0, _WORD)
        high1, low1 = divmod(MULTIPLIERS[1] * c2, _WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + KEY_STEPS[0]) % _WORD, (k1 + KEY_STEPS[1]) % _WORD
    return c0, c1, c2, c3


def random_at(seed: int, call: int, index: int, step: int, random_bits: int) -> int:
    """Return the random bits of a rounding.

    Parameters
    ----------
    seed : int
        64 bits: the key, low word first.
    call : int
        32 bits.
    index : int
        Which result of the call, in row-major order; 64 bits.
    step : int
        k for a product, `FIRST_PROMOTION` plus the number of the chunk, or `FINAL_CONVERSION`.
    random_bits : int
        How many of the first word's bits, from the top, 1 to 32.
    """
    words = philox4x32_10((index % _WORD, index // _WORD, step, call), (seed % _WORD, seed // _WORD))
    return words[0] >> (32 - random_bits)
