"""Two processes of torch.distributed on this machine, for the tests of data-parallel training."""

import tempfile
from pathlib import Path

import torch.distributed as dist
import torch.multiprocessing as mp


def _start(rank, function, store, ranks, arguments):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        function(rank, *arguments)
    finally:
        dist.destroy_process_group()


def run_on_two_ranks(function, *arguments):
    """Run ``function(rank, *arguments)`` on two ranks; an exception in one of them is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_start, (function, Path(folder) / "store", 2, arguments), nprocs=2)
