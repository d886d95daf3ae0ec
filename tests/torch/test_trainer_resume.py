"""A run that stops and goes on ends with the bits of one that never stopped."""

import csv
import json
import random
import shutil

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, StepLR
from torch.utils.data import DataLoader, RandomSampler

from golden.torch.optim import SGD, lr_scheduler
from golden.torch.training.loop import TrainingLoop

from .runs import Noisy, bits, run


def loaders():
    generator = torch.Generator().manual_seed(3)
    return {
        "default": lambda: DataLoader(Noisy(), batch_size=3, shuffle=True),
        "own generator": lambda: DataLoader(
            Noisy(), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(3)
        ),
        "own generator of the sampler": lambda: DataLoader(
            Noisy(), batch_size=3, sampler=RandomSampler(Noisy(), generator=generator.manual_seed(3))
        ),
    }


def whole_run(folder, steps, loader=None):
    trainer, data = run(folder, loader=loader)
    losses = trainer.fit(data, steps=steps)
    return losses, bits(trainer)


def rows(folder):
    with (folder / "log.csv").open() as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


@pytest.mark.parametrize("kind", loaders())
@pytest.mark.parametrize("stop", [1, 3, 4, 5, 8])  # an epoch has 4 batches
def test_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path, kind, stop):
    expected = whole_run(tmp_path / "whole", 11, loaders()[kind]())
    first, data = run(tmp_path / "run", loader=loaders()[kind]())
    before = first.fit(data, steps=stop)
    # Another process: nothing is left of the generators.
    torch.manual_seed(99)
    random.seed(99)
    np.random.seed(99)  # noqa: NPY002
    second, data = run(tmp_path / "run", loader=loaders()[kind]())
    torch.manual_seed(98)
    after = second.fit(data, steps=11, resume=True)
    assert (before + after, bits(second)) == expected
    assert rows(tmp_path / "run") == rows(tmp_path / "whole")


def test_run_that_depends_on_no_seed_would_show_nothing(tmp_path):
    # The run above is only a check if a lost random number changes it.
    expected = whole_run(tmp_path / "whole", 11)
    first, data = run(tmp_path / "run")
    before = first.fit(data, steps=5)
    torch.rand(1)
    after = first.fit(data, steps=11)
    assert before == expected[0][:5]
    assert after != expected[0][5:]


def test_run_that_crashed_after_a_checkpoint_repeats_what_came_after_it(tmp_path):
    expected = whole_run(tmp_path / "whole", 9)
    first, data = run(tmp_path / "run", checkpoint_steps=4)
    first.fit(data, steps=6)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step_00000006")
    second, data = run(tmp_path / "run")
    after = second.fit(data, steps=9, resume=True)
    assert len(after) == 5
    assert (first.losses[:4] + after, bits(second)) == expected
    assert [row["step"] for row in rows(tmp_path / "run")] == [str(step) for step in range(1, 10)]


def test_run_resumed_from_a_named_checkpoint_starts_there(tmp_path):
    expected = whole_run(tmp_path / "whole", 9)
    first, data = run(tmp_path / "run", checkpoint_steps=2)
    first.fit(data, steps=8)
    second, data = run(tmp_path / "run")
    after = second.fit(data, steps=9, resume=tmp_path / "run" / "checkpoints" / "step_00000002")
    assert (len(after), bits(second)) == (7, expected[1])


@pytest.mark.parametrize("stop", [3, 4])
def test_second_call_of_fit_goes_on_with_the_epoch(tmp_path, stop):
    expected = whole_run(tmp_path / "whole", 9)
    trainer, data = run(None)
    before = trainer.fit(data, steps=stop)
    assert (before + trainer.fit(data, steps=9), bits(trainer)) == expected


@pytest.mark.parametrize("stop", [4, 6])  # an epoch has 4 batches
def test_run_resumed_with_persistent_workers_equals_an_uninterrupted_one_bit_for_bit(tmp_path, stop):
    def kept():
        return DataLoader(Noisy(), batch_size=3, shuffle=True, num_workers=1, persistent_workers=True)

    whole, data = run(tmp_path / "whole", loader=kept(), checkpoint_steps=2)
    expected = whole.fit(data, steps=9)[stop:], bits(whole)
    second, data = run(tmp_path / "run", loader=kept())
    path = tmp_path / "whole" / "checkpoints" / f"step_{stop:08}"
    assert (second.fit(data, steps=9, resume=path), bits(second)) == expected


@pytest.mark.parametrize("stop", [2, 4])
def test_run_resumed_where_steps_per_epoch_end_an_epoch_begins_the_next_one(tmp_path, stop):
    loop = TrainingLoop(max_steps=7, steps_per_epoch=2)  # of data with 4 batches
    whole, data = run(tmp_path / "whole", loop=loop, checkpoint_steps=1)
    expected = whole.fit(data)[stop:], bits(whole)
    second, data = run(tmp_path / "run", loop=loop)
    assert second.fit(data, resume=tmp_path / "whole" / "checkpoints" / f"step_{stop:08}") == expected[0]
    assert bits(second) == expected[1]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_run_whose_learning_rate_is_a_number_of_numpy_resumes_bit_for_bit(tmp_path, kind):
    def schedule(optimizer):
        return LambdaLR(optimizer, lambda step: kind(0.5 + 0.5 * np.cos(np.pi * step / 20)))

    whole, data = run(tmp_path / "whole", schedulers=[schedule])
    expected = whole.fit(data, steps=5)[3:], bits(whole)
    assert isinstance(whole.optimizer.param_groups[0]["lr"], np.floating)
    first, data = run(tmp_path / "run", schedulers=[schedule])
    first.fit(data, steps=3)
    second, data = run(tmp_path / "run", schedulers=[schedule])
    assert (second.fit(data, steps=5, resume=True), bits(second)) == expected


CURVES = {
    "linear": lambda o, value: lr_scheduler.LinearLR(o, value, 0.0, 20),
    "cosine": lambda o, value: lr_scheduler.CosineDecayLR(o, value, 0.0, 20),
    "sequence": lambda o, value: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1), lr_scheduler.ConstantLR(o, value)], [2]
    ),
}


@pytest.mark.parametrize("curve", CURVES)
def test_run_with_another_curve_of_a_schedule_is_not_resumed(tmp_path, curve):
    def schedule_to(value):
        return [lambda optimizer: CURVES[curve](optimizer, value)]

    first, data = run(tmp_path, optimizer=SGD, schedulers=schedule_to(0.5))
    first.fit(data, steps=3)
    second, data = run(tmp_path, optimizer=SGD, schedulers=schedule_to(0.7))
    with pytest.raises(ValueError, match=r"schedulers\.0\.curve\..* is 0\.5 there and 0\.7 here"):
        second.fit(data, steps=4, resume=True)
    # A checkpoint from before curves were kept says nothing about them.
    about = next(tmp_path.rglob("step_00000003/checkpoint.json"))
    kept = json.loads(about.read_text())
    del kept["schedulers"]["0"]["curve"]
    about.write_text(json.dumps(kept))
    second.fit(data, steps=4, resume=True)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: StepLR(o, 3, 0.1),
        lambda o: ExponentialLR(o, 0.9),
        lambda o: LinearLR(o, 1.0, 0.0, 20),
        lambda o: CosineAnnealingLR(o, 20, eta_min=0.003),
        lambda o: LambdaLR(o, lambda step: 0.9**step),
    ],
    ids=["step", "exponential", "linear", "cosine", "lambda"],
)
def test_new_learning_rate_of_a_resumed_run_keeps_the_place_in_the_schedule(tmp_path, schedule):
    def rated(lr):
        return lambda parameters, **_: torch.optim.SGD(parameters, lr=lr)

    seen = []
    whole, data = run(None, optimizer=rated(0.2), schedulers=[schedule])
    for step in range(4, 8):
        whole.fit(data, steps=step)
        seen.append(whole.optimizer.param_groups[0]["lr"])
    first, data = run(tmp_path, optimizer=rated(0.1), schedulers=[schedule])
    first.fit(data, steps=4)
    second, data = run(tmp_path, optimizer=rated(0.2), schedulers=[schedule])
    found = []
    with pytest.warns(UserWarning, match=r"optimizer\.lr is 0\.1 there and 0\.2 here"):
        second.fit(data, steps=5, resume=True, override=True)
    for step in range(5, 8):
        if step > 5:
            second.fit(data, steps=step)
        found.append(second.optimizer.param_groups[0]["lr"])
    assert found == pytest.approx(seen[1:], rel=1e-9)


def test_run_resumed_by_epochs_ends_where_one_by_steps_does(tmp_path):
    expected = whole_run(tmp_path / "whole", 12)
    trainer, data = run(tmp_path / "run")
    trainer.fit(data, epochs=2)
    second, data = run(tmp_path / "run")
    second.fit(data, epochs=3, resume=True)
    assert bits(second)[0] == expected[1][0]
    assert second.step == 12


def test_run_that_is_complete_already_trains_nothing(tmp_path):
    trainer, data = run(tmp_path)
    trainer.fit(data, steps=4)
    second, data = run(tmp_path)
    with pytest.warns(UserWarning, match="^steps: got 4 for a run that has made 4 steps already: this fit makes"):
        assert second.fit(data, steps=4, resume=True) == []
    assert bits(second)[:4] == bits(trainer)[:4]


@pytest.mark.parametrize(
    ("length", "loop", "message"),
    [
        ({"steps": 4}, None, "steps: got 4 {}4 steps{}4, as 8 for 4 steps more"),
        ({"steps": 3}, None, "steps: got 3 {}4 steps{}4, as 7 for 3 steps more"),
        ({"epochs": 1}, None, "epochs: got 1 {}1 epoch{}1, as 2 for 1 epoch more"),
        ({}, TrainingLoop(max_steps=4), "loop.max_steps: got 4 {}4 steps{}4, as 8 for 4 steps more"),
        ({}, TrainingLoop(num_epochs=1), "loop.num_epochs: got 1 {}1 epoch{}1, as 2 for 1 epoch more"),
    ],
)
def test_second_call_of_fit_with_nothing_left_to_do_says_so(length, loop, message):
    trainer, data = run(None, loop=loop)
    trainer.fit(data, steps=4)
    state = bits(trainer)
    with pytest.warns(UserWarning, match="makes no step") as told:
        assert trainer.fit(data, **length) == []
    so = " already: this fit makes no step; it is counted from the beginning of the run, must be more than "
    assert [str(each.message) for each in told] == [message.format("for a run that has made ", so)]
    assert told[0].filename == __file__
    assert bits(trainer)[:4] == state[:4]


def test_second_call_of_fit_with_num_steps_makes_them():
    trainer, data = run(None, loop=TrainingLoop(num_steps=2))
    assert [len(trainer.fit(data)), len(trainer.fit(data)), trainer.step] == [2, 2, 4]
