"""Trainer in the shape of the Model Zoo: loop, accumulation, schedulers, validation, callbacks, backend, seed."""

import copy
import inspect

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import golden.torch as cstorch
from golden.modelzoo import Trainer
from golden.modelzoo.trainer.callbacks import (
    Callback,
    Checkpoint,
    Logging,
    MixedPrecision,
    TrainingLoop,
    ValidationLoop,
)
from golden.torch.backend import BackendType
from golden.torch.training.callback import HOOKS

from .run_models import Net, Zoo, data

DYNAMIC = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**10)


class Config(dict):
    hidden = 8


def zoo():
    return Zoo(Config(hidden=8))


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def loader(batch_size=4):
    return DataLoader(data(), batch_size)


def trainer(**arguments):
    given = {"model": zoo, "optimizer": sgd, "precision": DYNAMIC, "seed": 1, "progress": False}
    return Trainer(**given | arguments)


def weights(model):
    return [each.detach().view(torch.int32).tolist() for each in model.parameters()]


def test_trainer_in_the_form_of_the_model_zoo_equals_the_loop_written_out(tmp_path):
    run = Trainer(
        device="CPU",
        model_dir=tmp_path,
        model=zoo,
        optimizer=sgd,
        schedulers=[lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)],
        precision=DYNAMIC,
        loop=TrainingLoop(num_epochs=1, eval_frequency=None),
        checkpoint=Checkpoint(steps=2),
        logging=Logging(log_steps=1),
        callbacks=[],
        loggers=[],
        seed=1,
        progress=False,
    )
    losses = run.fit(loader())
    torch.manual_seed(1)
    model = zoo()
    torch.manual_seed(1)
    optimizer = sgd(model)
    scheduler, scaler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5), DYNAMIC.grad_scaler()
    expected = []
    for batch in loader():
        with DYNAMIC.autocast():
            loss = model(batch)
        cstorch.amp.optimizer_step(loss, optimizer, scaler)
        scheduler.step()
        expected.append(loss.item())
    assert losses == expected
    assert weights(run.model) == weights(model)
    assert run.optimizer.param_groups[0]["lr"] == 0.1 / 8
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == [f"step_{n:08}" for n in (2, 4, 6)]


@pytest.mark.parametrize("batches", [4, 5])
def test_accumulated_step_is_that_of_the_mean_loss_over_its_batches(batches):
    net = Net().eval()  # no dropout
    twin, given = copy.deepcopy(net), list(loader())[:batches]
    fp32 = MixedPrecision(enabled=False)
    run = trainer(
        model=net,
        optimizer=sgd,
        loss=nn.functional.cross_entropy,
        precision=fp32,
        loop=TrainingLoop(num_epochs=1, grad_accum_steps=2),
    )
    run.call = lambda hook, *arguments: (type(run).call(run, hook, *arguments), net.eval())[0]
    losses = run.fit(given)
    optimizer, expected = sgd(twin), []
    for first in range(0, batches, 2):
        group = given[first : first + 2]
        optimizer.zero_grad()
        total = sum(nn.functional.cross_entropy(twin(x), y) / len(group) for x, y in group)
        total.backward()
        optimizer.step()
        expected.append(total.item())
    assert len(losses) == -(-batches // 2)
    torch.testing.assert_close(torch.tensor(losses), torch.tensor(expected))
    for mine, its in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, its)


def test_resumed_run_with_accumulation_equals_an_uninterrupted_one_bit_for_bit(tmp_path):
    def run(folder, steps, resume):
        done = trainer(model_dir=folder, loop=TrainingLoop(max_steps=steps, grad_accum_steps=4))
        losses = done.fit(DataLoader(data(), 4, shuffle=True), resume=resume)
        return losses, weights(done.model)

    whole = run(tmp_path / "whole", 5, False)  # an epoch has 6 batches, and so 2 steps
    before, _ = run(tmp_path / "parts", 3, False)
    after, end = run(tmp_path / "parts", 5, True)
    assert (before + after, end) == whole


@pytest.mark.filterwarnings("ignore:.*this fit makes no step")
@pytest.mark.parametrize(
    ("loop", "steps"),
    [
        ({"num_steps": 3}, [3, 6]),
        ({"max_steps": 3}, [3, 3]),
        ({"num_epochs": 1}, [6, 6]),
        ({"num_epochs": 2, "max_steps": 8}, [8, 8]),
        ({"num_epochs": 2, "steps_per_epoch": 2}, [4, 4]),
    ],
)
def test_loop_says_where_each_call_of_fit_ends(loop, steps):
    run = trainer(loop=TrainingLoop(**loop))
    reached = []
    for _ in range(2):
        run.fit(loader())
        reached.append(run.step)
    assert reached == steps


@pytest.mark.parametrize(
    ("frequency", "validated"),
    [(None, []), (0, []), (1.0, [6]), (0.5, [3, 6]), (4, [4, 6]), (2, [2, 4, 6])],
)
def test_validation_runs_as_often_as_the_loop_says_and_changes_no_bit(frequency, validated):
    plain = trainer(loop=TrainingLoop(max_steps=6))
    losses = plain.fit(DataLoader(data(), 4, shuffle=True))
    seen = []

    class Watch(Callback):
        def on_validate_end(self, trainer, model, loop):
            seen.append(trainer.global_step)
            assert not model.training

    run = trainer(loop=TrainingLoop(max_steps=6, eval_frequency=frequency), callbacks=[Watch()])
    assert run.fit(DataLoader(data(), 4, shuffle=True), DataLoader(data(seed=9), 5, shuffle=True)) == losses
    assert seen == validated
    assert weights(run.model) == weights(plain.model)


def test_validate_is_the_mean_loss_of_exact_products_and_leaves_the_model_in_training():
    run = trainer()
    result = run.validate(loader(), loop=ValidationLoop(eval_steps=3))
    run.model.eval()
    batches = list(loader())[:3]
    with torch.no_grad():
        in_fp32 = sum(run.model(batch).item() for batch in batches) / 3
        with DYNAMIC.autocast():
            exact = sum(run.model(batch).item() for batch in batches) / 3
    assert exact != in_fp32  # outside the precision it would be this
    assert result == {"val_loss": exact}
    run.model.train()
    run.validate(loader())
    assert run.model.training


def test_validate_computes_the_metrics_within_the_model():
    class Share(nn.Module):
        name = "share"

        def reset(self):
            self.seen = []

        def forward(self, right):
            self.seen.append(right)

        def compute(self):
            return torch.cat(self.seen).float().mean()

    model = zoo()
    model.share = Share()
    model.register_forward_hook(lambda module, batch, _: module.share(batch[0][1] == 0))
    expected = (data().tensors[1] == 0).float().mean().item()
    for _ in range(2):  # and it starts from zero every time
        assert trainer(model=model).validate(loader())["share"] == expected


def test_every_hook_is_called_in_its_place():
    called = []

    def recorder(name):
        def hook(self, trainer, *arguments):
            called.append(name)
            wanted = [*inspect.signature(getattr(Callback, name)).parameters][2:]
            assert len(arguments) == len(wanted), name

        return hook

    watch = type("Watch", (Callback,), {name: recorder(name) for name in HOOKS})()
    run = trainer(
        callbacks=watch,
        schedulers=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1),
        loop=TrainingLoop(max_steps=1, grad_accum_steps=2),
    )
    run.fit(loader(), loader(24))
    batch = ["on_train_batch_start", "on_train_step_start", "on_before_forward", "on_after_forward"]
    batch += ["on_before_backward", "on_after_backward"]
    end = ["on_train_step_end", "on_train_batch_end"]
    assert called == [
        *("pre_setup", "setup", "post_setup", "on_enter_fit", "on_fit_start", "on_train_start"),
        *("on_before_optimizer_zero_grad", "on_after_optimizer_zero_grad"),
        *(*batch, *end, *batch),
        *("on_before_optimizer_step", "on_after_optimizer_step", "on_before_scheduler_step", "on_after_scheduler_step"),
        *end,
        *("on_validate_start", "on_validate_batch_start", "on_before_forward", "on_after_forward"),
        *("on_validate_batch_end", "on_validate_end"),
        *("on_train_end", "on_fit_end"),
    ]
    rest = HOOKS - set(called)
    assert rest == {"on_fit_exception", "on_validate_exception"} | {name for name in HOOKS if "checkpoint" in name}


def test_callback_keeps_its_state_in_the_checkpoint(tmp_path):
    class Count(Callback):
        steps = 0

        def on_train_batch_end(self, trainer, model, outputs, batch, batch_idx):
            self.steps += 1

        def on_save_checkpoint(self, trainer, state_dict):
            state_dict["count"] = self.steps

        def on_load_checkpoint(self, trainer, state_dict):
            self.steps = state_dict["count"]

    trainer(model_dir=tmp_path, callbacks=[Count()]).fit(loader(), steps=2)
    count = Count()
    trainer(model_dir=tmp_path, callbacks=[count]).fit(loader(), steps=5, resume=True)
    assert count.steps == 5


def test_misspelt_hook_is_told():
    class Wrong(Callback):
        def on_train_batch_edn(self, trainer):
            pass

    with pytest.warns(
        UserWarning, match=r"^callbacks: Wrong.on_train_batch_edn is no hook .* mean on_train_batch_end\?"
    ):
        trainer(callbacks=[Wrong()])
    with pytest.warns(UserWarning, match=r"^callbacks: Last.finalize is no hook and never runs"):
        trainer(callbacks=[type("Last", (Callback,), {"finalize": lambda self: None})()])


def test_error_in_a_step_reaches_the_callbacks_and_goes_on():
    seen = []

    class Watch(Callback):
        def on_before_backward(self, trainer, model, outputs):
            raise KeyError("mine")

        def on_fit_exception(self, trainer, exception):
            seen.append(exception)

    with pytest.raises(KeyError) as raised:
        trainer(callbacks=[Watch()]).fit(loader(), steps=1)
    assert seen == [raised.value]


class Backend:
    def __init__(self, kind):
        self.backend_type = kind


def test_model_in_float64_is_refused_and_does_not_train_in_products_of_pytorch():
    model = zoo().double()
    before = weights_of_float64(model)
    batches = [(x.double(), y) for x, y in loader()]
    with pytest.raises(NotImplementedError, match=r"no exact path.*float64"):
        trainer(model=model).fit(batches, steps=1)
    with pytest.raises(NotImplementedError, match=r"no exact path.*float64"):
        trainer(model=model).validate(batches)
    assert weights_of_float64(model) == before


def weights_of_float64(model):
    return [each.detach().view(torch.int64).tolist() for each in model.parameters()]


@pytest.mark.parametrize(
    "given",
    [
        {"device": "CPU"},
        {"device": "csx"},
        {"backend": "CSX"},
        {"backend": Backend("CPU")},
        {"backend": BackendType.GPU},
        {},
    ],
    # No str(given): the address in it would be another one in every process of pytest-xdist.
    ids=["CPU by name", "csx by name", "CSX as backend", "made backend", "kind of backend", "nothing"],
)
def test_backend_and_device_are_accepted_and_compute_the_same(given):
    assert trainer(**given).fit(loader(), steps=2) == trainer().fit(loader(), steps=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"device": "TPU"}, ValueError, r"^device: got 'TPU', must be 'CPU', 'GPU' or 'CSX'"),
        ({"device": "CPU", "backend": "CPU"}, ValueError, r"^device: got 'CPU' beside a backend"),
        ({"backend": 3}, TypeError, r"^backend: got 3, must be 'CPU', 'GPU', 'CSX' or an object"),
        ({"model": lambda: 3}, TypeError, r"^model: got a function that returns 3, must return"),
        ({"schedulers": [3]}, TypeError, r"^schedulers: got 3, must be schedulers, or functions"),
        ({"loop": 3}, TypeError, r"^loop: got 3, must be a TrainingLoop"),
        ({"checkpoint": 5}, TypeError, r"^checkpoint: got 5, must be a Checkpoint"),
        ({"checkpoint": Checkpoint(steps=5)}, ValueError, r"^model_dir: got None, must be a folder when checkpoint"),
        ({"callbacks": [3]}, TypeError, r"^callbacks: got 3, must be objects of a subclass of Callback"),
        ({"logger": 3}, TypeError, r"^loggers: got 3, must be objects of a subclass of Logger"),
        ({"seed": -1}, ValueError, r"^seed: got -1, must be 0 to 18446744073709551615"),
    ],
)
def test_wrong_part_of_a_trainer_is_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        trainer(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_steps": 0}, r"^num_steps: got 0, must be at least 1"),
        ({"num_steps": 1, "num_epochs": 1}, r"^num_epochs: got 1 beside num_steps 1"),
        ({"eval_frequency": 1.5}, r"^eval_frequency: got 1.5, must be an int of steps, or a part"),
        ({"eval_frequency": -1}, r"^eval_frequency: got -1, must be at least 0"),
        ({"grad_accum_steps": 0}, r"^grad_accum_steps: got 0, must be at least 1"),
        ({"eval_steps": 0}, r"^eval_steps: got 0, must be at least 1"),
    ],
)
def test_wrong_loop_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        TrainingLoop(**arguments)


def test_trainer_without_optimizer_validates_and_does_not_fit():
    run = trainer(optimizer=None, loop=TrainingLoop(max_steps=1))
    assert run.validate(loader())["val_loss"] > 0
    with pytest.raises(ValueError, match=r"^optimizer: got None, must be an optimizer to fit"):
        run.fit(loader())


def test_loop_without_a_length_is_refused():
    with pytest.raises(ValueError, match=r"^loop: has no length"):
        trainer(loop=TrainingLoop()).fit(loader())


def test_exhausted_generator_is_told_as_such():
    batches = list(loader())[:3]
    run = trainer()
    with pytest.raises(
        ValueError, match=r"^train_dataloader: it is used up after step 3: a generator gives its batches once"
    ):
        run.fit((each for each in batches), steps=5)


def test_generator_goes_on_where_the_fit_before_stopped():
    batches = list(loader())
    whole, parts = trainer(), trainer()
    losses, feed = whole.fit(batches, steps=6), (each for each in batches)
    assert parts.fit(feed, steps=2) + parts.fit(feed, steps=6) == losses


def test_validation_data_without_batches_are_refused():
    with pytest.raises(ValueError, match=r"^val_dataloader: it gives no batch"):
        trainer().validate([])
