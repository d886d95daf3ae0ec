"""Named bit fields of a stream's payload, packed and taken apart for whole arrays at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Fields", "Words"]

#: Payloads: one word each, at most 64 bits.
Words = NDArray[np.uint64]


class Fields:
    """Bit fields, least significant first.

    Parameters
    ----------
    widths : mapping of str to int
        Bits of every field; fields of no bits are allowed.

    Raises
    ------
    ValueError
        If they need more than 64 bits.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self.widths = dict(widths)
        self.width = sum(self.widths.values())
        if self.width > 64:
            raise ValueError(f"widths: got {self.width} bits in {', '.join(widths)}, must be at most 64 in all")
        self._low: dict[str, int] = {}
        low = 0
        for name, width in self.widths.items():
            self._low[name] = low
            low += width

    def pack(self, **values: ArrayLike) -> Words:
        """Return the words that hold these fields; a field that is not named is 0, a value too wide is cut off."""
        words = np.zeros((), np.uint64)
        for name, value in values.items():
            mask = np.uint64((1 << self.widths[name]) - 1)
            if mask:
                words = words | (np.asarray(value).astype(np.uint64) & mask) << np.uint64(self._low[name])
        return words

    def get(self, words: ArrayLike, name: str) -> Words:
        """Return one field of every word; zeros if there is no such field."""
        given = np.asarray(words, np.uint64)
        mask = np.uint64((1 << self.widths.get(name, 0)) - 1)
        return given >> np.uint64(self._low.get(name, 0)) & mask

    def unpack(self, word: Any) -> dict[str, int]:
        """Return every field of one word."""
        return {name: int(self.get(word, name)) for name in self.widths}
