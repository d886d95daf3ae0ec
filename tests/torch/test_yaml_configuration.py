"""The precision of a YAML file, in both forms of the documents."""

import pytest

from golden.torch import MixedPrecision
from golden.torch.amp.yaml_configuration import precision_from_yaml, read_yaml

NEWER = """
trainer:
  init:
    model_dir: ./run
    model: {hidden_size: 768}
    precision:
      enabled: true
      fp16_type: cbfloat16
      precision_opt_level: 2
      loss_scaling_factor: dynamic
      initial_loss_scale: 1e6
      steps_per_increase: 100
      min_loss_scale: 0.5
      max_loss_scale: 2.e6
      max_gradient_norm: 1
      log_loss_scale: true
  fit: {train_dataloader: {batch_size: 32}}
"""
OLDER = """
runconfig: {max_steps: 10, precision_opt_level: 2}
model: {hidden_size: 768, mixed_precision: true, fp16_type: cbfloat16}
optimizer:
  optimizer_type: AdamW
  learning_rate: 1e-3
  loss_scaling_factor: dynamic
  initial_loss_scale: 1e6
  steps_per_increase: 100
  min_loss_scale: 0.5
  max_loss_scale: 2e+6
  max_gradient_norm: 1
  log_loss_scale: true
"""
BOTH = MixedPrecision(
    fp16_type="cbfloat16",
    precision_opt_level=2,
    loss_scaling_factor="dynamic",
    initial_loss_scale=1e6,
    steps_per_increase=100,
    min_loss_scale=0.5,
    max_loss_scale=2e6,
    max_gradient_norm=1,
    log_loss_scale=True,
)


def from_text(folder, text):
    path = folder / "run.yaml"
    path.write_text(text)
    return precision_from_yaml(path)


@pytest.mark.parametrize("text", [NEWER, OLDER], ids=["newer", "older"])
def test_file_of_either_form_gives_the_same_precision(tmp_path, text):
    assert from_text(tmp_path, text) == BOTH


def test_section_with_few_keys_has_the_defaults_for_the_others():
    given = {"trainer": {"init": {"precision": {"fp16_type": "bfloat16"}}}}
    assert precision_from_yaml(given) == MixedPrecision(fp16_type="bfloat16")
    assert precision_from_yaml({"model": {"fp16_type": "bfloat16"}}) == MixedPrecision(fp16_type="bfloat16")


def test_mixed_precision_false_of_the_older_form_disables():
    assert precision_from_yaml({"model": {"mixed_precision": False}}) == MixedPrecision(enabled=False)


PRECISION = "trainer: {init: {precision: %s}}"
# Each name stands for ten of the one before.
ALIASES = "a0: &a0 [0]\n" + "".join(f"a{at + 1}: &a{at + 1} [{', '.join([f'*a{at}'] * 10)}]\n" for at in range(9))
BESIDE = "{trainer: {init: {precision: {}}}, model: {fp16_type: bfloat16}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PRECISION % "{fp16_typ: x}",
            r"^trainer.init.precision.fp16_typ: is not a known key; did you mean fp16_type\?",
        ),
        (PRECISION % "{zzz: 1}", r"^trainer.init.precision.zzz: is not a known key, must be one of chunk, enabled, "),
        (PRECISION % "{1: 1}", r"^trainer.init.precision.1: is not a known key"),
        (
            PRECISION % "{fp16_type: bfloat16, reduction: inner=float16 chunk=4}",
            r"^trainer.init.precision.reduction: got inner=float16 chunk=4 .*, must be at a level",
        ),
        (
            PRECISION % "{fp16_type: bfloat16, reduction: inner=bloat16}",
            r"^trainer.init.precision.reduction: got inner=bloat16 .*did you mean",
        ),
        (PRECISION % "{fp16_type: fp16}", r"^trainer.init.precision.fp16_type: got 'fp16', must be one of"),
        (
            PRECISION % "{fp16_type: cbfloat16}",
            r"^trainer.init.precision.loss_scaling_factor: got None .* must be",
        ),
        (PRECISION % "1", r"^trainer.init.precision: got 1, must be a mapping"),
        ("trainer: {init: {}}", r"^trainer.init.precision: is missing"),
        ("trainer: 3", r"^trainer: got 3, must be a mapping"),
        ("model: {fp16_type: fp16}", r"^model.fp16_type: got 'fp16', must be one of"),
        ("model: {fp16_type: cbfloat16}", r"^optimizer.loss_scaling_factor: got None .* must be 'dynamic'"),
        ("model: {fp16_typ: bfloat16}", r"^model.fp16_typ: is not a known key; did you mean fp16_type"),
        ("optimizer: {loss_scaling_facter: 1}", r"^optimizer.loss_scaling_facter: .* you mean loss_scaling_factor\?"),
        ("runconfig: {precision_opt_levl: 1}", r"^runconfig.precision_opt_levl: .* you mean precision_opt_level\?"),
        ("runconfig: {precision_opt_level: 3}", r"^runconfig.precision_opt_level: got 3, must be"),
        ("model: {mixed_precision: 1}", r"^model.mixed_precision: got 1, must be True or False"),
        (BESIDE, r"^model: has keys of the precision beside trainer.init.precision"),
        ("{}", r"^trainer.init.precision: is missing"),
        ("[1]", r"run.yaml: got \[1\] at its top, must be a mapping"),
        ("a: [", r"(?s)run.yaml: is not YAML: .*line 1"),
        ("a: 1\na: 2", r"(?s)run.yaml: is not YAML: 'a' stands here twice.*line 2"),
        pytest.param("[" * 3000, "run.yaml: is nested too deeply, must have at most 100 levels", id="3000 brackets"),
        pytest.param("[" * 101 + "]" * 101, "run.yaml: is nested too deeply, must have at most 100 levels", id="101"),
        ("a: &a {b: *a}", "run.yaml: is nested too deeply, .*; an alias must not contain itself"),
        pytest.param(ALIASES, "run.yaml: has too many values, must have at most 1000000", id="a thousand million"),
    ],
)
def test_wrong_file_is_refused_by_its_key(tmp_path, text, message):
    with pytest.raises((TypeError, ValueError), match=message):
        from_text(tmp_path, text)


def test_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError):
        precision_from_yaml(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-3", 1e-3), ("1E3", 1e3), ("-1.5e+3", -1500.0), ("2.e6", 2e6), (".5e1", 5.0), ("1e", "1e"), ("0x1e3", 0x1E3)],
)
def test_numbers_with_an_exponent_are_numbers(tmp_path, text, value):
    path = tmp_path / "one.yaml"
    path.write_text(f"x: {text}")
    got = read_yaml(path)["x"]
    assert (got, type(got)) == (value, type(value))
