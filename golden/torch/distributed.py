"""The place of this process in ``torch.distributed``, named as in ``cerebras.pytorch.distributed``."""

from __future__ import annotations

from golden.torch.cerebras.cluster import CSConfig
from golden.torch.common import processes
from golden.torch.common.arguments import check_count

ClusterConfig = CSConfig

__all__ = [
    "ClusterConfig",
    "get_ordinal",
    "get_streaming_batch_size",
    "get_streaming_rank",
    "is_master_ordinal",
    "is_receiver",
    "is_streamer",
    "num_receivers",
    "num_streamers",
    "num_tasks",
]


def get_ordinal() -> int:
    """Return the number of this process, its distributed rank, from 0."""
    return processes.rank()


def num_tasks() -> int:
    """Return the number of processes, 1 without ``torch.distributed``."""
    return processes.world_size()


def num_streamers() -> int:
    """Return how many processes read data: all, each its own."""
    return processes.world_size()


def num_receivers() -> int:
    """Return how many processes train: all."""
    return processes.world_size()


def get_streaming_rank() -> int:
    """Return the number of this process among those that read data."""
    return processes.rank()


def is_master_ordinal(local: bool = False) -> bool:
    """Return whether this is process 0; `local` is accepted."""
    return processes.rank() == 0


def is_streamer() -> bool:
    """Return whether this process only reads data for a wafer: never."""
    return False


def is_receiver() -> bool:
    """Return whether this process trains: always."""
    return True


def get_streaming_batch_size(effective_batch_size: int, global_rank: int | None = None) -> int:
    """Return the batch size of one process, which is `effective_batch_size`: nothing is split behind a script's back.

    Raises
    ------
    TypeError, ValueError
        If it is not an int from 1.
    """
    return check_count(effective_batch_size, "effective_batch_size")
