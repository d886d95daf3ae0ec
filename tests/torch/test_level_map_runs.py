"""Level maps of training runs: MixedPrecision, Trainer, YAML, run.yaml and a resume."""

import dataclasses
import json

import pytest
import torch
import yaml

import golden.torch as cstorch
from golden.torch.amp.yaml_configuration import precision_from_yaml
from golden.torch.training.commands import line as cli
from golden.torch.training.identity import precision_settings

from .runs import PRECISION, bits, model, run

LEVELS = {"0": {"fwd": 2, "bwd": 0}, "3": 0}
MAPPED = dataclasses.replace(PRECISION, levels=LEVELS)


def plain():
    torch.manual_seed(7)
    return model()


def with_pols():
    net = plain()
    net[0] = cstorch.pol(fwd_level=2, bwd_level=0)(net[0])
    net[3] = cstorch.pol(level=0)(net[3])
    return net


def test_trainer_level_map_gives_the_bits_of_a_pol_on_each_module():
    trained = []
    for net, precision in ((plain(), MAPPED), (with_pols(), PRECISION), (plain(), PRECISION)):
        trainer, loader = run(None, net=net, precision=precision)
        trainer.fit(loader, steps=5)
        trained.append((bits(trainer), trainer.validate(loader)))
    assert trained[0] == trained[1]
    assert trained[0] != trained[2]


def test_trainer_level_map_that_matches_no_module_is_an_error_at_once():
    with pytest.raises(ValueError, match="levels: 'hed' matches no module of Sequential, at its top are '0', '1'"):
        run(None, precision=dataclasses.replace(PRECISION, levels={"hed": 1}))


def test_mixed_precision_level_map_is_checked_and_kept_in_types_of_yaml():
    assert dataclasses.replace(PRECISION, levels={0: {"half": torch.bfloat16}}).levels == {"0": {"half": "bfloat16"}}
    with pytest.raises(ValueError, match="levels: 'head': level: got 3, must be 0"):
        dataclasses.replace(PRECISION, levels={"head": 3})
    assert hash(MAPPED) == hash(PRECISION)
    assert MAPPED != PRECISION


def test_precision_settings_have_a_level_map_only_where_there_is_one():
    assert "levels" not in precision_settings(PRECISION)
    assert json.loads(json.dumps(precision_settings(MAPPED)))["levels"] == LEVELS


def test_resume_with_another_level_map_is_refused_and_with_the_same_has_the_same_bits(tmp_path):
    whole, loader = run(tmp_path / "whole", precision=MAPPED)
    whole.fit(loader, steps=6)
    first, loader = run(tmp_path / "parts", precision=MAPPED)
    first.fit(loader, steps=3)
    other = dataclasses.replace(PRECISION, levels={"0": {"fwd": 2, "bwd": 1}, "3": 0})
    trainer, loader = run(tmp_path / "parts", precision=other)
    with pytest.raises(ValueError, match=r"precision.levels.0.bwd is 0 there and 1 here"):
        trainer.fit(loader, steps=6, resume=True)
    trainer, loader = run(tmp_path / "parts", precision=MAPPED)
    trainer.fit(loader, steps=6, resume=True)
    assert bits(trainer) == bits(whole)


def test_yaml_level_map_is_that_of_the_run():
    text = (
        "trainer: {init: {precision: {loss_scaling_factor: dynamic, levels: {blocks.*.mlp: {fwd: 2, bwd: 1}, 0: 2}}}}"
    )
    assert precision_from_yaml(yaml.safe_load(text)).levels == {"blocks.*.mlp": {"fwd": 2, "bwd": 1}, "0": 2}
    wrong = yaml.safe_load(text.replace("fwd: 2", "fwd: 7"))
    with pytest.raises(ValueError, match=r"trainer.init.precision.levels: 'blocks.\*.mlp': level: got 7, must be 0"):
        precision_from_yaml(wrong)


def fit(folder, *more):
    levels = "trainer.init.precision.levels={1: {fwd: 2}, 5: 0}"
    return cli.main(
        ["fit", "digits_mlp", "--no-progress", "--steps", "2", "--model-dir", str(folder), "--set", levels, *more]
    )


def test_command_line_records_the_level_map_in_run_yaml_and_resumes_with_it(tmp_path, capsys):
    assert fit(tmp_path) == 0
    recorded = yaml.safe_load((tmp_path / "run.yaml").read_text())
    assert recorded["trainer"]["init"]["precision"]["levels"] == {1: {"fwd": 2}, 5: 0}
    assert cli.main(["fit", str(tmp_path / "run.yaml"), "--no-progress", "--steps", "3", "--resume"]) == 0
    with pytest.raises(SystemExit):
        fit(tmp_path, "--steps", "4", "--resume", "--set", "trainer.init.precision.levels={1: 2}")
    assert "precision.levels" in capsys.readouterr().err


def test_command_line_level_map_of_another_model_is_an_error_with_near_names(tmp_path, capsys):
    with pytest.raises(SystemExit):
        fit(tmp_path, "--set", "trainer.init.precision.levels={'1.weight': 2}")
    assert "trainer.init.precision.levels: '1.weight' matches no module" in capsys.readouterr().err
