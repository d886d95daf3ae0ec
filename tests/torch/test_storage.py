"""save and load: whole files, and errors that name the fault of one."""

import datetime
import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import golden.torch as cstorch


def test_saved_state_comes_back_bit_for_bit(tmp_path):
    state = {"model": {"w": torch.tensor([float("nan"), -0.0, 2.0**-149])}, "step": 7, "tags": {"a"}, "none": None}
    cstorch.save(state, tmp_path / "x.mdl")
    loaded = cstorch.load(str(tmp_path / "x.mdl"), map_location="cache")
    assert torch.equal(loaded["model"]["w"].view(torch.int32), state["model"]["w"].view(torch.int32))
    assert {**loaded, "model": None} == {**state, "model": None}
    assert [path.name for path in tmp_path.iterdir()] == ["x.mdl"]


def test_save_that_fails_leaves_the_older_file(tmp_path):
    path = tmp_path / "x.mdl"
    cstorch.save({"step": 1}, path)
    with pytest.raises(TypeError, match=r"^state_dict: cannot be written"):
        cstorch.save({"step": lambda: 2}, path)
    assert cstorch.load(path) == {"step": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["x.mdl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("length", [1, 100_000])
def test_save_on_a_full_disk_says_so_and_where_and_leaves_the_older_file(tmp_path, length):
    path = tmp_path / "x.mdl"
    cstorch.save({"step": 1}, path)
    (tmp_path / f"x.mdl.{os.getpid()}.partial").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"the disk is full, so this was not written.*x\.mdl'$") as told:
        cstorch.save({"w": torch.ones(length)}, path)
    assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(path))
    assert cstorch.load(path) == {"step": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["x.mdl"]


def test_file_that_is_not_a_checkpoint_is_told(tmp_path):
    whole, cut, theirs, objects = (tmp_path / name for name in ("whole", "cut", "theirs", "objects"))
    cstorch.save({"w": torch.ones(9)}, whole)
    cut.write_bytes(whole.read_bytes()[:300])
    theirs.write_bytes(b"\x89HDF\r\n\x1a\n and so on")
    torch.save({"when": datetime.timedelta(1)}, objects)
    with pytest.raises(ValueError, match=r"^ckpt_path: .*cut is damaged"):
        cstorch.load(cut)
    with pytest.raises(ValueError, match=r"^ckpt_path: .*theirs is an HDF5 file.*torch.save"):
        cstorch.load(theirs)
    with pytest.raises(ValueError, match=r"^ckpt_path: .*objects is damaged, or holds objects other than tensors"):
        cstorch.load(objects)
    assert cstorch.load(objects, weights_only=False) == {"when": datetime.timedelta(1)}
    with pytest.raises(FileNotFoundError):
        cstorch.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"^ckpt_path: got .*must be in a folder that exists"):
        cstorch.save({}, tmp_path / "nowhere" / "x")
    with pytest.raises(TypeError, match=r"^ckpt_path: got 3, must be a path"):
        cstorch.load(3)


def test_load_of_numbers_and_arrays_of_numpy_gives_them_back(tmp_path):
    cstorch.save({"lr": np.float64(0.1), "counts": np.arange(3, dtype=np.uint16)}, tmp_path / "file")
    found = cstorch.load(tmp_path / "file")
    assert (type(found["lr"]), found["lr"]) == (np.float64, 0.1)
    assert (found["counts"].dtype, found["counts"].tolist()) == (np.uint16, [0, 1, 2])
