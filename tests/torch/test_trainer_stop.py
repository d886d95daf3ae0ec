"""Runs that end early, and the files that they leave: signals, damage, pruning, divergence."""

import math
import os
import shutil
import signal
import threading
import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from golden.modelzoo.trainer.callbacks import Callback, CheckLoss, Checkpoint, Divergence, KeepNCheckpoints
from golden.torch import MixedPrecision, RunStopped, Trainer
from golden.torch.training.checkpoint import prune_checkpoints

from .run_models import SignalAfter, data
from .runs import bits, run


def names(folder):
    return sorted(each.name for each in (folder / "checkpoints").iterdir())


@pytest.mark.parametrize(("number", "called"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_signal_saves_the_step_under_way_and_ends_with_one_line(tmp_path, capsys, number, called):
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    whole, loader = run(tmp_path / "whole")
    losses = whole.fit(loader, steps=8)
    first, loader = run(tmp_path / "run", callbacks=[SignalAfter(3, number)])
    with pytest.raises(RunStopped) as stopped:
        first.fit(loader, steps=8)
    assert stopped.value.code == 128 + number
    path = tmp_path / "run" / "checkpoints" / "step_00000003"
    assert capsys.readouterr().err == (
        f"stopped by {called} after step 3: {path} is saved, resume to go on from there\n"
    )
    assert names(tmp_path / "run") == [path.name]
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    second, loader = run(tmp_path / "run")
    assert first.losses + second.fit(loader, steps=8, resume=True) == losses
    assert bits(second) == bits(whole)
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 9


def test_signal_without_a_folder_says_that_nothing_is_saved(capsys):
    trainer, loader = run(None, callbacks=[SignalAfter(2, signal.SIGTERM)])
    with pytest.raises(RunStopped):
        trainer.fit(loader, steps=8)
    assert capsys.readouterr().err == "stopped by SIGTERM after step 2: nothing is saved without a model_dir\n"


def test_second_signal_ends_at_once(monkeypatch):
    class Twice(Callback):
        def on_before_backward(self, trainer, model, outputs):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)  # as torchrun hands on the terminal's signal
            later = time.monotonic() + 1.5
            monkeypatch.setattr(time, "monotonic", lambda: later)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("the third one came back")

    trainer, loader = run(None, callbacks=[Twice()])
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(loader, steps=8)
    assert trainer.step == 0


def test_run_in_a_thread_leaves_the_signals_alone():
    handler, seen = signal.getsignal(signal.SIGTERM), []

    class Watch(Callback):
        def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
            seen.append(signal.getsignal(signal.SIGTERM))

    trainer, loader = run(None, callbacks=[Watch()])
    thread = threading.Thread(target=trainer.fit, args=(loader,), kwargs={"steps": 1})
    thread.start()
    thread.join()
    assert seen == [handler]


class Broken:
    """A data loader whose processes a Ctrl-C of the terminal ends before the third batch."""

    def __init__(self, num_workers):
        self.num_workers = num_workers

    def __iter__(self):
        yield from list(DataLoader(data(), 4))[:2]
        os.kill(os.getpid(), signal.SIGINT)
        raise RuntimeError("DataLoader worker (pid(s) 1) exited unexpectedly")


def test_signal_that_ends_the_processes_of_the_data_loader_saves(tmp_path):
    trainer, _ = run(tmp_path)
    with pytest.raises(RunStopped):
        trainer.fit(Broken(2), steps=4)
    assert names(tmp_path) == ["step_00000002"]
    trainer, _ = run(None)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        trainer.fit(Broken(0), steps=4)


@pytest.mark.filterwarnings("ignore:.*this fit makes no step")
@pytest.mark.parametrize(
    "arguments", [{"checkpoint": Checkpoint(steps=2, keep=2)}, {"callbacks": [KeepNCheckpoints(2)]}]
)
def test_only_the_newest_checkpoints_stay_on_request(tmp_path, arguments):
    arguments = {"checkpoint": Checkpoint(steps=2)} | arguments
    trainer, loader = run(tmp_path, **arguments)
    trainer.fit(loader, steps=9)
    assert names(tmp_path) == ["step_00000008", "step_00000009"]
    second, loader = run(tmp_path)
    second.fit(loader, steps=9, resume=True)  # the remaining checkpoints are complete
    assert bits(second) == bits(trainer)


def test_checkpoint_that_is_deleted_loses_its_name_first(tmp_path, monkeypatch):
    trainer, loader = run(tmp_path, checkpoint_steps=1)
    trainer.fit(loader, steps=3)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)  # the process dies here
    prune_checkpoints(tmp_path / "checkpoints", 1)
    assert [name for name in names(tmp_path) if not name.endswith(".old")] == ["step_00000003"]


def test_damaged_checkpoint_names_the_whole_one_before_it_and_how_to_use_it(tmp_path):
    trainer, loader = run(tmp_path, checkpoint_steps=1)
    trainer.fit(loader, steps=4)
    folder = tmp_path / "checkpoints"
    (folder / "step_00000004" / "weights.safetensors").write_bytes(b"")
    (folder / "step_00000003" / "state.pt").unlink()
    second, loader = run(tmp_path)
    whole = folder / "step_00000002"
    with pytest.raises(ValueError, match="is damaged") as refused:
        second.fit(loader, steps=5, resume=True)
    assert f"the newest whole one before it is {whole}: pass resume='{whole}' to go on from there" in str(refused.value)
    second.fit(loader, steps=5, resume=str(whole))
    assert second.step == 5


def test_damaged_only_checkpoint_says_that_none_is_whole(tmp_path):
    trainer, loader = run(tmp_path)
    trainer.fit(loader, steps=1)
    (tmp_path / "checkpoints" / "step_00000001" / "state.pt").unlink()
    second, loader = run(tmp_path)
    with pytest.raises(ValueError, match=r"is damaged.*; no checkpoint before it is whole: start a new run"):
        second.fit(loader, steps=5, resume=True)


def test_newest_checkpoint_is_loaded_without_a_word_if_the_checkpoint_says_so(tmp_path):
    whole, loader = run(tmp_path / "whole")
    whole.fit(loader, steps=6)
    for steps in (3, 6):
        trainer, loader = run(tmp_path / "run", checkpoint=Checkpoint())
        trainer.fit(loader, steps=steps)
    assert bits(trainer) == bits(whole)
    third, loader = run(tmp_path / "run", checkpoint=Checkpoint())
    with pytest.raises(FileExistsError, match="has the checkpoints of a run"):
        third.fit(loader, None, None, steps=8)


def test_first_weights_are_saved_on_request(tmp_path):
    trainer, loader = run(tmp_path, checkpoint=Checkpoint(save_initial_checkpoint=True))
    trainer.fit(loader, steps=1)
    assert names(tmp_path) == ["step_00000000", "step_00000001"]


def diverging(factor, action, steps=3, precision=None, **arguments):
    """Return a run whose loss is multiplied by a factor from its second step on."""
    net, seen = nn.Linear(4, 3), []

    def loss(outputs, targets):
        seen.append(None)
        return nn.functional.cross_entropy(outputs, targets) * (factor if len(seen) > 1 else 1.0)

    return Trainer(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        loss,
        precision or MixedPrecision(fp16_type="bfloat16"),
        callbacks=[Divergence(steps, action)],
        progress=False,
        **arguments,
    )


STUCK = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", initial_loss_scale=4.0, min_loss_scale=2.0)


def test_loss_that_stays_nan_is_told_once_with_what_to_do():
    trainer = diverging(math.nan, "warn")
    with pytest.warns(UserWarning, match="^loss: ") as told:
        trainer.fit(DataLoader(data(), 4), steps=12)
    (message,) = [str(each.message) for each in told]
    assert message == (
        "loss: it has been nan or the like for 3 steps, since step 2; the run does not recover by itself: go back to a "
        "checkpoint before step 2, and lower the learning rate or set max_gradient_norm"
    )


def test_loss_scale_that_is_stuck_at_its_minimum_is_an_error_on_request(tmp_path):
    trainer = diverging(1e38, "error", precision=STUCK, model_dir=tmp_path)
    with pytest.raises(
        FloatingPointError, match=r"^loss scale: it is at its smallest, 2, and all 3 steps since step 3 were"
    ):
        trainer.fit(DataLoader(data(), 4), steps=12)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    ("factor", "steps", "action"), [(1.0, 1, "error"), (math.nan, 12, "error"), (math.nan, 1, "ignore")]
)
def test_run_that_has_not_diverged_for_so_long_is_left_alone(factor, steps, action):
    trainer = diverging(factor, action, steps)
    assert len(trainer.fit(DataLoader(data(), 4), steps=12)) == 12


def test_divergence_with_another_action_names_those_that_there_are():
    with pytest.raises(ValueError, match=r"^action: got 'stop', must be 'warn', 'error' or 'ignore'$"):
        Divergence(action="stop")


def test_check_loss_ends_at_the_first_loss_that_is_no_number():
    trainer = diverging(math.inf, "warn")
    trainer = Trainer(
        trainer.model, trainer.optimizer, trainer.loss, trainer.precision, callbacks=[CheckLoss()], progress=False
    )
    with pytest.raises(FloatingPointError, match=r"^loss: it has been inf or the like for 1 steps, since step 2"):
        trainer.fit(DataLoader(data(), 4), steps=12)


def test_every_trainer_tells_of_divergence():
    (own,) = run(None)[0].callbacks
    assert (type(own), own.action) == (Divergence, "warn")
