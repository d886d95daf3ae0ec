"""The command advise: from a run file to a level map, and a training with it."""

import pytest
import yaml

from golden.torch.training.commands import line as cli


def run(*arguments):
    return cli.main([*map(str, arguments), "--no-progress"])


def test_command_advise_writes_a_level_map_and_fit_takes_and_records_it(tmp_path, capsys):
    file = tmp_path / "levels.yaml"
    assert run("advise", "digits_mlp", "--budget", "0.02", "--batches", "2", "-o", file) == 0
    shown = capsys.readouterr().out
    assert "levels within 2.00% of the gradient of level 0" in shown.replace("\n", " ")
    assert f"fit takes it with --levels {file}" in shown
    levels = yaml.safe_load(file.read_text())["levels"]
    assert set(levels) == {"*"} or {"1", "3", "5"} == set(levels)
    assert not (tmp_path / "run").exists()
    assert run("fit", "digits_mlp", "--levels", file, "--steps", "2", "--model-dir", tmp_path / "run") == 0
    recorded = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert recorded["trainer"]["init"]["precision"]["levels"] == levels


def test_command_advise_takes_a_checkpoint_chunks_costs_and_layers(tmp_path, capsys):
    assert run("fit", "digits_mlp", "--steps", "2", "--model-dir", tmp_path) == 0
    given = [
        "advise",
        "digits_mlp",
        "--model-dir",
        tmp_path,
        "--checkpoint",
        tmp_path / "checkpoints" / "step_00000002",
    ]
    capsys.readouterr()
    costs = "{0: 1, 1: {16: 2, 32: 3}, 2: {16: 3, 32: 3.5}}"
    assert run(*given, "--layers", "1", "--chunks", "16,32", "--costs", costs, "--trials", "1") == 0
    shown = capsys.readouterr().out
    assert "8 candidates" in shown
    assert "chunk 16" in shown.replace("\n", " ")


def test_command_advise_of_formats_writes_a_level_map_with_formats_that_fit_takes(tmp_path, capsys):
    file = tmp_path / "levels.yaml"
    given = ["--formats", "float8_e5m2", "--layers", "5", "--budget", "0.5", "--trials", "0", "-o", file]
    assert run("advise", "digits_mlp", *given) == 0
    assert "levels and formats within 50.00% of the gradient in fp32" in capsys.readouterr().out.replace("\n", " ")
    levels = yaml.safe_load(file.read_text())["levels"]
    assert levels["5"]["half"]["fwd"] == "float8_e5m2"
    assert run("fit", "digits_mlp", "--levels", file, "--steps", "1", "--model-dir", tmp_path / "run") == 0
    recorded = yaml.safe_load((tmp_path / "run" / "run.yaml").read_text())
    assert recorded["trainer"]["init"]["precision"]["levels"] == levels


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--formats", "float16,x"], "--formats: got 'x', must be of float16"),
        (["--budget", "0"], "--budget: got 0.0, must be finite and above 0"),
        (["--batches", "0"], "--batches: got 0, must be at least 1"),
        (["--layers", "7"], "--layers: '7' matches none of the layers 1, 3, 5"),
        (["--chunks", "a"], "--chunks: got 'a', must be whole numbers"),
        (["--costs", "{0: 1"], "--costs: got '{0: 1', which is not YAML"),
        (["--costs", "{0: 1}"], "--costs: has no entry for level 1"),
        (["--trials", "-1"], "--trials: got -1, must be an int of at least 0"),
        (["--checkpoint", "nowhere"], "nowhere"),
        (["--set", "trainer.init.precision.enabled=false"], "precision: got one that is not enabled"),
    ],
)
def test_command_advise_of_a_wrong_option_is_an_error_that_names_it(given, message, capsys):
    with pytest.raises(SystemExit):
        run("advise", "digits_mlp", *given)
    assert message in capsys.readouterr().err


def test_command_fit_with_a_file_that_is_no_level_map_is_an_error(tmp_path, capsys):
    file = tmp_path / "levels.yaml"
    for text, message in (
        ("head: 0", "must have levels alone"),
        ("levels: {head: 7}", "trainer.init.precision.levels: 'head': level: got 7, must be 0"),
    ):
        file.write_text(text)
        with pytest.raises(SystemExit):
            run("fit", "digits_mlp", "--levels", file, "--model-dir", tmp_path / "run")
        assert message in capsys.readouterr().err
