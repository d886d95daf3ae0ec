"""Run files in both forms of the Model Zoo, with models and data by import path, and their messages."""

import csv
import signal
import subprocess
import sys
import time

import pytest
import yaml

from golden.torch.amp.yaml_configuration import read_yaml
from golden.torch.training.older_form import as_today

from .run_files import MODELS, NEWER, OLDER, ROOT, call, log, refused

pytestmark = pytest.mark.usefixtures("threads_as_before")


def test_newer_form_trains_and_validates_what_it_names(tmp_path, capsys, written):
    folder, path = tmp_path / "run", written(NEWER)
    assert call("fit", path, folder) == 0
    told = capsys.readouterr().out
    assert f"{MODELS}:Zoo" in told
    assert "cbfloat16 at level 1, loss scaling dynamic" in told
    assert "step 2  loss " in told
    assert [step for step, _ in log(folder)] == [2, 4, 6]
    assert sorted(each.name for each in (folder / "checkpoints").iterdir()) == ["step_00000004", "step_00000006"]
    assert any((folder / "tensorboard").iterdir())
    with (folder / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["step"], row["name"]) for row in rows] == [("3", "val_loss"), ("6", "val_loss")]
    last = f"loss on the validation data: {float(rows[-1]['value']):.4f}"
    assert last in told
    assert call("validate", path, folder) == 0
    assert last in capsys.readouterr().out
    assert call("validate", path, folder, "--checkpoint", str(folder / "checkpoints" / "step_00000004")) == 0
    assert last not in capsys.readouterr().out
    assert yaml.safe_load((folder / "run.yaml").read_text())["trainer"]["init"]["loop"]["grad_accum_steps"] == 2


def test_older_form_trains_as_the_newer_one_does(tmp_path, capsys, written):
    path, today = tmp_path / "today.yaml", as_today(read_yaml(written(OLDER)))[0]
    path.write_text(yaml.safe_dump(today))
    assert call("fit", written(OLDER), tmp_path / "older") == 0
    told = capsys.readouterr().out
    assert "cbfloat16 at level 2" in told
    assert "runconfig.num_csx has no effect here" in told
    assert "loss on the validation data: " in told
    assert call("fit", str(path), tmp_path / "newer") == 0
    assert log(tmp_path / "older") == log(tmp_path / "newer")
    assert today["trainer"]["init"]["optimizer"] == {"AdamW": {"lr": 1e-3, "weight_decay": 0.1, "betas": [0.8, 0.999]}}
    assert "runconfig" in yaml.safe_load((tmp_path / "older" / "run.yaml").read_text())


def test_steps_of_the_command_line_come_before_any_length_of_the_file(tmp_path, written):
    epochs = OLDER.replace("max_steps: 6", "num_epochs: 9")
    assert call("fit", written(epochs), tmp_path, "--steps", "2") == 0
    assert len(log(tmp_path)) == 2


def test_loss_by_import_path_makes_pairs_of_batches(tmp_path, written):
    given = yaml.safe_load(NEWER)
    given["trainer"]["init"] |= {
        "model": {"name": f"{MODELS}:Net"},
        "loss": "torch.nn.functional:cross_entropy",
        "optimizer": {"torch.optim:Adagrad": {"learning_rate": 0.1}},
        "schedulers": {
            "SequentialLR": {"schedulers": [{"ConstantLR": {"factor": 0.5}}, "ExponentialLR"], "milestones": [2]}
        },
        "callbacks": None,
    }
    given["trainer"]["init"]["schedulers"]["SequentialLR"]["schedulers"][1] = {"ExponentialLR": {"gamma": 0.9}}
    assert call("fit", written(yaml.safe_dump(given)), tmp_path / "run") == 0
    assert len(log(tmp_path / "run")) == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("init.model.name=nowhere:Net", "trainer.init.model.name: got 'nowhere:Net', whose module 'nowhere' cannot be"),
        (f"init.model.name={MODELS}:Zoom", "has no class or function 'Zoom'; did you mean Zoo?"),
        (f"init.model={{name: '{MODELS}:data'}}", "which makes <torch.utils.data.dataset.TensorDataset"),
        (
            "init.model.name=mlp",
            "must have as its name one of digits_mlp, digits_cnn, character_gpt, or an import path",
        ),
        ("init.loss=cross_entropy", "trainer.init.loss: got 'cross_entropy', must be an import path, as torch.nn."),
        ("init.optimizer={Adagard: {}}", "trainer.init.optimizer.Adagard: is not a known key; did you mean Adagrad?"),
        (
            "init.optimizer={Adagrad: {lrr: 1}}",
            "trainer.init.optimizer.Adagrad.lrr: is not a known key; did you mean lr?",
        ),
        ("init.optimizer={Adagrad: {lr: -1}}", "trainer.init.optimizer.Adagrad: Adagrad refuses its settings: "),
        (
            "init.schedulers=[{StepLR: {gamma: 1}}]",
            "trainer.init.schedulers.StepLR.step_size: is missing, must be given",
        ),
        (
            "init.schedulers=[{LinearLR: {initial_learning_rate: 1}}]",
            "trainer.init.schedulers.LinearLR.end_learning_rate: is",
        ),
        ("init.schedulers=[{StpLR: {}}]", "trainer.init.schedulers.StpLR: is not a known key; did you mean StepLR?"),
        ("init.callbacks=[CheckLos]", "trainer.init.callbacks.CheckLos: is not a known key; did you mean CheckLoss?"),
        (f"init.callbacks=['{MODELS}:Net']", "makes Net("),
        (
            "init.loggers=[TensorBoard]",
            "trainer.init.loggers.TensorBoard: is not a known key; did you mean TensorBoardLogger?",
        ),
        (
            "init.loop={eval_frequency: 1}",
            "trainer.init.loop: got {'eval_frequency': 1}, must have max_steps, num_steps or",
        ),
        ("init.loop.max_step=1", "trainer.init.loop.max_step: is not a known key; did you mean max_steps?"),
        ("init.sparsity={}", "trainer.init.sparsity: is not a known key"),
        ("init.device=TPU", "trainer.init.device: got 'TPU', must be 'CPU', 'GPU' or 'CSX'"),
        (
            "fit.train_dataloader.exampels=3",
            "trainer.fit.train_dataloader.exampels: is not a known key; did you mean examples?",
        ),
        (
            "fit.train_dataloader={batch_size: 4}",
            "trainer.fit.train_dataloader.data_processor: is missing, must be given",
        ),
        ("fit.ckpt_path=nowhere", "--resume: got nowhere, must be the folder of a checkpoint"),
    ],
)
def test_wrong_entry_is_refused_by_its_place(tmp_path, capsys, written, setting, message):
    assert message in refused(capsys, "fit", written(NEWER), tmp_path / "run", "--set", f"trainer.{setting}")
    assert not (tmp_path / "run" / "log.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("max_steps", "max_step"), "runconfig.max_step: is not a known key; did you mean max_steps?"),
        (("beta1", "betta1"), "optimizer.betta1: is not a known key; did you mean beta1 and beta2?"),
        (("beta1", "learning_rat"), "beta1 and beta2, correct_bias, eps, learning_rate, maximize, weight_decay_rate"),
        (("AdamW", "adamx"), "optimizer.optimizer_type: adamx is not a known key; did you mean"),
        (("learning_rate: 1e-3", "learning_rate: -1"), "optimizer.learning_rate: got -1, must be greater than 0"),
        (
            ("learning_rate: 1e-3", "learning_rate: [3]"),
            "optimizer.learning_rate: got 3, must be a number, or have a",
        ),
        (("optimizer_type: AdamW", ""), "optimizer.optimizer_type: is missing, must be given"),
        (("train_input", "train_inptu"), "train_inptu: is not a known key; did you mean train_input?"),
        (("log_steps: 1", "log_steps: 0"), "runconfig.log_steps: got 0, must be greater than 0"),
        (("fp16_type: cbfloat16", "fp16_type: fp16"), "model.fp16_type: got 'fp16', must be one of"),
        ((f"{MODELS}:Typed", "typed"), "model: got {'name': 'typed'"),
        (("data_processor:", "data_procesor:"), "train_input.data_processor: is missing, must be given"),
    ],
)
def test_wrong_entry_of_the_older_form_is_refused_by_its_place(tmp_path, capsys, written, change, message):
    assert message in refused(capsys, "fit", written(OLDER.replace(*change)), tmp_path)


@pytest.mark.filterwarnings("default:override")
def test_errors_name_options_of_the_command_line_and_not_arguments_of_python(tmp_path, capsys, written):
    folder, path = tmp_path / "run", written(OLDER)
    assert refused(capsys, "fit", path, folder, "--resume").endswith(
        f"--resume: found no checkpoint in {folder / 'checkpoints'}, must be one to resume from\n"
    )
    call("fit", path, folder, "--steps", "3")
    told = refused(capsys, "fit", path, folder)
    assert f"--model-dir: {folder} has the checkpoints of a run; pass --resume to go on with it, or --restart" in told
    changed = ("fit", path, folder, "--resume", "--set", "optimizer.learning_rate=1e-2")
    told = refused(capsys, *changed)
    assert "optimizer.lr is 0.001 there and 0.01 here" in told
    assert "pass --override to go on with the ones given here" in told
    assert call(*changed, "--override") == 0
    (folder / "checkpoints" / "step_00000006" / "state.pt").unlink()
    told = refused(capsys, "fit", path, folder, "--resume")
    whole = folder / "checkpoints" / "step_00000003"
    assert f"the newest whole one before it is {whole}: pass --resume-from '{whole}' to go on from there" in told
    assert call("fit", path, folder, "--resume-from", str(whole)) == 0
    captured = capsys.readouterr()
    assert "=True" not in captured.err + captured.out


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("text", "place"), [(NEWER, "trainer.init.loop.max_steps"), (OLDER, "runconfig.max_steps")])
def test_resumed_run_with_nothing_left_to_do_says_which_key_to_raise(tmp_path, capsys, written, text, place):
    assert call("fit", written(text), tmp_path / "run") == 0
    capsys.readouterr()
    assert call("fit", written(text), tmp_path / "run", "--resume") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {place}: got 6 for a run that has made 6 steps already: this fit makes no")


@pytest.mark.filterwarnings("default:override")
def test_run_file_beside_the_log_always_tells_the_run(tmp_path, written):
    folder, path = tmp_path / "run", written(OLDER)
    folder.mkdir()
    (folder / "run.yaml").write_text("of: another run that came to no checkpoint\n")

    def kept(name="run.yaml"):
        return yaml.safe_load((folder / name).read_text())

    call("fit", path, folder, "--steps", "2")
    assert kept()["runconfig"]["max_steps"] == 2
    changed = ["--resume", "--override", "--steps", "4", "--set", "runconfig.precision_opt_level=0"]
    call("fit", path, folder, *changed)
    assert (kept()["runconfig"]["max_steps"], kept()["runconfig"]["precision_opt_level"]) == (4, 0)
    assert kept("run_to_step_00000002.yaml")["runconfig"]["precision_opt_level"] == 2
    with pytest.raises(SystemExit):  # refused: nothing has changed
        call("fit", path, folder, "--resume", "--set", "runconfig.precision_opt_level=1")
    assert kept()["runconfig"]["precision_opt_level"] == 0
    call("fit", path, folder, "--restart", "--steps", "1")
    assert sorted(each.name for each in folder.iterdir()) == ["checkpoints", "log.csv", "metrics.csv", "run.yaml"]


@pytest.mark.filterwarnings("default:override")
def test_overridden_setting_is_a_warning_in_one_line(tmp_path, capsys, written):
    path = written(OLDER)
    call("fit", path, tmp_path / "run", "--steps", "2")
    call("fit", path, tmp_path / "run", "--resume", "--override", "--set", "runconfig.seed=5")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: --override: going on from ")
    assert line.endswith("though seed is 2 there and 5 here")


def test_signal_is_the_exit_status_of_the_command_line(tmp_path, capsys, written):
    given = yaml.safe_load(OLDER)
    today = as_today(given)[0]
    today["trainer"]["init"]["callbacks"] = [{f"{MODELS}:SignalAfter": {"step": 2, "signal": int(signal.SIGTERM)}}]
    path = written(yaml.safe_dump(today))
    assert call("fit", path, tmp_path / "run") == 143
    assert capsys.readouterr().err.startswith("stopped by SIGTERM after step 2: ")


def test_ctrl_c_before_the_first_step_is_one_line(tmp_path, capsys, written, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("golden.torch.training.commands.run.parts_of", stop)
    assert call("fit", written(OLDER), tmp_path / "run") == 130
    assert capsys.readouterr().err.splitlines() == [
        "stopped by Ctrl-C at once: nothing is saved beyond the checkpoints that are there"
    ]
    assert not (tmp_path / "run").exists()


def test_ctrl_c_ends_the_process_with_one_line_and_a_whole_checkpoint(tmp_path):
    command = [sys.executable, "-m", "golden.torch", "fit", "digits_mlp", "--steps", "1000000", "--no-progress"]
    process = subprocess.Popen(
        [*command, "--model-dir", str(tmp_path)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    log_file, late = tmp_path / "log.csv", time.monotonic() + 120
    while not (log_file.is_file() and len(log_file.read_text().splitlines()) > 3):
        assert time.monotonic() < late
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    (line,) = told.splitlines()
    assert line.startswith("stopped by Ctrl-C after step ")
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    assert f"{checkpoint} is saved" in line
    assert len(log_file.read_text().splitlines()) == 1 + int(checkpoint.name.removeprefix("step_"))
