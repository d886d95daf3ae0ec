"""Objects that take seconds to make, made once for all tests of a room or for all processes of a run."""

import fcntl
import os
import resource
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tools.yosys import loaded_yosys


@pytest.fixture(autouse=True, scope="package")
def one_yosys() -> Iterator[None]:
    """Load Yosys once for all Verilog that the tests of a room make, whose `conftest` imports this."""
    with loaded_yosys():
        yield


def forget_backward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the guard of unscaled gradients see the backward passes of one test alone."""
    from golden.torch.settings import passes  # not every room that imports this has PyTorch

    for kind in ("backward", "other", "fp32", "plain"):
        monkeypatch.setattr(passes.Latest, kind, -1)


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every file that this process writes fail after 1 KiB, as on a disk without space."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other processes out until the block ends."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_folder(tmp_path_factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """Return a folder that one process of this test run fills, while the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each worker has its own folder within the run's
        base = base.parent
    folder, partial = base / name, base / f"{name}.partial"
    with locked(base / f"{name}.lock"):
        if not folder.exists():
            shutil.rmtree(partial, ignore_errors=True)  # left by a process that failed
            partial.mkdir()
            fill(partial)
            partial.rename(folder)
    return folder


def shared_arrays(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[], Iterable[NDArray[Any]]]
) -> list[NDArray[Any]]:
    """Return arrays that one process of this test run computes, while the others wait for them."""
    folder = shared_folder(tmp_path_factory, name, lambda folder: np.savez(folder / "arrays.npz", *make()))
    with np.load(folder / "arrays.npz") as kept:
        return [kept[each] for each in kept.files]
