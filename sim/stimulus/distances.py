"""Products on the same registers, every number of cycles apart: waiting, and bypassing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from sim.stimulus.maker import Maker
from sim.stimulus.reductions import Chain
from sim.stimulus.schedule import DRAINED

__all__ = ["distance_chains", "required_distances"]


def _distances(mac: Any) -> range:
    """Return the additional cycles before a product, enough to meet an operation in flight at every rank."""
    return range(mac.parameters.stages + 8)


def _pairs(maker: Maker) -> Iterator[tuple[int, int, str]]:
    levels = maker.mac.levels
    for before, after in itertools.product(levels, levels):
        yield before, after, "starts"
        if before == after:
            yield before, after, "continues"
        if (before in maker.paired) != (after in maker.paired):
            yield before, after, "crosses"
    for level in levels:
        if level:
            yield level, level, "within_chunk"


def _names(maker: Maker) -> Iterator[tuple[str, int, int, str, int]]:
    for (before, after, how), cycles in itertools.product(_pairs(maker), _distances(maker.mac)):
        yield f"distance/level_{before}_then_{after}_{how}/{cycles}", before, after, how, cycles


def required_distances(maker: Maker) -> set[str]:
    """Return the bins that `distance_chains` meets."""
    return {name for name, *_ in _names(maker)}


def distance_chains(maker: Maker) -> Iterator[tuple[str, Chain]]:
    """Yield the name of a bin and its products, with chunks of two products if the unit has chunks."""
    chunk = min(2, (1 << maker.mac.chunk_bits) - 1)
    for name, before, after, how, cycles in _names(maker):
        index, other = maker.rng.integers(len(maker.operands), size=2).tolist()
        if how == "within_chunk":
            # The promotion of the first chunk meets the second product of the next one.
            one = maker.segment(index, before, 6, chunk=chunk)
            one.pauses = [DRAINED, 0, 0, cycles, 0, 0]
            yield name, [one]
            continue
        first = maker.segment(index, before, 3, chunk=chunk)
        is_new = how != "continues"
        second = maker.segment(other if is_new else index, after, 4, chunk=chunk, first=is_new)
        first.pauses, second.pauses = [DRAINED, 0, 0], [cycles, 0, 0, 0]
        # In the other register of the pair.
        for segment in (first, second):
            segment.odd = how == "crosses" and segment.level not in maker.paired
        yield name, [first, second]
