"""python -m golden.torch with wrong input: one line that says what to give, no traceback, and nothing is lost."""

import contextlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from golden.torch.training.commands import line
from golden.torch.training.commands.line import main

from .run_files import ROOT, call, log, refused

pytestmark = pytest.mark.usefixtures("threads_as_before")


def told(capsys, *arguments):
    """Return the message about wrong input, without the usage."""
    with pytest.raises(SystemExit) as stopped:
        main([*map(str, arguments)])
    assert stopped.value.code == 2
    return capsys.readouterr().err.partition(" error: ")[2].splitlines()


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", ["{}: got None at its top, must be a mapping of keys to values"]),
        ("trainer:\n\tinit: 3", ["{}: is not YAML: while scanning for the next token: found character '\\t' that "
         "cannot start any token, in line 2, column 1"]),
        ("trainer: [1\nx: 3", ["{}: is not YAML: while parsing a flow sequence: expected ',' or ']', but got ':', in "
         "line 2, column 2"]),
        ("{[a]: 1}", ["{}: is not YAML: ['a'] cannot be a key, in line 1, column 2"]),
        ("a: 1\na: 2", ["{}: is not YAML: 'a' stands here twice, in line 2, column 1"]),
        ("trainer: 2020-13-45", ["{}: is not YAML: month must be in 1..12"]),
        ("trainer: a\0b", ["{}: is not YAML: unacceptable character #x0000: special characters are not allowed in "
         '"<unicode string>", position 10']),
        (b"trainer: \xff", ["{}: is not text in UTF-8: invalid start byte at byte 9"]),
        ("trainer:", ["trainer: got None, must be a mapping of keys to values"]),
        ("trainer: {init: 3, fit: {}}", ["trainer.init: got 3, must be a mapping of keys to values",
         "trainer.fit.train_dataloader: is missing, must be given"]),
        ("trainr: {}", ["trainer: is missing, must be given", "trainr: is not a known key; did you mean trainer?"]),
        ("3: {}", ["trainer: is missing, must be given", "3: got 3, must be a key that is text"]),
        ("- a list", ["{}: got ['a list'] at its top, must be a mapping of keys to values"]),
    ],
)  # fmt: skip
def test_file_that_is_no_run_file_is_told_in_a_line_for_each_mistake(tmp_path, capsys, text, messages):
    path = tmp_path / "run.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert told(capsys, "fit", path) == [each.format(path) for each in messages]
    assert [*tmp_path.iterdir()] == [path]


def test_unknown_key_that_is_like_no_other_is_told_with_those_of_its_place(capsys):
    for change, known in (
        ("trainer.zzz=1", "fit, init, validate, validate_all"),
        ("trainer.init.loop.zzz=1", "eval_frequency, eval_steps, grad_accum_steps, max_steps, num_epochs"),
        ("trainer.init.optimizer.AdamW.zzz=1", "amsgrad, betas, correct_bias, eps, lr, maximize, weight_decay"),
        ("trainer.validate={val_dataloader: {}, zzz: 1}", "ckpt_path, val_dataloader"),
        ("trainer.init.model.zzz=1", "blocks, channels, context, heads, hidden, layers, name, width"),
    ):
        (said,) = told(capsys, "fit", "digits_mlp", "--set", change)
        place = change.partition("=")[0].replace("validate", "validate.zzz")
        assert said.startswith(f"{place}: is not a known key, must be one of {known}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *((["fit", run], f"run: got {run!r}, must be a YAML file or one of character_gpt, digits_cnn, digits_mlp")
          for run in ("missing.yaml", ".", "/dev/null", "/proc/nothing")),
        (["fit", "digits_mpl"], "run: got 'digits_mpl', must be a YAML file or one of character_gpt, digits_cnn, "
         "digits_mlp; did you mean digits_mlp?"),
        (["fit", "digits_mlp", "--set", "x=["], "--set: got x=[, whose value is not YAML: "),
        (["fit", "digits_mlp", "--set", "x"], "--set: got 'x', must be KEY=VALUE"),
        (["fit", "digits_mlp", "--threads", "0"], "--threads: got 0, must be at least 1"),
        (["fit", "digits_mlp", "--resume", "--restart"], "argument --restart: not allowed with argument --resume"),
        (["fit", "digits_mlp", "--model-dir", "run.yaml"], "--model-dir: got run.yaml, where nothing can be written"),
        (["fit", "digits_mlp", "--model-dir", "/dev/full"], "--model-dir: got /dev/full, where nothing can be written"),
        (["fit", "digits_mlp", "--model-dir", "/proc/nothing"],
         "--model-dir: got /proc/nothing, where nothing can be written: No such file or directory"),
        (["fit", "digits_mlp", "--levels", "/nowhere/levels.yaml"],
         "--levels: got /nowhere/levels.yaml, which cannot be read: No such file or directory"),
        (["fit", "digits_mlp", "--steps", "0"], "--steps: got 0, must be at least 1"),
        (["fit", "digits_mlp", "--model-dir", ""], "trainer.init.model_dir: got None, must be a path"),
        (["fit", "digits_mlp", "--resume-from", "nowhere"], "--resume-from: got nowhere, must be the folder of a"),
        (["advise", "digits_mlp", "--chunks", "32,0"], "--chunks: got '32,0', must be whole numbers from 1 with"),
        (["advise", "digits_mlp", "-o", ""], "--output: got '', which cannot be written: it is a folder"),
        (["advise", "digits_mlp", "-o", "no/levels.yaml"],
         "--output: got no/levels.yaml, which cannot be written: its folder does not exist"),
        (["advise", "digits_mlp", "--costs", "{"], "--costs: got '{', which is not YAML: while parsing a flow node: "),
        (["report", "run.yaml"], "RUN: got run.yaml, must be the folder of a run, or its observations.jsonl"),
    ],
)  # fmt: skip
def test_wrong_argument_is_told_in_one_line_by_the_name_that_it_has_here(
    tmp_path, capsys, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").touch()
    (said,) = told(capsys, *arguments)
    assert said.startswith(message)
    assert [each.name for each in tmp_path.iterdir()] == ["run.yaml"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    call("fit", "digits_mlp", folder, "--steps", "3")
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


@pytest.mark.parametrize("text", [b"junk\n1,2\n", b"\xff\0", b"step,loss\none,2\n"])
def test_resume_beside_a_log_that_is_none_is_told_and_leaves_it(capsys, folder, text):
    (folder / "log.csv").write_bytes(text)
    said = refused(capsys, "fit", "digits_mlp", folder, "--resume", "--steps", "5")
    assert f"--model-dir: {folder / 'log.csv'} is damaged, must have rows with a step" in said
    assert (folder / "log.csv").read_bytes() == text


def test_resume_beside_a_log_whose_last_row_is_cut_off_writes_it_again(folder, trained):
    whole = (folder / "log.csv").read_bytes()
    (folder / "log.csv").write_bytes(whole.rstrip() + b"\r\n1")  # of step 10, say: not a row of step 1
    call("fit", "digits_mlp", folder, "--resume", "--steps", "5")
    assert [step for step, _ in log(folder)] == [1, 2, 3, 4, 5]
    assert log(folder)[:3] == log(trained)


def test_resume_that_fails_in_the_log_keeps_its_rows(capsys, folder, monkeypatch):
    before = (folder / "log.csv").read_bytes()

    def fails(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("golden.torch.training.loggers.csv.DictWriter.writerows", fails)
    assert "the disk is full" in refused(capsys, "fit", "digits_mlp", folder, "--resume", "--steps", "5")
    assert (folder / "log.csv").read_bytes() == before


def test_resume_beside_a_record_that_is_no_text_keeps_it(folder):
    (folder / "run.yaml").write_bytes(b"\xff\0")
    assert call("fit", "digits_mlp", folder, "--resume", "--steps", "5") == 0
    assert (folder / "run_to_step_00000003.yaml").read_bytes() == b"\xff\0"


@pytest.mark.parametrize(
    ("command", "place", "message"),
    [
        (
            "fit",
            "golden.torch.training.commands.run.parts_of",
            "nothing is saved beyond the checkpoints that are there",
        ),
        ("validate", "golden.torch.training.trainer.Trainer.load_weights", "nothing was measured to the end"),
        ("validate", "golden.torch.training.trainer.Trainer.evaluate", "nothing was measured to the end"),
        ("advise", "golden.torch.instruments.advise.search.Search.run", "no level map is written"),
        ("report", "golden.torch.instruments.report.page.write_report", "no page is written"),
    ],
)
def test_ctrl_c_at_any_stage_of_a_command_is_one_line(tmp_path, capsys, folder, monkeypatch, command, place, message):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    (folder / "observations.jsonl").touch()
    before = sorted(tmp_path.rglob("*"))
    arguments = [str(folder)] if command == "report" else ["digits_mlp", "--model-dir", str(folder), "--no-progress"]
    status = None
    with contextlib.suppress(KeyboardInterrupt):  # would end pytest
        status = main([command, *arguments])
    assert status == 130
    assert capsys.readouterr().err.splitlines() == [f"stopped by Ctrl-C at once: {message}"]
    assert sorted(tmp_path.rglob("*")) == before


def test_every_command_says_what_ctrl_c_has_stopped():
    assert set(line._STOPPED) == {*line._ACTIONS, "report"}


def test_ctrl_c_before_the_command_line_is_read_is_one_line(tmp_path):
    slow = tmp_path / "rich"  # imported by the command line, after the package
    slow.mkdir()
    (slow / "__init__.py").write_text("import os, time\nopen(os.environ['SLOW'], 'w').close()\ntime.sleep(60)\n")
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", "import golden.torch, runpy, sys; sys.path.insert(0, sys.argv.pop()); "
         "[sys.modules.pop(name) for name in list(sys.modules) if name.split('.')[0] == 'rich' or 'commands' in name]; "
         "runpy.run_module('golden.torch', run_name='__main__')", str(tmp_path)],
        cwd=ROOT, env={"SLOW": str(begun)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    late = time.monotonic() + 60
    while not begun.exists():
        assert process.poll() is None
        assert time.monotonic() < late
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1].splitlines() == ["stopped by Ctrl-C"]
    assert process.returncode == 130
