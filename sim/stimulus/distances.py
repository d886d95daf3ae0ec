"""Products on the same registers, every number of cycles apart: what waits for what, and what passes by what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.stimulus.reductions import Chain

if TYPE_CHECKING:
    from sim.stimulus.mac import Maker

__all__ = ["distance_chains", "required_distances"]

#: Cycles after which nothing is in flight any more.
_DRAINED = 60


def _distances(mac: Any) -> range:
    """Return how many cycles later than possible a product may come, so that it meets what is in flight anywhere."""
    return range(mac.parameters.stages + 8)


def _pairs(mac: Any) -> Iterator[tuple[int, int, str]]:
    for before, after in itertools.product(mac.levels, mac.levels):
        yield before, after, "starts"
        if before == after:
            yield before, after, "continues"
    for level in mac.levels:
        if level:
            yield level, level, "within_chunk"


def _names(mac: Any) -> Iterator[tuple[str, int, int, str, int]]:
    for (before, after, how), cycles in itertools.product(_pairs(mac), _distances(mac)):
        yield f"distance/level_{before}_then_{after}_{how}/{cycles}", before, after, how, cycles


def required_distances(mac: Any) -> set[str]:
    """Return the bins that `distance_chains` meets."""
    return {name for name, *_ in _names(mac)}


def distance_chains(maker: Maker) -> Iterator[tuple[str, Chain]]:
    """Yield the name of a bin and its products, with chunks of two products as far as the unit has such."""
    chunk = min(2, (1 << maker.mac.chunk_bits) - 1)
    for name, before, after, how, cycles in _names(maker.mac):
        index, other = maker.rng.integers(len(maker.operands), size=2).tolist()
        if how == "within_chunk":
            # The promotion of the first chunk meets the second product of the next one.
            one = maker.segment(index, before, 6, chunk=chunk)
            one.pauses = [_DRAINED, 0, 0, cycles, 0, 0]
            yield name, [one]
            continue
        first = maker.segment(index, before, 3, chunk=chunk)
        second = maker.segment(other if how == "starts" else index, after, 4, chunk=chunk, first=how == "starts")
        first.pauses, second.pauses = [_DRAINED, 0, 0], [cycles, 0, 0, 0]
        if how == "starts":
            for segment in (first, second):
                segment.odd = segment.level not in maker.paired and bool(maker.rng.integers(2))
        yield name, [first, second]
