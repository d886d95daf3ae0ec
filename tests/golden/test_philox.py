"""The random bits of stochastic rounding: Random123's known answers, on integers and on arrays; their statistics."""

import numpy as np
import pytest

from golden.arrays import randomness
from golden.philox import FINAL_CONVERSION, FIRST_PROMOTION, philox4x32_10, random_at
from golden.rounding import Randomness

ONES = 0xFFFFFFFF
#: Those that Random123 publishes for philox4x32 of 10 rounds (kat_vectors): counter, key, words.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip


def words(shape, step, **options):
    return randomness.random_words(shape, Randomness(**options))(step)


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_philox_has_the_published_answers(counter, key, words):
    assert philox4x32_10(counter, key) == words
    arrays = tuple(np.full(3, word, np.uint64) for word in counter)
    assert [column.tolist() for column in randomness.philox4x32_10(arrays, key)] == [[word] * 3 for word in words]


def test_random_bits_of_a_place_are_the_top_ones_of_the_first_word_with_low_words_first():
    (i0, i1, step, call), (k0, k1), words = KNOWN_ANSWERS[2]
    seed, index = k0 + (k1 << 32), i0 + (i1 << 32)
    assert random_at(seed, call, index, step, 32) == words[0]
    assert random_at(seed, call, index, step, 16) == words[0] >> 16
    assert random_at(seed, call, index, step, 1) == words[0] >> 31


@pytest.mark.parametrize("step", [0, 1, FIRST_PROMOTION, FIRST_PROMOTION + 3, FINAL_CONVERSION])
@pytest.mark.parametrize("bits", [1, 7, 16, 32])
def test_random_bits_of_an_array_are_those_of_each_index(step, bits):
    got = words((2, 3, 5), step, seed=2**63 + 5, call=2**32 - 1, random_bits=bits)
    wanted = [random_at(2**63 + 5, 2**32 - 1, index, step, bits) for index in range(30)]
    assert got.ravel().tolist() == wanted


def chi_square(values, bins):
    counts = np.bincount(values, minlength=bins)
    expected = len(values) / bins
    return float(((counts - expected) ** 2 / expected).sum())


def uniform(values, bits):
    """Whether the numbers' low bits and their top bits are equally frequent: 255 degrees of freedom, within 5 sigma."""
    parts = values & np.uint32(255), values >> np.uint32(bits - 8)
    return all(abs(chi_square(part.astype(np.int64), 256) - 255) < 5 * (2 * 255) ** 0.5 for part in parts)


def test_random_bits_are_uniform_along_index_step_and_call():
    along_index = words((100_000,), 0, seed=1)
    along_step = np.array([words((1,), step, seed=1)[0] for step in range(20_000)])
    along_call = np.array([words((1,), 0, seed=1, call=call)[0] for call in range(20_000)])
    for values in (along_index, along_step, along_call):
        assert uniform(values, 16)
    assert not uniform(along_index | np.uint32(1), 16)  # the check can fail


def test_random_bits_of_neighbouring_places_are_uncorrelated():
    rows = np.array([words((20_000,), step, seed=2, random_bits=32) for step in range(4)]).astype(np.float64)
    correlations = np.corrcoef(np.concatenate([rows[:, 1:], rows[:, :-1]]))[np.triu_indices(8, 1)]
    assert np.abs(correlations).max() < 5 / 20_000**0.5
