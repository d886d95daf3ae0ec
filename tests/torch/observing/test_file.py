"""observations.jsonl: strict JSON, a line on disk after each step, resumed, and read with errors that name the line."""

import json

import pytest

from golden.torch.instruments.rows import ProductRow, RunRow, StepRow
from golden.torch.observing import NAME, ObservationReport, read_rows

from ..oracle import normal
from .training import Mlp, train


def lines(folder):
    def refuse(name):
        raise AssertionError(name)

    text = (folder / NAME).read_text()
    assert text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_file_has_the_run_first_and_every_step(tmp_path):
    report, _ = train(Mlp(), 5, every=2, folder=tmp_path, level=2)
    told = lines(tmp_path)
    assert told[0]["kind"] == "run"
    assert {name: told[0][name] for name in ("model", "half", "level", "chunk", "rounding", "every")} == {
        "model": "Mlp",
        "half": "cbfloat16",
        "level": 2,
        "chunk": 32,
        "rounding": "nearest_even",
        "every": 2,
    }
    assert told[0]["modules"] == ["", "body", "body.0", "body.1", "body.2", "head"]
    assert [each["step"] for each in told if each["kind"] == "step"] == [1, 2, 3, 4, 5]
    rows = read_rows(tmp_path / NAME)
    assert [row for row in rows if isinstance(row, ProductRow)] == report.rows
    assert ObservationReport(rows).worst() == report.worst()


def test_file_of_losses_and_values_that_are_not_finite_is_strict_json(tmp_path):
    train(Mlp(), 2, every=1, folder=tmp_path, loss_of=lambda model: model(normal(4, 6)).sum() * float("inf"))
    told = lines(tmp_path)
    assert [each["loss"] for each in told if each["kind"] == "step"] == [None, None]
    assert any(each["kind"] == "first_bad" for each in told)


def test_file_has_every_step_that_is_done_at_any_time(tmp_path):
    found = []

    def loss_of(model):
        if (tmp_path / NAME).exists():
            found.append([each["step"] for each in lines_now() if each["kind"] == "step"])
        return model(normal(4, 6)).square().sum()

    def lines_now():
        return [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]

    train(Mlp(), 3, every=2, folder=tmp_path, loss_of=loss_of)
    assert found == [[1], [1, 2]]


def test_file_with_an_unfinished_last_line_is_read_without_it(tmp_path):
    train(Mlp(), 2, every=1, folder=tmp_path)
    whole = read_rows(tmp_path / NAME)
    text = (tmp_path / NAME).read_text()
    (tmp_path / NAME).write_text(text[:-30])
    assert read_rows(tmp_path / NAME) == whole[:-1]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"loss":', '"lost":', r"line 3, .*lost"),
        ('"skipped":false', '"skipped":NaN', r"line 3: got .* must be a JSON object \(NaN is not JSON\)"),
        ('"kind":"step"', '"kind":"stop"', "line 3, kind: got"),
        ('"step":1,"loss"', '"step":0,"loss"', "line 3, step: got 0"),
    ],
)
def test_file_with_a_wrong_line_is_an_error_that_names_it(tmp_path, old, new, told):
    optimizer_alone = StepRow(step=1, loss=1.0, loss_scale=None, skipped=False, finite=True, observed=False)
    path = tmp_path / NAME
    good = RunRow(
        model="M", half="cbfloat16", level=1, chunk=None, rounding="up", every=1, modules=[""], cbfloat="1", torch="2",
        started="2026-01-01",
    )  # fmt: skip
    text = good.line() + "\n".join([optimizer_alone.line().strip()] * 2) + "\n"
    assert len(read_rows_of(path, text)) == 3
    with pytest.raises(ValueError, match=told):
        read_rows_of(path, text[: text.rindex('{"kind"')] + text[text.rindex('{"kind"') :].replace(old, new))


def read_rows_of(path, text):
    path.write_text(text)
    return read_rows(path)


def test_file_of_an_earlier_run_in_the_folder_is_replaced(tmp_path):
    train(Mlp(), 3, every=1, folder=tmp_path)
    train(Mlp(), 1, every=1, folder=tmp_path)
    assert [each["step"] for each in lines(tmp_path) if each["kind"] == "step"] == [1]


def test_observe_writes_scalars_for_tensorboard(tmp_path):
    from ..test_loggers import events

    train(Mlp(), 2, every=1, folder=tmp_path, tensorboard=True)
    told = events(tmp_path / "tensorboard")
    tags = {tag for _, tag, _ in told}
    assert "observe/loss" in tags
    assert "observe_swamped/head/gradient_of_input/linear" in tags
    assert "observe_distance/body.0/forward/linear" in tags
