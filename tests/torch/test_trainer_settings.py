"""A resumed run with changed settings or data gets an error that names them; with override it uses the new ones."""

import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from golden.modelzoo.trainer.callbacks import TrainingLoop
from golden.torch.training.identity import as_json, data_of, differences

from .run_models import data
from .runs import PRECISION, bits, run


def started(folder, steps=3, **arguments):
    """Train some steps of an epoch of 6 batches; return the trainer."""
    trainer, loader = run(folder, **{"loader": loader_of()} | arguments)
    trainer.fit(loader, steps=steps)
    return trainer


def loader_of(dataset=None, batch_size=4, **arguments):
    return DataLoader(dataset or data(), batch_size, **{"shuffle": True} | arguments)


def adam(**settings):
    return lambda parameters, lr: torch.optim.AdamW(parameters, **{"lr": lr} | settings)


def steps(optimizer):
    return [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, shift):
        self.shift = shift

    def __iter__(self):
        return ((each + self.shift, target) for each, target in data())


CHANGED = {
    "lr": ({"optimizer": adam(lr=0.02)}, "optimizer.lr is 0.01 there and 0.02 here"),
    "betas": ({"optimizer": adam(betas=(0.8, 0.999))}, "optimizer.betas is [0.9, 0.999] there and [0.8, 0.999] here"),
    "seed": ({"seed": 2}, "seed is None there and 2 here"),
    "level": (
        {"precision": replace(PRECISION, precision_opt_level=2)},
        "precision.precision_opt_level is 1 there and 2 here",
    ),
    "clipping": (
        {"precision": replace(PRECISION, max_gradient_norm=1.0)},
        "precision.max_gradient_norm is None there and 1.0 here",
    ),
    "batch size": ({"loader": loader_of(batch_size=6)}, "data.batch_size is 4 there and 6 here"),
    "drop_last": ({"loader": loader_of(drop_last=True)}, "data.drop_last is False there and True here"),
    "order": ({"loader": loader_of(shuffle=False)}, "data.order is RandomSampler there and SequentialSampler here"),
    "number of examples": ({"loader": loader_of(data(28))}, "data.examples is 24 there and 28 here"),
    "values": ({"loader": loader_of(data(seed=4))}, "data.content is "),
    "schedulers": (
        {"schedulers": [lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2)]},
        "schedulers.0 is nothing there and {'class': 'StepLR'",
    ),
    "accumulation": ({"loop": TrainingLoop(max_steps=6, grad_accum_steps=2)}, "grad_accum_steps is 1 there and 2 here"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_setting_is_named_and_override_goes_on_with_it(tmp_path, name):
    started(tmp_path)
    arguments, message = dict(CHANGED[name][0]), CHANGED[name][1]
    second, loader = run(tmp_path, **{"loader": loader_of()} | arguments)
    before = bits(second)
    length = {} if "loop" in arguments else {"steps": 6}
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        second.fit(loader, resume=True, **length)
    assert "pass override=True to go on with the ones given here" in str(refused.value)
    assert bits(second)[:4] == before[:4]
    with pytest.warns(UserWarning, match=f"^override: going on from .*{re.escape(message)}"):
        second.fit(loader, resume=True, override=True, **length)
    assert second.step == 6
    about = json.loads((tmp_path / "checkpoints" / "step_00000006" / "checkpoint.json").read_text())
    assert about["precision"]["precision_opt_level"] == second.precision.precision_opt_level
    third, _ = run(tmp_path, **arguments)  # the checkpoint is one of the run as it is now
    with pytest.warns(UserWarning, match="got 6 for a run that has made 6 steps already") as told:
        third.fit(loader, resume=True, **length)
    assert len(told) == 1


@pytest.mark.filterwarnings("ignore:.*this fit makes no step")
def test_setting_that_is_overridden_is_in_force_and_the_rest_is_that_of_the_checkpoint(tmp_path):
    first = started(tmp_path)
    second, loader = run(tmp_path, loader=loader_of(), optimizer=adam(lr=0.02))
    with pytest.warns(UserWarning, match="optimizer.lr"):
        second.fit(loader, steps=3, resume=True, override=True)
    assert second.optimizer.param_groups[0]["lr"] == 0.02
    assert bits(second)[:3] == bits(first)[:3]  # weights, moments, scaler


def test_overridden_seed_draws_other_numbers(tmp_path):
    def end(seed):
        started(tmp_path / str(seed), seed=5)
        second, loader = run(tmp_path / str(seed), loader=loader_of(), seed=seed)
        with pytest.warns(UserWarning, match="seed is 5"):
            second.fit(loader, steps=5, resume=True, override=True)
        return bits(second)[0]

    assert end(6) != end(7)


def test_overridden_scheduler_keeps_its_place_and_takes_the_new_settings(tmp_path):
    def factory(size):
        return [lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, size)]

    started(tmp_path, schedulers=factory(4))
    second, loader = run(tmp_path, loader=loader_of(), schedulers=factory(5))
    with pytest.raises(ValueError, match=r"schedulers\.0\.step_size is 4 there and 5 here"):
        second.fit(loader, steps=6, resume=True)
    with pytest.warns(UserWarning, match=r"schedulers\.0\.step_size"):
        second.fit(loader, steps=6, resume=True, override=True)
    assert (second.schedulers[0].step_size, second.schedulers[0].last_epoch) == (5, 6)
    assert second.optimizer.param_groups[0]["lr"] == pytest.approx(0.001)


def test_log_loss_scale_may_change_and_changes_no_bit(tmp_path):
    expected = started(tmp_path / "whole", steps=6)
    started(tmp_path / "run")
    second, loader = run(tmp_path / "run", loader=loader_of(), precision=replace(PRECISION, log_loss_scale=True))
    second.fit(loader, steps=6, resume=True)
    assert bits(second) == bits(expected)
    rows = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert rows[0].split(",")[3] == "loss_scale"
    assert [row.split(",")[3] == "" for row in rows[1:]] == [True] * 3 + [False] * 3


def test_other_stream_of_data_is_noticed_by_its_first_batch(tmp_path):
    started(tmp_path, loader=loader_of(Stream(0.0), shuffle=False))
    second, loader = run(tmp_path, loader=loader_of(Stream(0.5), shuffle=False))
    with pytest.raises(ValueError, match=r"^train_dataloader: its first batch is not that of the 3 batches of epoch 1"):
        second.fit(loader, steps=6, resume=True)
    third, _ = run(tmp_path)
    third.fit(loader, steps=6, resume=True, override=True)
    assert third.step == 6


def test_data_that_end_before_the_place_to_resume_at_are_refused(tmp_path):
    batches = [tuple(each) for each in DataLoader(data(), 4)]
    trainer, _ = run(tmp_path)
    trainer.fit((each for each in batches), steps=4)
    second, _ = run(tmp_path)
    with pytest.raises(ValueError, match=r"^train_dataloader: it gives only 2 of the 4 batches of epoch 1"):
        second.fit((each for each in batches[:2]), steps=6, resume=True)


def test_checkpoint_of_an_earlier_version_that_tells_less_is_accepted(tmp_path):
    expected = started(tmp_path / "whole", steps=6)
    started(tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "step_00000003" / "checkpoint.json"
    about = json.loads(path.read_text())
    for name in ("optimizer_settings", "schedulers", "grad_accum_steps", "seed", "data"):
        del about[name]
    about["precision"]["log_loss_scale"] = False
    path.write_text(json.dumps(about))
    second, loader = run(tmp_path / "run", loader=loader_of())
    second.fit(loader, steps=6, resume=True)
    assert bits(second) == bits(expected)


class Files(Dataset):
    def __init__(self, names, table):
        self.names, self.table, self.given = names, np.asarray(table), 0

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        self.given += 1
        return torch.tensor(self.table[index])


@pytest.mark.parametrize(
    "others",
    [
        (TensorDataset(torch.tensor([1.0, 2.0])), TensorDataset(torch.tensor([1.0, -2.0]))),
        (Subset(data(), [1, 2, 3]), Subset(data(), [1, 2, 4])),
        (Files(["a", "b"], [1, 2]), Files(["a", "c"], [1, 2])),
        (Files(["a", "b"], [1, 2]), Files(["a", "b"], [1, 3])),
        (Files(["a", "b"], ["x", "y"]), Files(["a", "b"], ["x", "z"])),
    ],
    ids=["tensors", "indices", "names", "array", "texts"],
)
def test_content_of_a_data_set_is_seen_without_reading_an_example(others):
    one, two = (data_of(DataLoader(each)) for each in others)
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    assert one == data_of(DataLoader(others[0]))
    assert [each.split(" is ")[0] for each in differences(one, two)] == ["content"]
    assert torch.equal(torch_state, torch.get_rng_state())
    assert python_state == random.getstate()
    assert all(getattr(each, "given", 0) == 0 for each in others)


def test_counter_of_a_data_set_is_not_its_content():
    files = Files(["a"], [1])
    before = data_of(DataLoader(files))
    files[0]
    assert data_of(DataLoader(files)) == before


def test_settings_survive_json():
    given = {"a": (1, 2.5), "b": torch.tensor(3.0), "c": np.float32(0.5), "d": len, "e": {2, 1}, "f": None}
    assert as_json(given) == {"a": [1, 2.5], "b": 3.0, "c": 0.5, "d": "len", "e": [1, 2], "f": None}
    assert json.loads(json.dumps(as_json(given))) == as_json(given)
