"""Schedulers of run files: by name, one within another, one after another."""

import pytest
import torch
import yaml

from golden.torch.training.older_form import as_today, is_older

from .run_files import NEWER, OLDER, call, refused

pytestmark = pytest.mark.usefixtures("threads_as_before")

LINE = {"LinearLR": {"initial_learning_rate": 0.5, "end_learning_rate": 0.1, "total_iters": 2}}
CONSTANT = {"ConstantLR": {"learning_rate": 0.05}}
LINE_OF_PYTORCH = {"LinearLR": {"start_factor": 0.5, "total_iters": 2}}
STEPS_OF_PYTORCH = {"StepLR": {"step_size": 1, "gamma": 0.5}}
SEQUENCES = [[LINE, CONSTANT], [LINE, LINE, CONSTANT], [LINE_OF_PYTORCH, STEPS_OF_PYTORCH]]


def rates(written, folder, scheduler):
    """Return the learning rate of each of six steps of a run with this scheduler."""
    init = yaml.safe_load(NEWER)
    init["trainer"]["init"] |= {"optimizer": {"SGD": {"lr": 1.0}}, "schedulers": scheduler}
    init["trainer"]["init"]["checkpoint"] = {"steps": 1}
    assert call("fit", written(yaml.safe_dump(init)), folder) == 0
    states = [torch.load(each / "state.pt") for each in sorted((folder / "checkpoints").iterdir())]
    return [float(each["optimizer"]["param_groups"][0]["lr"]) for each in states]


@pytest.mark.parametrize("inner", SEQUENCES, ids=SEQUENCES.index)
def test_sequence_without_milestones_has_those_of_total_iters(tmp_path, written, inner):
    milestones = [2 * number for number in range(1, len(inner))]
    given = rates(written, tmp_path / "given", {"SequentialLR": {"schedulers": inner, "milestones": milestones}})
    left_out = rates(written, tmp_path / "out", {"SequentialLR": {"schedulers": inner}})
    assert left_out == given
    assert len(set(given)) > 1


def test_sequence_of_one_scheduler_may_be_written_without_a_list(tmp_path, written):
    assert rates(written, tmp_path, {"SequentialLR": {"schedulers": LINE}})[:2] == torch.tensor([0.3, 0.1]).tolist()


def test_scheduler_within_another_is_built_too(tmp_path, written):
    scaled = {"ScalePerParamLR": {"scheduler": {"SequentialLR": {"schedulers": [LINE, CONSTANT]}}}}
    assert rates(written, tmp_path, scaled) == torch.tensor([0.3, 0.05, 0.05, 0.05, 0.05, 0.05]).tolist()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"SequentialLR": {"schedulers": [CONSTANT, LINE]}},
            "trainer.init.schedulers.SequentialLR.milestones: is missing, must be given, the steps at which the next "
            "schedulers begin; or total_iters of each but the last, the number of its steps: that of ConstantLR is",
        ),
        (
            {"SequentialLR": {"schedulers": [LINE, CONSTANT], "milestones": 2}},
            "trainer.init.schedulers.SequentialLR.milestones: got 2, must be a list of steps",
        ),
        (
            {"SequentialLR": {"schedulers": [LINE, CONSTANT], "milestones": [2, 4]}},
            "SequentialLR: SequentialLR refuses its settings: milestones: got 2 for 2 schedulers, must be one fewer",
        ),
        (
            {"SequentialLR": {"schedulers": [LINE, LINE, CONSTANT], "milestones": [4, 2]}},
            "SequentialLR refuses its settings: milestones: got [4, 2], must ascend",
        ),
        (
            {"PiecewiseConstantLR": {"learning_rates": [0.1, 0.2], "milestones": 3}},
            "trainer.init.schedulers.PiecewiseConstantLR.milestones: got 3, must be a list of steps",
        ),
        ({"SequentialLR": {"milestones": [2]}}, "trainer.init.schedulers.SequentialLR.schedulers: is missing, must be"),
        ({"ScalePerParamLR": {}}, "trainer.init.schedulers.ScalePerParamLR.scheduler: is missing, must be given"),
        (
            {"ScalePerParamLR": {"scheduler": [LINE, LINE]}},
            "trainer.init.schedulers.ScalePerParamLR.scheduler: got [{'LinearLR'",
        ),
        (
            {"ChainedLR": {"schedulers": [LINE], "milestones": [2]}},
            "schedulers.ChainedLR.milestones: is not a known key",
        ),
        ({"SequentialLR": {"schedulers": [{"LinaerLR": {}}]}}, "LinaerLR: is not a known key; did you mean LinearLR?"),
    ],
)
def test_wrong_sequence_of_schedulers_is_told_what_to_give(tmp_path, capsys, written, entry, message):
    given = yaml.safe_load(NEWER)
    given["trainer"]["init"]["schedulers"] = entry
    assert message in refused(capsys, "fit", written(yaml.safe_dump(given)), tmp_path / "run")


OF_TEN = {"scheduler": "Constant", "factor": 0.1}
CHAINED, SEQUENTIAL = ({**OF_TEN, "main_scheduler": name} for name in ("chained", "sequential"))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([OF_TEN, OF_TEN], "got total_iters None of scheduler Constant, must be the number of its steps, after which"),
        ([CHAINED, SEQUENTIAL], "got main_scheduler chained and sequential, must be sequential or chained, and the"),
        ([], "got [], must be a number, or have a scheduler"),
    ],
)
def test_wrong_schedulers_of_the_older_form_are_told_what_to_give(tmp_path, capsys, written, entries, message):
    given = yaml.safe_load(OLDER)
    given["optimizer"]["learning_rate"] = entries
    told = refused(capsys, "fit", written(yaml.safe_dump(given)), tmp_path / "run")
    assert f"optimizer.learning_rate: {message}" in told


def test_chained_schedulers_of_the_older_form_run_at_once():
    document = yaml.safe_load(OLDER)
    document["optimizer"]["learning_rate"] = [
        {"scheduler": "Linear", "start_factor": 0.5, "steps": 3, "main_scheduler": "chained"},
        {"scheduler": "Constant", "factor": 0.1},
    ]
    made = as_today(document)[0]["trainer"]["init"]["schedulers"]
    inner = [{"LinearLR": {"start_factor": 0.5, "total_iters": 3}}, {"ConstantLR": {"factor": 0.1}}]
    assert made == [{"ChainedScheduler": {"schedulers": inner}}]


def test_learning_rate_of_the_older_form_may_be_schedulers():
    one = {"scheduler": "Linear", "start_factor": 0.5, "steps": 3}
    document = yaml.safe_load(OLDER)
    assert is_older(document)
    document["optimizer"]["learning_rate"] = one
    made = as_today(document)[0]["trainer"]["init"]["schedulers"]
    assert made == [{"LinearLR": {"start_factor": 0.5, "total_iters": 3}}]
    document["optimizer"]["learning_rate"] = [one, {"scheduler": "Constant", "factor": 0.1}]
    made = as_today(document)[0]["trainer"]["init"]["schedulers"]
    assert made[0]["SequentialLR"]["milestones"] == [3]


def test_misspelt_setting_of_a_schedule_names_the_nearest_of_either_kind(tmp_path, capsys, written):
    given = yaml.safe_load(NEWER)
    given["trainer"]["init"]["schedulers"] = [{"LinearLR": {"initial_learning_rat": 1.0}}]
    told = refused(capsys, "fit", written(yaml.safe_dump(given)), tmp_path / "run")
    assert "LinearLR.initial_learning_rat: is not a known key; did you mean initial_learning_rate?" in told


def test_scheduler_with_the_settings_of_the_model_zoo_sets_the_rate(tmp_path, written):
    given = yaml.safe_load(NEWER)
    linear = {"initial_learning_rate": 0.5, "end_learning_rate": 0.1, "total_iters": 2}
    constant = {"learning_rate": 0.05}
    given["trainer"]["init"] |= {
        "optimizer": {"SGD": {"momentum": 0.9}},
        "schedulers": [
            {"SequentialLR": {"schedulers": [{"LinearLR": linear}, {"ConstantLR": constant}], "milestones": [2]}}
        ],
    }
    assert call("fit", written(yaml.safe_dump(given)), tmp_path / "run") == 0
    state = torch.load(tmp_path / "run" / "checkpoints" / "step_00000006" / "state.pt")
    assert float(state["optimizer"]["param_groups"][0]["lr"]) == pytest.approx(0.05)
    given["trainer"]["init"]["loop"]["max_steps"] = 7
    assert call("fit", written(yaml.safe_dump(given)), tmp_path / "run", "--resume") == 0
