"""Named bit fields of a stream's payload, packed and unpacked for whole arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Fields", "Words", "from_limbs", "to_limbs"]

#: Payloads, one word each: numbers of 64 bits, or Python's own where a payload or a field is wider.
Words = NDArray[Any]

_LIMB = 64


class Fields:
    """Bit fields, least significant first.

    Parameters
    ----------
    widths : mapping of str to int
        Bits of every field; fields of no bits are allowed.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)
        self.width = sum(self.widths.values())
        #: The dtype of arrays of words.
        self.dtype: Any = _dtype(self.width)
        self._low: dict[str, int] = {}
        low = 0
        for name, width in self.widths.items():
            self._low[name] = low
            low += width

    def pack(self, **values: ArrayLike) -> Words:
        """Return the words with these fields; missing fields are 0, and a value that is too wide is truncated."""
        words: Any = np.zeros((), self.dtype)
        for name, value in values.items():
            mask = (1 << self.widths[name]) - 1
            if mask:
                given = np.asarray(value).astype(self.dtype)
                words = words | (given & self._number(mask)) << self._number(self._low[name])
        return np.asarray(words, self.dtype)

    def get(self, words: ArrayLike, name: str) -> Words:
        """Return one field of every word; zeros if there is no such field."""
        given: Any = np.asarray(words, self.dtype)
        width = self.widths.get(name, 0)
        field = given >> self._number(self._low.get(name, 0)) & self._number((1 << width) - 1)
        return np.asarray(field, _dtype(width))

    def unpack(self, word: Any) -> dict[str, int]:
        """Return every field of one word."""
        return {name: int(self.get(word, name)) for name in self.widths}

    def _number(self, value: int) -> Any:
        return value if self.dtype is object else np.uint64(value)


def _dtype(width: int) -> Any:
    return np.uint64 if width <= _LIMB else object


def to_limbs(words: Words) -> NDArray[np.uint64]:
    """Return words in a form for files: Python integers become rows of 64-bit limbs."""
    if words.dtype != object:
        return words
    numbers = [int(word) for word in words.tolist()]
    count = max(1, -(-max(numbers, default=0).bit_length() // _LIMB))
    octets = b"".join(number.to_bytes(count * _LIMB // 8, "little") for number in numbers)
    return np.frombuffer(octets, "<u8").astype(np.uint64).reshape(len(words), count)


def from_limbs(limbs: NDArray[np.uint64]) -> Words:
    """Return the words from the result of `to_limbs`."""
    if limbs.ndim == 1:
        return limbs
    words = np.zeros(len(limbs), object)
    for row, octets in enumerate(np.ascontiguousarray(limbs, "<u8").view(np.uint8)):
        words[row] = int.from_bytes(octets.tobytes(), "little")
    return words
