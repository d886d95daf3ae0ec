"""python -m golden.torch: the bundled runs train, stop, go on, and their files are checked key by key."""

import csv
import json
import math
import os
import re
import subprocess
import sys

import pytest
import safetensors.torch
import torch
import yaml

from golden.torch.examples import gpt
from golden.torch.training.commands.line import main
from golden.torch.training.run_file import example_names, find_run_file

EXAMPLES = ["character_gpt", "digits_cnn", "digits_mlp"]


pytestmark = pytest.mark.usefixtures("threads_as_before")


def fit(folder, *arguments, run="digits_mlp"):
    return main(["fit", run, "--model-dir", str(folder), "--no-progress", *arguments])


def losses(folder):
    with (folder / "log.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]


def weights(folder, step):
    path = folder / "checkpoints" / f"step_{step:08}" / "weights.safetensors"
    return {name: each.view(torch.int32).tolist() for name, each in safetensors.torch.load_file(path).items()}


def test_bundled_runs_are_those_of_the_documents(capsys):
    assert main(["examples"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in said] == example_names() == EXAMPLES
    assert "Handwritten digits, a multilayer perceptron" in said[EXAMPLES.index("digits_mlp")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_bundled_run_trains_and_reports(tmp_path, capsys, name):
    assert fit(tmp_path, "--steps", "3", run=name) == 0
    told = capsys.readouterr().out
    assert "cbfloat16 at level 1, loss scaling dynamic" in told
    assert re.search(r"3 steps in .* mean loss of the last 3 steps \d", told)
    assert re.search(r"(accuracy|bits per letter) on the validation data: \d", told)
    assert len(losses(tmp_path)) == 3
    assert all(map(math.isfinite, losses(tmp_path)))
    assert (tmp_path / "checkpoints" / "step_00000003" / "checkpoint.json").is_file()


def test_mlp_learns_the_digits(tmp_path, capsys):
    fit(tmp_path, "--steps", "150")
    accuracy = re.search(r"accuracy on the validation data: ([\d.]+)", capsys.readouterr().out)[1]
    assert float(accuracy) > 0.9


def test_resumed_fit_equals_an_uninterrupted_one(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    fit(whole, "--steps", "30")
    fit(parts, "--steps", "13")
    fit(parts, "--steps", "30", "--resume")
    assert losses(parts) == losses(whole)
    assert weights(parts, 30) == weights(whole, 30)


def test_restart_begins_anew(tmp_path):
    fit(tmp_path, "--steps", "4")
    fit(tmp_path, "--steps", "2", "--restart")
    assert len(losses(tmp_path)) == 2
    assert os.listdir(tmp_path / "checkpoints") == ["step_00000002"]


def test_second_fit_without_a_word_is_refused(tmp_path, capsys):
    fit(tmp_path, "--steps", "2")
    kept = [(tmp_path / name).read_text() for name in ("run.yaml", "log.csv")]
    with pytest.raises(SystemExit) as stopped:
        fit(tmp_path, "--steps", "3")
    assert stopped.value.code == 2
    assert "has the checkpoints of a run" in capsys.readouterr().err
    assert [(tmp_path / name).read_text() for name in ("run.yaml", "log.csv")] == kept


def test_changed_keys_are_used_and_kept_beside_the_log(tmp_path, capsys):
    settings = ["trainer.init.precision.fp16_type=bfloat16", "trainer.init.optimizer.AdamW.lr=1e-2"]
    fit(tmp_path, "--steps", "2", *(word for each in settings for word in ("--set", each)))
    assert "bfloat16 at level 1" in capsys.readouterr().out
    kept = yaml.safe_load((tmp_path / "run.yaml").read_text())["trainer"]["init"]
    assert (kept["precision"]["fp16_type"], kept["optimizer"]["AdamW"]["lr"]) == ("bfloat16", 0.01)
    fit(tmp_path / "again", run=str(tmp_path / "run.yaml"))
    assert losses(tmp_path / "again") == losses(tmp_path)


def test_static_scale_trains_with_a_warning(tmp_path, capsys):
    fit(tmp_path, "--steps", "2", "--set", "trainer.init.precision.loss_scaling_factor=1024")
    assert "warning: loss_scaling_factor: got 1024 with fp16_type cbfloat16" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("init.model.hiden=3", "trainer.init.model.hiden: is not a known key; did you mean hidden?"),
        ("init.model.hidden=[64, a]", "trainer.init.model.hidden.1: got 'a', must be a valid integer"),
        ("init.model.name=mlp", "trainer.init.model: got {'name': 'mlp'"),
        ("init.optimizer.AdamW.lr=-1", "trainer.init.optimizer.AdamW.lr: got -1, must be greater than 0"),
        ("init.optimizer.SGD.lr=1", "must be one optimizer, SGD or AdamW, with its settings under it"),
        ("init.precision.fp16_typ=x", "trainer.init.precision.fp16_typ: is not a known key; did you mean fp16_type?"),
        ("init.precision.loss_scaling_factor=1", "trainer.init.precision.loss_scaling_factor: got 1 with fp16_type"),
        ("init.loop.max_steps=0", "trainer.init.loop.max_steps: got 0, must be greater than 0"),
        ("fit.train_dataloader.batch_size=x", "trainer.fit.train_dataloader.batch_size: got 'x', must be a valid int"),
        ("fit.train_dataloader.batch_size=5000", "trainer.fit.train_dataloader: it gives no batch"),
        ("init.seed.x=1", "--set: got trainer.init.seed.x, must be a key within sections; seed is a value"),
        ("init.model.heads=5", "width must be a multiple of heads, and 64 is none of 5"),
    ],
)
def test_wrong_key_is_refused_by_its_place(tmp_path, capsys, setting, message):
    with pytest.raises(SystemExit) as stopped:
        fit(tmp_path, "--set", f"trainer.{setting}", run="character_gpt" if "heads" in setting else "digits_mlp")
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_resume_of_nothing_is_refused_and_leaves_nothing(tmp_path, capsys):
    with pytest.raises(SystemExit):
        fit(tmp_path / "run", "--resume")
    assert "found no checkpoint" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_missing_section_is_said(tmp_path, capsys):
    path = tmp_path / "run.yaml"
    document = yaml.safe_load(find_run_file("digits_mlp").read_text())
    del document["trainer"]["init"]["loop"]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(SystemExit):
        main(["fit", str(path)])
    assert "trainer.init.loop: is missing, must be given" in capsys.readouterr().err


def test_text_of_another_python_is_told_and_trained_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gpt, "_SHA256", "0" * 64)
    fit(tmp_path, "--steps", "1", run="character_gpt")
    assert "the text is not that of Python 3.11.2" in capsys.readouterr().out
    assert re.search(r"# text: .* SHA-256 [0-9a-f]{64}", (tmp_path / "run.yaml").read_text())


@pytest.mark.long
def test_torchrun_trains_on_two_processes(tmp_path):
    command = [*(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"), "-m"]
    command += ["golden.torch", "fit", "digits_mlp", "--steps", "5", "--model-dir", str(tmp_path), "--no-progress"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stdout
    assert done.stdout.count("accuracy on the validation data") == 1
    assert len(losses(tmp_path)) == 5
    about = json.loads((tmp_path / "checkpoints" / "step_00000005" / "checkpoint.json").read_text())
    assert about["ranks"] == 2
