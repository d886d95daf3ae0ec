"""Trainer(observe=...), its key of a run file, and two processes whose counts are summed."""

import json
import shutil

import pytest
import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from golden.torch import MixedPrecision, Trainer
from golden.torch.instruments.rows import ProductRow, RunRow, StepRow
from golden.torch.observing import NAME, read_rows
from golden.torch.training.commands.line import main
from golden.torch.training.loop import TrainingLoop

from ..processes import run_on_two_ranks
from ..run_models import data
from ..runs import bits, run


def told(folder):
    """Return the lines of a file, without the time of the start."""
    return [
        row.model_copy(update={"started": ""}) if isinstance(row, RunRow) else row for row in read_rows(folder / NAME)
    ]


def test_trainer_observes_into_the_folder_of_the_run_and_trains_the_same_bits(tmp_path):
    without, loader = run(tmp_path / "without")
    without.fit(loader, steps=5)
    trainer, loader = run(tmp_path / "with", observe={"every": 2, "rows": 3})
    trainer.fit(loader, steps=5)
    assert bits(trainer) == bits(without)
    assert trainer.losses == without.losses
    rows = told(tmp_path / "with")
    steps = [row for row in rows if isinstance(row, StepRow)]
    assert [row.loss for row in steps] == trainer.losses
    assert [row.observed for row in steps if not row.skipped][:1] == [True]
    assert {row.rows_counted for row in rows if isinstance(row, ProductRow)} == {1, 3}
    assert trainer.observations.rows == [row for row in rows if isinstance(row, ProductRow)]
    assert without.observations is None


def test_trainer_that_is_resumed_appends_what_the_whole_run_tells(tmp_path):
    whole, loader = run(tmp_path / "whole", observe=2)
    whole.fit(loader, steps=9)
    first, loader = run(tmp_path / "run", observe=2, checkpoint_steps=4)
    first.fit(loader, steps=6)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step_00000006")  # a crash after step 6: 5 and 6 are repeated
    second, loader = run(tmp_path / "run", observe=2)
    second.fit(loader, steps=9, resume=True)
    assert [row.step for row in told(tmp_path / "run") if isinstance(row, StepRow)] == list(range(1, 10))
    parts, wanted = told(tmp_path / "run"), told(tmp_path / "whole")
    begun = [number for number, row in enumerate(parts) if isinstance(row, RunRow)]
    assert parts.pop(begun[1]) == parts[0] == wanted[0]  # one line for each beginning
    assert parts == wanted
    assert parts[begun[1] - 1].step == 4
    assert second.observations.steps == whole.observations.steps


def test_trainer_leaves_validations_out_of_the_steps(tmp_path):
    def fit(name, frequency):
        loop = TrainingLoop(max_steps=3, eval_frequency=frequency)
        trainer, loader = run(tmp_path / name, observe=1, loop=loop)
        trainer.fit(loader, DataLoader(data(), 4))
        return told(tmp_path / name)

    assert fit("never", 0) == fit("often", 1)


def test_trainer_observes_each_batch_of_accumulated_gradients(tmp_path):
    loop = TrainingLoop(max_steps=2, grad_accum_steps=2)
    trainer, loader = run(tmp_path, observe=1, loop=loop)
    trainer.fit(loader)
    calls = {row.calls for row in told(tmp_path) if isinstance(row, ProductRow) and row.step == 1}
    assert calls == {2}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("often", TypeError, "observe: got 'often'"),
        (True, TypeError, "observe: got True"),
        (0, ValueError, "observe: got 0"),
        ({"each": 3}, ValueError, "observe: got the key 'each'"),
        ({"every": 0}, ValueError, "every: got 0"),
        ({"tensorboard": True}, ValueError, "observe: got tensorboard=True without a model_dir"),
    ],
)
def test_trainer_with_wrong_settings_of_observe_says_so(given, error, message):
    with pytest.raises(error, match=message):
        Trainer(nn.Linear(2, 2), progress=False, observe=given)


def test_run_file_with_observe_writes_observations_and_restart_deletes_them(tmp_path, capsys):
    document = {
        "trainer": {
            "init": {
                "model_dir": str(tmp_path / "run"),
                "model": {"name": "digits_mlp"},
                "optimizer": {"SGD": {"lr": 0.1}},
                "precision": {"fp16_type": "cbfloat16", "loss_scaling_factor": "dynamic"},
                "loop": {"max_steps": 3},
                "observe": {"every": 2},
            },
            "fit": {"train_dataloader": {"batch_size": 8}},
        }
    }
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(document))
    assert main(["fit", str(path), "--no-progress"]) == 0
    first = told(tmp_path / "run")
    assert [row.step for row in first if isinstance(row, StepRow)] == [1, 2, 3]
    assert main(["fit", str(path), "--no-progress", "--restart", "--steps", "1"]) == 0
    assert told(tmp_path / "run") == [row for row in first if isinstance(row, RunRow) or row.step == 1]
    document["trainer"]["init"]["observe"] = {"evry": 2}
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(SystemExit):
        main(["fit", str(path)])
    assert "did you mean every" in capsys.readouterr().err


def halves(rank, folder, alone):
    """Train on one half of a batch on each of two ranks; with `alone`, on one rank after the other."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    inputs, targets = torch.randn(8, 4), torch.randint(3, (8,))
    half = slice(rank * 4, rank * 4 + 4)
    plain = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor=1024.0)
    where = folder / f"alone{rank}" if alone else folder
    if alone:
        dist.destroy_process_group()  # one process, in its own world
    trainer = Trainer(
        net, torch.optim.SGD(net.parameters(), 0.0), nn.functional.cross_entropy, plain, model_dir=where,
        progress=False, observe={"every": 1, "rows": 8},
    )  # fmt: skip
    loader = DataLoader(TensorDataset(inputs[half], targets[half]), batch_size=4)
    trainer.fit(loader, steps=1)
    (folder / f"done{rank}_{alone}.json").write_text(json.dumps(trainer.losses))
    if alone:
        dist.init_process_group("gloo", init_method=f"file://{folder}/again{rank}", rank=0, world_size=1)


def test_observe_on_two_ranks_sums_counts_into_one_file(tmp_path):
    run_on_two_ranks(halves, tmp_path, False)
    run_on_two_ranks(halves, tmp_path, True)
    both, *parts = (
        {(row.module, row.direction, row.operation): row for row in told(folder) if isinstance(row, ProductRow)}
        for folder in (tmp_path, tmp_path / "alone0", tmp_path / "alone1")
    )
    assert both.keys() == parts[0].keys() == parts[1].keys()
    for key, row in both.items():
        one, two = parts[0][key], parts[1][key]
        for name in ("calls", "rows", "rows_counted"):
            assert getattr(row, name) == getattr(one, name) + getattr(two, name)
        for name in ("products", "promotions"):
            counts = [getattr(each, name).model_dump() for each in (one, two)]
            assert getattr(row, name).model_dump() == {each: sum(part[each] for part in counts) for each in counts[0]}
        assert row.largest_exponent == max(one.largest_exponent, two.largest_exponent)
        assert row.tensors.left.total == one.tensors.left.total + two.tensors.left.total
    (step,) = [row for row in told(tmp_path) if isinstance(row, StepRow)]
    assert [step.loss] == json.loads((tmp_path / "done0_False.json").read_text())
