"""The observations of one step over all processes of a data-parallel run, summed."""

from __future__ import annotations

import torch.distributed as dist

from golden.torch.common.ranks import rank, world_size
from golden.torch.instruments.observe.tallies import Key, Tally

__all__ = ["merged"]


def merged(mine: dict[Key, Tally]) -> dict[Key, Tally]:
    """Return the sums over all processes on process 0, in its order, and nothing elsewhere. Every process must ask."""
    if world_size() == 1:
        return mine
    of_ranks: list[dict[Key, Tally] | None] | None = [None] * world_size() if rank() == 0 else None
    dist.gather_object(mine, of_ranks)
    if of_ranks is None:
        return {}
    for other in of_ranks[1:]:
        for key, tally in (other or {}).items():
            if key in mine:
                mine[key].merge(tally)
            else:
                mine[key] = tally
    return mine
