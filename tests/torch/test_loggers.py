"""Loggers beside log.csv: metrics.csv, TensorBoard, lines on the terminal, your own loggers."""

import csv
import sys

import numpy as np
import pytest
import torch
from tensorboardX.proto.event_pb2 import Event
from torch.utils.data import DataLoader

from golden.modelzoo.trainer.callbacks import Callback, TrainingLoop
from golden.modelzoo.trainer.loggers import Logger, ProgressLogger, TensorBoardLogger

from .run_models import data
from .runs import run


def metrics(folder):
    with (folder / "metrics.csv").open() as file:
        return [(int(row["step"]), row["name"], float(row["value"])) for row in csv.DictReader(file)]


def events(folder):
    """Return the events of files, as TensorBoard reads them: the records of the format TFRecord."""
    found = []
    for path in sorted(folder.iterdir()):
        content, at = path.read_bytes(), 0
        while at < len(content):
            length = int.from_bytes(content[at : at + 8], "little")  # then 4 bytes of a checksum, before and after
            event = Event.FromString(content[at + 12 : at + 12 + length])
            found += [(event.step, each.tag, each.simple_value) for each in event.summary.value]
            at += 16 + length
    return found


class Twice(Callback):
    def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
        trainer.log_metrics(twice=2 * trainer.step)


def test_metrics_of_callbacks_and_validations_are_rows_and_stay_when_resumed(tmp_path):
    def fit(steps, resume):
        trainer, loader = run(tmp_path, callbacks=[Twice()], loop=TrainingLoop(max_steps=steps, eval_frequency=2))
        trainer.fit(loader, DataLoader(data(), 4), resume=resume)

    fit(2, False)
    fit(3, True)
    told = metrics(tmp_path)
    assert [(step, name) for step, name, _ in told] == [
        *((1, "twice"), (2, "twice"), (2, "val_loss"), (3, "twice"), (3, "val_loss")),
    ]
    assert [value for _, name, value in told if name == "twice"] == [2, 4, 6]


def test_metrics_of_an_earlier_run_do_not_stay(tmp_path):
    (tmp_path / "metrics.csv").write_text("step,name,value\n7,old,1\n")
    trainer, loader = run(tmp_path)
    trainer.fit(loader, steps=1)
    assert not (tmp_path / "metrics.csv").exists()


def test_tensorboard_tells_what_the_log_does(tmp_path):
    trainer, loader = run(tmp_path, loggers=[TensorBoardLogger()], loop=TrainingLoop(max_steps=3))
    trainer.fit(loader, DataLoader(data(), 4))
    told = events(tmp_path / "tensorboard")
    with (tmp_path / "log.csv").open() as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert [step for step, name, _ in told if name == "loss"] == [1, 2, 3]
    assert [value for _, name, value in told if name == "loss"] == pytest.approx(losses)
    assert {name for _, name, _ in told} >= {"epoch", "loss", "loss_scale", "skipped_steps", "seconds", "val_loss"}


def test_numbers_of_numpy_and_tensors_of_one_element_are_logged_as_numbers(tmp_path):
    trainer, loader = run(tmp_path, loggers=[TensorBoardLogger()])
    trainer.fit(loader, steps=1)
    figures = {"t": torch.tensor(1.0625009), "n": np.float32(2.5), "i": np.int64(3), "a": np.array([4.0])}
    trainer.log_metrics(**figures)
    for each in trainer.loggers:
        each.flush()
    found = {name: value for _, name, value in events(tmp_path / "tensorboard")}
    assert {name: found[name] for name in figures} == {name: each.item() for name, each in figures.items()}
    assert dict(row[1:] for row in metrics(tmp_path)) == {name: each.item() for name, each in figures.items()}


def test_tensorboard_goes_where_it_is_told_and_needs_a_folder(tmp_path):
    trainer, loader = run(None, loggers=TensorBoardLogger(tmp_path / "events"), loop=TrainingLoop(max_steps=1))
    trainer.fit(loader)
    assert [step for step, name, _ in events(tmp_path / "events") if name == "loss"] == [1]
    with pytest.raises(ValueError, match=r"^summary_dir: got None, must be a folder"):
        run(None, logger=TensorBoardLogger())


def test_tensorboard_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'cbfloat\[tensorboard\]'"):
        TensorBoardLogger()


def test_progress_logger_prints_a_line_for_each_logged_step(capsys):
    trainer, loader = run(None, logger=[ProgressLogger()], log_steps=2)
    losses = trainer.fit(loader, steps=4)
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in told] == [["step", str(n), "loss", f"{losses[n - 1]:.4f}"] for n in (2, 4)]
    assert "skipped" in told[0]


def test_logger_of_ones_own_is_given_numbers_and_flushed():
    class Mine(Logger):
        def __init__(self):
            self.told, self.flushed = [], 0

        def log_metrics(self, metrics, step):
            self.told.append((step, sorted(metrics)))

        def flush(self):
            self.flushed += 1

    mine = Mine()
    trainer, loader = run(None, loggers=[mine])
    trainer.fit(loader, steps=1)
    assert mine.told == [(1, ["epoch", "loss", "loss_scale", "seconds", "skipped_steps"])]
    assert mine.flushed == 1
