"""Checkpoints: whole or not there, and only for the run that they are of."""

import errno
import json
import os
import re
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

import golden
from golden.torch import MixedPrecision, Trainer, mx
from golden.torch.training import checkpoint
from golden.torch.training.checkpoint import newest_checkpoint, read_checkpoint, write_checkpoint

from .runs import PRECISION, bits, model, run


@pytest.fixture
def trained(tmp_path):
    trainer, data = run(tmp_path, checkpoint_steps=2)
    trainer.fit(data, steps=4)
    return tmp_path


def folder(trained, step=4):
    return trained / "checkpoints" / f"step_{step:08}"


def test_weights_are_a_plain_state_dictionary_in_safetensors(trained):
    weights = safetensors.torch.load_file(folder(trained) / "weights.safetensors")
    found = model().load_state_dict(weights)
    assert (found.missing_keys, found.unexpected_keys) == ([], [])


def test_newest_checkpoint_is_that_of_the_largest_step(tmp_path):
    for name in ("step_00000009", "step_00000010", "step_100000000", "step_200000000.partial", "step_x", "other"):
        (tmp_path / name).mkdir()
    assert newest_checkpoint(tmp_path).name == "step_100000000"


class Crash(BaseException):
    """The process dies here."""


@pytest.mark.filterwarnings("ignore:.*this fit makes no step")
@pytest.mark.parametrize("where", ["safetensors.torch.save_file", "torch.save", "_flush", "rename"])
def test_process_that_dies_while_writing_leaves_the_checkpoint_before_it(trained, monkeypatch, where):
    def crash(*_):
        raise Crash

    trainer, data = run(trained)
    trainer.fit(data, steps=5, resume=True)
    expected = bits(trainer)
    second, data = run(trained)
    with monkeypatch.context() as patch:
        if where == "rename":
            patch.setattr(checkpoint.Path, "rename", crash)
        elif where == "_flush":
            patch.setattr(checkpoint, where, crash)
        else:
            patch.setattr(where, crash)
        with pytest.raises(Crash):
            second.fit(data, steps=6, resume=folder(trained))
    assert (trained / "checkpoints" / "step_00000006.partial").is_dir()
    assert newest_checkpoint(trained / "checkpoints") == folder(trained, 5)
    third, data = run(trained)
    third.fit(data, steps=5, resume=True)
    assert bits(third)[:4] == expected[:4]
    third.fit(data, steps=6)
    assert newest_checkpoint(trained / "checkpoints") == folder(trained, 6)
    assert not (trained / "checkpoints" / "step_00000006.partial").exists()


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "checkpoint.json"])
@pytest.mark.parametrize("damage", ["half", "empty", "one bit", "gone"])
def test_damaged_file_is_named_and_changes_nothing(trained, name, damage):
    path = folder(trained) / name
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "one bit":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        path.write_bytes(content[: len(content) // 2 if damage == "half" else 0])
    trainer, data = run(trained)
    before = bits(trainer)
    if name == "checkpoint.json" and damage == "one bit":
        match = "is damaged|is of another run"
    elif name == "checkpoint.json" and damage == "gone":
        match = r"^resume: got .*, must be the folder of a checkpoint"
    else:
        match = "is damaged, .* delete the folder to resume from the checkpoint before it"
    with pytest.raises((ValueError, FileNotFoundError), match=match):
        trainer.fit(data, steps=6, resume=True)
    assert bits(trainer)[:4] == before[:4]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("name", ["state.pt", "checkpoint.json"])
def test_checkpoint_on_a_full_disk_says_so_and_where_and_leaves_the_one_before(trained, monkeypatch, name):
    real = checkpoint.Path.mkdir

    def make(path, **kwargs):
        real(path, **kwargs)
        (path / name).symlink_to("/dev/full")

    monkeypatch.setattr(checkpoint.Path, "mkdir", make)
    with pytest.raises(OSError, match=r"the disk is full, so this was not written.*step_00000005'$") as told:
        write_checkpoint(trained / "checkpoints", 5, model(), {"big": torch.ones(100_000)}, {})
    assert (told.value.errno, told.value.filename) == (errno.ENOSPC, str(folder(trained, 5)))
    assert newest_checkpoint(trained / "checkpoints") == folder(trained, 4)
    assert not list((trained / "checkpoints").glob("*.partial"))


def test_weights_that_do_not_fit_say_so_and_where(trained):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=r"the file is larger than is allowed here.*step_00000005'$") as told:
            write_checkpoint(trained / "checkpoints", 5, nn.Linear(100, 100), {}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.errno == errno.EFBIG
    full = checkpoint.safetensors.SafetensorError("I/O error: No space left on device (os error 28)")
    with pytest.raises(OSError, match="the disk is full"), checkpoint.telling_of_a_full_disk(trained):
        raise full


def test_files_are_on_disk_before_the_checkpoint_has_its_name(tmp_path, monkeypatch):
    order = []
    real = checkpoint._flush
    monkeypatch.setattr(checkpoint, "_flush", lambda path: (order.append(path.name), real(path)))
    rename = checkpoint.Path.rename
    monkeypatch.setattr(checkpoint.Path, "rename", lambda path, to: (order.append("rename"), rename(path, to))[1])
    trainer, data = run(tmp_path)
    trainer.fit(data, steps=1)
    *files, folder_of_files, renamed, parent = order
    assert sorted(files) == ["checkpoint.json", "state.pt", "weights.safetensors"]
    assert (folder_of_files, renamed, parent) == ("step_00000001.partial", "rename", "checkpoints")


class Wider(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = model()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"precision": replace(PRECISION, enabled=False)},
            "precision.enabled is True there and False here",
        ),
        (
            {"precision": MixedPrecision(fp16_type="bfloat16")},
            "precision.fp16_type is cbfloat16 there and bfloat16 here",
        ),
        ({"optimizer": torch.optim.SGD}, "optimizer is AdamW there and SGD here"),
        (
            {"net": nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Dropout(0.3), nn.Linear(9, 3))},
            "0.weight is torch.float32 of shape (8, 4) there and torch.float32 of shape (9, 4) here",
        ),
        (
            {"net": nn.Sequential(*model()[:3], nn.Linear(8, 3, bias=False))},
            "3.bias is torch.float32 of shape (3,) there and nothing here",
        ),
        ({"net": Wider()}, "body.0.weight is nothing there and torch.float32 of shape (8, 4) here"),
    ],
)
def test_checkpoint_of_another_run_is_refused_by_what_differs(trained, arguments, message):
    trainer, data = run(trained, **arguments)
    before = bits(trainer)
    with pytest.raises(ValueError, match=re.escape(message)):
        trainer.fit(data, steps=6, resume=True)
    assert bits(trainer)[:4] == before[:4]


def of_blocks(element="nvfp4", **given):
    return mx.convert(model(), element, keep=["3"], **given)


SEED_1 = {"rounding": "stochastic", "random": golden.Randomness(seed=1)}
SEED_2 = {"rounding": "stochastic", "random": golden.Randomness(seed=2)}


@pytest.mark.parametrize(
    ("there", "here", "message"),
    [
        (of_blocks(), model(), r"blocks.0 is blocks=\(.*nvfp4.*\) there and nothing here"),
        (model(), of_blocks(), r"blocks.0 is nothing there and blocks=\(.*nvfp4.*\) here"),
        (
            of_blocks(),
            of_blocks("float8_e4m3fn"),
            r"blocks.0 is blocks=\(.*nvfp4.*\) there and blocks=\(.*float8_e4m3fn.*\) here",
        ),
        (of_blocks(**SEED_1), of_blocks(**SEED_2), r"seed=1.* there and .*seed=2.* here"),
    ],
    ids=["to none", "from none", "elements", "seeds"],
)
def test_checkpoint_of_layers_with_other_blocks_is_refused(tmp_path, there, here, message):
    trainer, data = run(tmp_path, net=there)
    trainer.fit(data, steps=1)
    second, data = run(tmp_path, net=here)
    with pytest.raises(ValueError, match=message):
        second.fit(data, steps=2, resume=True)
    # A checkpoint that was written before blocks were kept says nothing about them.
    about = next(tmp_path.rglob("checkpoint.json"))
    kept = json.loads(about.read_text())
    del kept["blocks"]
    about.write_text(json.dumps(kept))
    second.fit(data, steps=2, resume=True)


def test_layer_of_blocks_in_a_precision_that_is_not_enabled_is_refused():
    trainer, data = run(None, net=of_blocks(), precision=replace(PRECISION, enabled=False))
    with pytest.raises(ValueError, match=r"^precision\.enabled: got False, must be True: the layer '0' has blocks"):
        trainer.fit(data, steps=1)


@pytest.mark.filterwarnings("ignore:.*this fit makes no step")
def test_tied_weights_come_back_tied(tmp_path):
    def tied():
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        net[2].weight = net[0].weight
        return net

    trainer, data = run(tmp_path, net=tied())
    trainer.fit(data, steps=3)
    second, data = run(tmp_path, net=tied())
    second.fit(data, steps=3, resume=True)
    assert bits(second)[:4] == bits(trainer)[:4]
    assert second.model[2].weight is second.model[0].weight


class Counting(nn.Module):
    """Counts its calls where no parameter and no buffer is."""

    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(4, 3), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * (1 + 0.01 * self.calls)

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_extra_state_of_a_model_is_in_its_checkpoint(tmp_path):
    torch.manual_seed(1)
    whole, data = run(tmp_path / "whole", net=Counting(), checkpoint_steps=2)
    expected = whole.fit(data, steps=4)[2:], bits(whole)
    second, data = run(tmp_path / "run", net=Counting())
    path = tmp_path / "whole" / "checkpoints" / "step_00000002"
    assert (second.fit(data, steps=4, resume=path), bits(second)) == expected
    assert second.model.calls == 4


def test_run_over_the_checkpoints_of_another_is_refused(trained):
    trainer, data = run(trained)
    with pytest.raises(FileExistsError, match=r"^model_dir: .* has the checkpoints of a run; pass resume=True"):
        trainer.fit(data, steps=2)


def test_nothing_to_resume_from_is_said(tmp_path):
    trainer, data = run(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^resume: found no checkpoint in "):
        trainer.fit(data, steps=2, resume=True)
    with pytest.raises(FileNotFoundError, match=r"^resume: got .*nowhere, must be the folder of a checkpoint"):
        trainer.fit(data, steps=2, resume=tmp_path / "nowhere")
    unsaved = Trainer(model(), torch.optim.SGD(model().parameters()), progress=False)
    with pytest.raises(ValueError, match=r"^model_dir: got None, must be the folder of the run to resume"):
        unsaved.fit(data, steps=2, resume=True)


def test_process_killed_between_two_checkpoints_of_one_step_leaves_one(trained, monkeypatch):
    # The old one steps aside before the new one takes its name.
    trainer, data = run(trained)
    trainer.fit(data, steps=6, resume=folder(trained, 2))
    assert sorted(os.listdir(trained / "checkpoints")) == [f"step_{step:08}" for step in (2, 4, 6)]
    rewriting, data = run(trained, checkpoint_steps=4)
    rewriting.fit(data, steps=6, resume=folder(trained, 2))
    assert sorted(os.listdir(trained / "checkpoints")) == [f"step_{step:08}" for step in (2, 4, 6)]
    assert bits(rewriting)[:4] == bits(trainer)[:4]


def test_checkpoint_keeps_the_arrays_of_a_callback_and_refuses_at_once_what_it_could_not_read(tmp_path):
    state = {"best": np.float32(0.5), "counts": np.arange(3), "names": np.array(["a", "b"])}
    path = write_checkpoint(tmp_path, 1, nn.Linear(2, 2), state, {})
    found = read_checkpoint(path, nn.Linear(2, 2)).state
    assert {name: (type(each), each.dtype, each.tolist()) for name, each in found.items()} == {
        name: (type(each), each.dtype, each.tolist()) for name, each in state.items()
    }
    for wrong, named in ((tmp_path, "pathlib.PosixPath"), (np.array([None]), "an array of objects")):
        with pytest.raises(TypeError, match=f"^checkpoint: its state has {named} in it, must be tensors"):
            write_checkpoint(tmp_path, 2, nn.Linear(2, 2), {"best": wrong}, {})
    assert newest_checkpoint(tmp_path) == path
