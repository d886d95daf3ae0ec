"""Two processes of torch.distributed on this machine, for the tests of data-parallel training."""

import multiprocessing
import sys
import tempfile
from pathlib import Path

import torch.distributed as dist
import torch.multiprocessing as mp

# Each rank is a new process: on Linux forked from one that has imported PyTorch, which takes seconds, and nothing else.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
multiprocessing.get_context("forkserver").set_forkserver_preload(["golden.torch", "pytest", "torch.utils.data"])


def _start(rank, function, store, ranks, arguments):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        function(rank, *arguments)
    finally:
        dist.destroy_process_group()


def run_on_two_ranks(function, *arguments):
    """Run ``function(rank, *arguments)`` on two ranks; an exception in one of them is raised here."""
    with tempfile.TemporaryDirectory() as folder:
        given = (function, Path(folder) / "store", 2, arguments)
        mp.start_processes(_start, given, nprocs=2, start_method=METHOD)
