"""Exact sums of many float64 arrays of any exponents, rounded to odd.

A sum is kept as digits of 32 bits, from the lowest place of any term up::

    digit      ...  2                1                0
    term             [ .. high ][ .... low .... ]          two parts of 24 bits, each shifted by 0 to 31
    sum        [ signed, no carry before all terms are in ]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.arrays.rounding import Float64

__all__ = ["exact_sum"]

_DIGIT, _MASK = 32, np.int64((1 << 32) - 1)
_PART = 24
_PRECISION = 2 * _PART  # bits of a product of two float32 significands, and more than any total has
_FLOAT64 = 53


def exact_sum(terms: Sequence[Float64]) -> Float64:
    """Return the sum of terms, rounded to odd at 53 bits; 0 is +0.

    Parameters
    ----------
    terms : float64 arrays of one shape
        Finite numbers of at most 48 significant bits.
    """
    shape = terms[0].shape
    flat = np.stack([np.asarray(term, np.float64).reshape(-1) for term in terms])
    fraction, exponent = np.frexp(flat)
    significand = np.ldexp(fraction, _PRECISION).astype(np.int64)
    place = exponent.astype(np.int64) - _PRECISION
    if not significand.any():
        return np.zeros(shape)
    lowest = place[significand != 0].min()
    place = np.where(significand != 0, place - lowest, 0)
    count = int(place.max() + _PRECISION + len(terms).bit_length()) // _DIGIT + 2
    digits = np.zeros((count, flat.shape[1]), np.int64)
    at = np.arange(flat.shape[1])
    for number, where in zip(significand, place, strict=True):
        sign, magnitude = np.sign(number), np.abs(number)
        for part, above in ((magnitude & (1 << _PART) - 1, 0), (magnitude >> _PART, _PART)):
            digit, shift = np.divmod(where + above, _DIGIT)
            word = part << shift
            digits[digit, at] += sign * (word & _MASK)
            digits[digit + 1, at] += sign * (word >> _DIGIT)
    negative = _carried(digits)[-1] < 0
    magnitude = _carried(np.where(negative, -digits, digits))
    rounded = _to_odd(magnitude, int(lowest))
    return np.where(negative, -rounded, rounded).reshape(shape)


def _carried(digits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the digits of the same number from 0 to 2^32 - 1; the last one has the sign."""
    carried = digits.copy()
    for place in range(len(digits) - 1):
        carried[place + 1] += carried[place] >> _DIGIT
        carried[place] &= _MASK
    return carried


def _to_odd(digits: NDArray[np.int64], lowest: int) -> Float64:
    """Return non-negative numbers as float64: the upper 53 bits, the last one set if anything below is."""
    count, size = digits.shape
    padded = np.concatenate([np.zeros((2, size), np.int64), digits])  # two digits below the lowest
    top = count - 1 - np.argmax(digits[::-1] != 0, axis=0)
    at = np.arange(size)
    first, second, third = (padded[top + 2 - below, at].astype(np.uint64) for below in range(3))
    below = np.cumsum(padded != 0, axis=0)
    sticky: NDArray[Any] = np.where(top > 0, below[np.maximum(top - 1, 0), at] > 0, False)
    length = np.frexp(first.astype(np.float64))[1].astype(np.uint64)  # bits of the first digit, 0 for a sum of 0
    digit = np.uint64(_DIGIT)
    # [ first: length | second: 32 | third: 32 - length ] is 64 bits, the rest of the third digit is below them.
    word = first << (2 * digit - np.maximum(length, 1)) | second << (digit - length) | third >> length
    rest = (third & ((np.uint64(1) << length) - np.uint64(1))) != 0
    spare = np.uint64(64 - _FLOAT64)
    kept = word >> spare
    sticky = sticky | rest | ((word & ((np.uint64(1) << spare) - np.uint64(1))) != 0)
    exponent = lowest + _DIGIT * top + length.astype(np.int64) - _FLOAT64
    return np.ldexp((kept | sticky).astype(np.float64), exponent)
