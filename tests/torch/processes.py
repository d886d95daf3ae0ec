"""Two processes of torch.distributed on this machine, for the tests of data-parallel training."""

import multiprocessing
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

# Each rank is a new process: on Linux forked from one that has imported PyTorch, which takes seconds, and nothing else.
METHOD = "forkserver" if sys.platform == "linux" else "spawn"
multiprocessing.get_context("forkserver").set_forkserver_preload(["golden.torch", "pytest", "torch.utils.data"])

_ATTEMPTS = 3


def _start(rank, function, store, ranks, arguments, backend):
    if "nccl" in backend:
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks)
    dist.barrier()  # no rank begins before all are connected: then they may be started again
    try:
        function(rank, *arguments)
    finally:
        dist.destroy_process_group()


def run_on_two_ranks(function, *arguments, backend="gloo"):
    """Run ``function(rank, *arguments)`` on two ranks; an exception in one of them is raised here.

    With a backend that has NCCL, the current card of each rank has its number.

    On a busy machine Gloo sometimes fails to connect the two; they are started again, which is said.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        with tempfile.TemporaryDirectory() as folder:
            given = (function, Path(folder) / "store", 2, arguments, backend)
            try:
                return mp.start_processes(_start, given, nprocs=2, start_method=METHOD)
            except mp.ProcessRaisedException as failed:
                if "Gloo connectFullMesh failed" not in str(failed) or attempt == _ATTEMPTS:
                    raise
                said = str(failed).strip().splitlines()[-1]
                print(f"the ranks did not connect, attempt {attempt} of {_ATTEMPTS}: {said}")
