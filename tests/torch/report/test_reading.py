"""Reading ``observations.jsonl``: observations that count, notices, and errors that name the line."""

import json

import pytest

from golden.torch.instruments.report.reading import read_run, run_file
from tests.torch.report.made_up import histogram, product, run_of, settings, step, write


def test_run_has_its_settings_steps_and_layers_in_the_order_of_the_model(tmp_path):
    lines = [product(1, "b"), product(1, "a"), product(1, "a", "gradient_of_input"), step(1), step(2, observed=False)]
    run = run_of(tmp_path, lines, modules=["a", "b"], half="float16", level=2)
    assert (run.settings.half, run.settings.level, run.settings.modules) == ("float16", 2, ["a", "b"])
    assert [each.step for each in run.steps] == [1, 2]
    assert run.observed == [1]
    assert [(each.module, each.direction) for each in run.layers] == [
        ("a", "forward"), ("a", "gradient_of_input"), ("b", "forward"),
    ]  # fmt: skip
    assert run.notices == []


def test_lines_of_a_layer_add_up(tmp_path):
    first, second = product(1, largest_exponent=3), product(2, largest_exponent=7)
    (layer,) = run_of(tmp_path, [first, step(1), second, step(2)]).layers
    assert layer.steps.tolist() == [1, 2]
    assert layer.products[:, 0].tolist() == [512 * 64 * 64] * 2
    assert (layer.largest_exponent, layer.calls) == (7, 2)
    assert layer.tensors["left"].total == 2 * first["tensors"]["left"]["total"]
    assert layer.tensors["left"].exponents["-1"] == 2 * first["tensors"]["left"]["exponents"]["-1"]


@pytest.mark.parametrize("is_told_before", [True, False])
def test_gradients_of_a_skipped_step_count_nowhere_and_its_forward_pass_counts(tmp_path, is_told_before):
    products = [product(1), product(1, direction="gradient_of_weight")]
    skipped = [step(1, skipped=True, finite=False)]
    lines = [*skipped, *products] if is_told_before else [*products, *skipped]
    run = run_of(tmp_path, [*lines, product(2, direction="gradient_of_weight"), step(2)])
    assert {each.direction: each.steps.tolist() for each in run.layers} == {
        "forward": [1],
        "gradient_of_weight": [2],
    }
    assert run.left_out == 1


def test_bad_gradient_of_a_skipped_step_tells_nothing_of_the_layer(tmp_path):
    bad = {"kind": "first_bad", "module": "a", "cause": "overflow in the sums", "evidence": {"overflows": 3}}
    lines = [
        bad | {"step": 1, "pass": "gradient_of_input"},
        step(1, skipped=True),
        bad | {"step": 2, "pass": "forward"},
        product(2),
        step(2),
    ]
    run = run_of(tmp_path, lines)
    assert [each.step for each in run.bad_steps] == [1, 2]
    assert [(each.step, each.evidence) for each in run.telling] == [(2, "overflows 3")]


def test_gradients_are_kept_by_the_exponent_of_the_loss_scale(tmp_path):
    line = product(1, direction="gradient_of_input")
    run = run_of(tmp_path, [line, step(1, loss_scale=2.0**9), line | {"step": 2}, step(2, loss_scale=2.0**10)])
    assert {scale: each.total for scale, each in run.gradients.items()} == dict.fromkeys(
        (9, 10), line["tensors"]["output"]["total"]
    )


def test_last_line_that_is_cut_off_is_left_out_with_a_notice(tmp_path):
    folder = write(tmp_path, [settings(), product(1), step(1)])
    path = folder / "observations.jsonl"
    path.write_text(path.read_text() + json.dumps(step(2))[:30])
    run = read_run(folder, "run")
    assert [each.step for each in run.steps] == [1]
    assert "cut off" in run.notices[0]


def test_line_in_the_middle_that_is_damaged_is_named(tmp_path):
    folder = write(tmp_path, [settings(), product(1), step(1)])
    path = folder / "observations.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:40], lines[2]]) + "\n")
    with pytest.raises(ValueError, match=r"observations\.jsonl: line 2 is damaged: .*; delete that line"):
        read_run(folder, "run")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (settings(version=2), "version: got 2, must be 1; use the cbfloat that wrote the file"),
        (settings(level="high"), "level: got 'high'"),
        (step(1, loss="low"), "loss: got 'low'"),
        (product(1, "a", "sideways"), "pass: got 'sideways', must be one of forward"),
        ({key: value for key, value in product(1).items() if key != "tensors"}, "'tensors' is missing"),
        (product(1, products={"steps": 1}), "'inexact' is missing"),
        (product(1, products=dict.fromkeys(("steps", "inexact", "underflow", "overflow", "invalid", "swamped"), "1")),
         "is no line of an observed run"),
        (product(1, tensors={name: histogram("cbfloat16", 0) | {"exponents": {"two": 3}}
                             for name in ("left", "right", "output")}), "exponents: invalid literal"),
        ([1, 2], r"got \[1, 2\], must be an object with a kind"),
    ],
)  # fmt: skip
def test_line_that_is_no_observation_is_named_with_what_is_wrong(tmp_path, line, message):
    folder = write(tmp_path, [settings(), step(1), line, step(2)])
    with pytest.raises(ValueError, match=message) as error:
        read_run(folder, "run")
    assert str(error.value).startswith(str(folder / "observations.jsonl"))


def test_lines_of_unknown_kinds_are_left_out_with_a_notice(tmp_path):
    run = run_of(tmp_path, [product(1), step(1), {"kind": "weather", "rain": True}])
    assert run.notices == ["Lines of unknown kinds are left out: weather."]


def test_run_without_an_observed_step_is_read_with_a_notice(tmp_path):
    run = run_of(tmp_path, [step(1, observed=False)], every=50)
    assert run.notices == ["No step is observed yet; the run observes one in 50."]


def test_folder_without_observations_says_how_to_make_them(tmp_path):
    with pytest.raises(ValueError, match=r"has no observations\.jsonl; train with Trainer\(observe=20\)"):
        run_file(tmp_path)
    with pytest.raises(ValueError, match="which is not there; give the folder of a run"):
        run_file(tmp_path / "nowhere")
    assert run_file(write(tmp_path, [settings()]) / "observations.jsonl").is_file()


@pytest.mark.parametrize(("lines", "message"), [([], "has no line of kind 'run'"), ([settings()], "has no step yet")])
def test_file_without_a_step_is_refused(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_run(write(tmp_path, lines), "run")


def test_resumed_run_has_a_notice_and_the_settings_of_its_end(tmp_path):
    lines = [product(1), step(1), settings(started="2026-02-03", level=2), product(2), step(2)]
    run = run_of(tmp_path, lines)
    assert (run.notices, run.settings.level) == (["The run was resumed at 2026-02-03."], 2)
    assert [each.step for each in run.steps] == [1, 2]
