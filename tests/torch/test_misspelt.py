"""Misspelt names are answered with the nearest known ones, in the words of the place where they stand."""

import shutil

import pytest
import torch

import golden.torch as cstorch
from golden.torch.training.commands import line as cli


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*map(str, arguments), "--no-progress"])
    assert stopped.value.code == 2
    return capsys.readouterr()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert cli.main(["fit", "digits_mlp", "--steps", "2", "--model-dir", str(folder), "--no-progress"]) == 0
    return folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sparse", r"has no 'sparse': of cerebras.pytorch, experimental, mesh, nn, sparse are not provided"),
        ("GradScaler", r"no attribute 'GradScaler'; did you mean amp.GradScaler\?"),
        ("optimiser", r"no attribute 'optimiser'; did you mean optim\?"),
        ("nothing_like_it", r"no attribute 'nothing_like_it'$"),
    ],
)
def test_unknown_attribute_of_the_package_says_what_there_is(name, said):
    with pytest.raises(AttributeError, match=said):
        getattr(cstorch, name)
    assert not hasattr(cstorch, name)


def test_unknown_half_type_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match=r"value: got 'float8_e4m3', .*; did you mean float8_e4m3fn\?"):
        cstorch.amp.set_half_dtype("float8_e4m3")


def test_state_of_a_scaler_that_is_no_mapping_is_refused():
    with pytest.raises(TypeError, match=r"state_dict: got NoneType, must be a result of state_dict\(\)"):
        cstorch.amp.GradScaler("dynamic").load_state_dict(None)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (
            ((1, 2, 3), (1, 2, 4), (1, 2, 4)),
            r"query, key, value: got shapes \(1, 2, 3\), \(1, 2, 4\), \(1, 2, 4\), must",
        ),
        (((1, 2, 4), (1, 3, 4), (1, 2, 4)), r"query, key, value: got shapes .* and \(\.\.\., S, V\)"),
        (((4,), (2, 4), (2, 4)), r"query: got shape \(4,\), must have two axes at least"),
    ],
)
def test_attention_of_shapes_that_do_not_fit_names_its_own_arguments(shapes, said):
    with pytest.raises(ValueError, match=said):
        cstorch.scaled_dot_product_attention(*map(torch.ones, shapes))


def test_validation_without_a_checkpoint_says_how_to_give_one(capsys, tmp_path):
    said = refused(capsys, "validate", "digits_mlp", "--model-dir", tmp_path).err
    assert "--checkpoint: found no checkpoint in" in said
    assert "train first, or name the folder of a run with --model-dir" in said


def test_validation_of_a_checkpoint_that_is_not_there_names_the_one_before_it(capsys, trained):
    step = trained / "checkpoints" / "step_00000002"
    said = refused(capsys, "validate", "digits_mlp", "--checkpoint", step.with_name("step_00000009")).err
    assert f"pass --checkpoint '{step}' to take that one" in said
    assert "--resume" not in said


def test_resumed_run_counts_the_steps_that_it_has_made(capsys, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    given = ["fit", "digits_mlp", "--steps", "5", "--model-dir", str(tmp_path / "run"), "--no-progress", "--resume"]
    assert cli.main(given) == 0
    assert "  3 steps in " in (said := capsys.readouterr().out)
    assert " (5 in all), mean loss of the last 3 steps" in said


def test_advice_that_fails_to_be_written_is_shown_instead(capsys):
    given = ["--budget", "0.1", "--layers", "1", "--batches", "1", "-o", "/proc/levels.yaml"]
    said = refused(capsys, "advise", "digits_mlp", *given)
    assert "\nlevels:\n" in said.out
    assert "--output: got /proc/levels.yaml, which cannot be written: " in said.err
    assert "the level map stands above" in said.err


def test_unknown_callback_lists_callbacks_and_nothing_that_their_modules_import(capsys, tmp_path):
    given = ["--model-dir", tmp_path / "run", "--set", "trainer.init.callbacks=[Nothing]"]
    said = refused(capsys, "fit", "digits_mlp", *given).err
    known = said.partition("trainer.init.callbacks.Nothing: is not a known key, must be one of ")[2].partition(" (an")[
        0
    ]
    names = known.split(", ")
    assert {"CheckLoss", "Divergence", "KeepNCheckpoints", "ComputeNorm", "RateProfiler"} <= {*names}
    assert not {"Checkpoint", "Logging", "Any", "Path", "Run", "WithoutEffect", "Lora"} & {*names}


def test_folder_of_a_trainer_or_an_observation_that_cannot_be_made_is_named():
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = cstorch.Trainer(model, optimizer, torch.nn.functional.mse_loss, model_dir="/proc/nothing")
    said = "got /proc/nothing, where nothing can be written: No such"
    with pytest.raises(FileNotFoundError, match=f"^model_dir: {said}"):
        trainer.fit([(torch.ones(3, 4), torch.ones(3, 2))], steps=1)

    def observed():
        with cstorch.observe(model, folder="/proc/nothing"), cstorch.precision("bfloat16", level=1):
            model(torch.ones(3, 4)).sum().backward()
            optimizer.step()

    with pytest.raises(FileNotFoundError, match=f"^folder: {said}"):
        observed()
