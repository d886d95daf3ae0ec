"""Products in the order in which they enter, kept as arrays: there are millions of them in long chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sim.stimulus.reductions import Segment

__all__ = ["Beat", "Beats", "Order"]

#: A product: its segment, and its number there.
Beat = tuple[Segment, int]


class Order:
    """Products, by the numbers of their segments and their own numbers therein.

    Parameters
    ----------
    beats : iterable of beats
        The first products.

    Attributes
    ----------
    segments : list of Segment
        All segments that occur, in the order of their numbers.
    """

    def __init__(self, beats: Iterable[Beat] = ()) -> None:
        self.segments: list[Segment] = []
        self._numbers: dict[int, int] = {}
        self._arrays: list[NDArray[np.int64]] = []  # of two rows: segments, and places in them
        # Beats added one by one; they follow the arrays.
        self._which: list[int] = []
        self._places: list[int] = []
        self += beats

    def number(self, segment: Segment) -> int:
        """Return the number of a segment."""
        found = self._numbers.setdefault(id(segment), len(self.segments))
        if found == len(self.segments):
            self.segments.append(segment)
        return found

    def append(self, number: int, place: int) -> None:
        """Add a product of the segment of that number."""
        self._which.append(number)
        self._places.append(place)

    def extend(self, columns: NDArray[np.int64]) -> None:
        """Add products: a row of numbers of segments, and one of places in them."""
        self._arrays += [self._loose(), columns]
        self._which, self._places = [], []

    def columns(self) -> NDArray[np.int64]:
        """Return a row with the segment of each product, and one with its place there."""
        if len(self._arrays) != 1 or self._which:
            self._arrays = [np.concatenate([*self._arrays, self._loose()], axis=1)]
            self._which, self._places = [], []
        return self._arrays[0]

    def _loose(self) -> NDArray[np.int64]:
        return np.array([self._which, self._places], np.int64)

    def __iadd__(self, beats: Iterable[Beat]) -> Order:
        """Add products, also from another order."""
        if isinstance(beats, Order):
            which, places = beats.columns()
            numbers = np.array([self.number(segment) for segment in beats.segments], np.int64)
            self.extend(np.stack([numbers[which], places]))
        else:
            for segment, place in beats:
                self.append(self.number(segment), place)
        return self

    def __len__(self) -> int:
        return self.columns().shape[1]

    def __getitem__(self, at: int) -> Beat:
        which, place = self.columns()[:, at].tolist()
        return self.segments[which], place

    def __iter__(self) -> Iterator[Beat]:
        which, places = self.columns().tolist()
        return zip(map(self.segments.__getitem__, which), places, strict=True)


#: Products of a scenario: few, or millions.
Beats = list[Beat] | Order
