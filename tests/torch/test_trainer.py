"""Trainer: the work of a step, the log, and the arguments that are refused."""

import copy
import csv

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import golden.torch as cstorch
from golden.torch import MixedPrecision, Trainer

DYNAMIC = MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**10)


def batches(count=4):
    torch.manual_seed(3)
    return [(torch.randn(5, 4), torch.randint(3, (5,))) for _ in range(count)]


def weights(net):
    return [each.detach().view(torch.int32).tolist() for each in net.parameters()]


def trainer(net, precision=DYNAMIC, **arguments):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return Trainer(net, optimizer, nn.functional.cross_entropy, precision, progress=False, **arguments)


@pytest.mark.parametrize(
    "precision",
    [
        DYNAMIC,
        MixedPrecision(fp16_type="bfloat16", precision_opt_level=2),
        MixedPrecision(fp16_type="float16", loss_scaling_factor=64.0, max_gradient_norm=0.5),
        MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", max_gradient_value=0.01),
        MixedPrecision(enabled=False),
    ],
    ids=lambda each: f"{each.fp16_type}-{each.enabled}",
)
def test_trainer_equals_the_loop_written_out(precision):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    twin, data = copy.deepcopy(net), batches()
    losses = trainer(net, precision).fit(data, epochs=2)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    scaler, expected = precision.grad_scaler(), []
    for inputs, targets in data * 2:
        with precision.autocast():
            loss = nn.functional.cross_entropy(twin(inputs), targets)
        cstorch.amp.optimizer_step(
            loss,
            optimizer,
            scaler,
            max_gradient_norm=precision.max_gradient_norm,
            max_gradient_value=precision.max_gradient_value,
        )
        expected.append(loss.item())
    assert losses == expected
    assert weights(net) == weights(twin)


def test_trainer_runs_products_exactly():
    # The loss of the first step comes from exact products, not from PyTorch's.
    net, data = nn.Linear(4, 3), batches(1)
    with cstorch.precision(half="cbfloat16", level=1):
        exact = nn.functional.cross_entropy(net(data[0][0]), data[0][1]).item()
    assert exact != nn.functional.cross_entropy(net(data[0][0]), data[0][1]).item()
    assert trainer(net).fit(data, steps=1) == [exact]


def test_model_that_gives_its_loss_needs_no_loss_function():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, batch):
            return self.layer(batch["x"]).square().mean()

    net = Model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = Trainer(net, optimizer, precision=DYNAMIC, progress=False).fit([{"x": torch.ones(2, 4)}], epochs=5)
    assert losses[-1] < losses[0]


def test_default_precision_is_cbfloat16_at_level_1_with_dynamic_scaling():
    net = nn.Linear(4, 3)
    default = Trainer(net, torch.optim.SGD(net.parameters())).precision
    assert (default.fp16_type, default.precision_opt_level, default.loss_scaling_factor) == ("cbfloat16", 1, "dynamic")


def test_log_tells_loss_scale_and_reason_of_skipped_steps(tmp_path):
    precision = MixedPrecision(
        fp16_type="float16", loss_scaling_factor="dynamic", initial_loss_scale=2.0**15, log_loss_scale=True
    )
    net, data = nn.Linear(4, 3), batches(3)
    data[1] = (data[1][0] * 1e30, data[1][1])
    trainer(net, precision, model_dir=tmp_path).fit(data, steps=3)
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2", "3"]
    assert [float(row["loss_scale"]) for row in rows] == [2.0**15, 2.0**14, 2.0**14]
    assert [row["skipped_steps"] for row in rows] == ["0", "1", "1"]
    assert rows[1]["skip_reason"].startswith("the gradient of weight is ")
    assert [rows[0]["skip_reason"], rows[2]["skip_reason"]] == ["", ""]


def test_log_without_log_loss_scale_has_no_such_column_and_keeps_to_log_steps(tmp_path):
    trainer(nn.Linear(4, 3), model_dir=tmp_path, log_steps=2).fit(batches(), steps=4)
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert "loss_scale" not in rows[0]
    assert [row["step"] for row in rows] == ["2", "4"]


def test_progress_shows_loss_scale_and_skipped_steps(capsys):
    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters())
    Trainer(net, optimizer, nn.functional.cross_entropy, DYNAMIC).fit(batches(), steps=4)
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("4/4", "loss ", "scale 2^10", "skipped 0"))


def test_evaluate_is_the_mean_over_examples_in_the_precision_of_the_training():
    net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    x, y = torch.randn(7, 4), torch.randint(3, (7,))
    loader = DataLoader(TensorDataset(x, y), batch_size=3)
    done = trainer(net)
    accuracy = done.evaluate(loader, lambda outputs, targets: outputs.argmax(-1) == targets)
    net.eval()
    with cstorch.precision(half="cbfloat16", level=1):
        assert accuracy == (net(x).argmax(-1) == y).double().mean().item()
    net.train()
    done.evaluate(loader, lambda outputs, targets: outputs.argmax(-1) == targets)
    assert net.training


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": 3}, TypeError, r"^model: got 3, must be a torch.nn.Module"),
        ({"optimizer": "SGD"}, TypeError, r"^optimizer: got 'SGD', must be a torch.optim.Optimizer"),
        ({"optimizer": torch.optim.SGD}, TypeError, r"^optimizer: got the class SGD, must be an optimizer, or a fun"),
        (
            {"optimizer": lambda model: torch.optim.LBFGS(model.parameters())},
            TypeError,
            r"^optimizer: got LBFGS, whose step\(\) needs a closure, must be one",
        ),
        (
            {"schedulers": [torch.optim.lr_scheduler.ReduceLROnPlateau]},
            TypeError,
            r"^schedulers: got ReduceLROnPlateau, whose step\(\) needs metrics, must be one",
        ),
        ({"loss": 3}, TypeError, r"^loss: got 3, must be callable"),
        ({"precision": "cbfloat16"}, TypeError, r"^precision: got 'cbfloat16', must be a MixedPrecision"),
        ({"log_steps": 0}, ValueError, r"^log_steps: got 0, must be at least 1"),
        ({"checkpoint_steps": 1.5}, TypeError, r"^checkpoint_steps: got 1.5, must be an int"),
        ({"checkpoint_steps": 5}, ValueError, r"^model_dir: got None, must be a folder when checkpoint_steps"),
    ],
)
def test_wrong_argument_of_the_trainer_is_refused_by_name(arguments, error, message):
    net = nn.Linear(4, 3)
    with pytest.raises(error, match=message):
        Trainer(**{"model": net, "optimizer": torch.optim.SGD(net.parameters())} | arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, r"^steps: got None beside epochs None, must be one of the two"),
        ({"steps": 1, "epochs": 1}, ValueError, r"^steps: got 1 beside epochs 1, must be one of the two"),
        ({"steps": 0}, ValueError, r"^steps: got 0, must be at least 1"),
        ({"epochs": 1.5}, TypeError, r"^epochs: got 1.5, must be an int"),
        ({"epochs": True}, TypeError, r"^epochs: got True, must be an int"),
    ],
)
def test_wrong_argument_of_fit_is_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        trainer(nn.Linear(4, 3)).fit(batches(), **arguments)


def test_loader_without_batches_is_refused():
    with pytest.raises(ValueError, match=r"^train_dataloader: it gives no batch"):
        trainer(nn.Linear(4, 3)).fit([], epochs=1)


def test_sampler_is_told_every_epoch():
    class Sampler:
        def __init__(self):
            self.epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

    class Loader(list):
        sampler = Sampler()

    loader = Loader(batches(2))
    trainer(nn.Linear(4, 3)).fit(loader, epochs=3)
    assert loader.sampler.epochs == [0, 1, 2]


def test_loss_that_is_no_single_number_is_refused():
    net = nn.Linear(4, 3)
    wrong = Trainer(net, torch.optim.SGD(net.parameters()), lambda outputs, targets: outputs, DYNAMIC, progress=False)
    with pytest.raises(ValueError, match=r"^loss: got a tensor of shape \(5, 3\), must be a tensor of one element"):
        wrong.fit(batches(), steps=1)


def test_repeated_batch_is_learnt():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    losses = trainer(net).fit(batches(1), steps=60)
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize(
    ("batch", "got"),
    [
        ({"inputs": 1, "targets": 2}, "a dict"),
        ((1, 2, 3), "a tuple of 3"),
        (torch.ones(5), "a Tensor"),
    ],
)
def test_batch_that_is_no_pair_is_refused_by_the_loader_that_gave_it(batch, got):
    done = trainer(nn.Linear(4, 3))
    message = f"^{{}}_dataloader: got a batch that is {got}, must be a pair of inputs and targets"
    with pytest.raises(ValueError, match=message.format("train")):
        done.fit([batch], steps=1)
    with pytest.raises(ValueError, match=message.format("val")):
        done.validate([batch])


@pytest.mark.parametrize("loss", [lambda y, _: y.detach().sum(), lambda y, _: y.argmax()])
def test_loss_that_depends_on_no_parameter_is_refused_with_the_likely_causes(loss):
    message = "^loss: got a tensor that depends on no parameter .* are all parameters frozen, is it made of integers"
    with pytest.raises(ValueError, match=message):
        Trainer(nn.Linear(4, 3), lambda model: torch.optim.SGD(model.parameters()), loss).fit(batches(), steps=1)
    net, scaler = nn.Linear(4, 3), cstorch.amp.GradScaler(1.0)
    optimizer = torch.optim.SGD(net.parameters())
    with cstorch.precision("cbfloat16"):
        outputs = net(torch.ones(2, 4))
    with pytest.raises(ValueError, match=message):
        cstorch.amp.optimizer_step(loss(outputs, None), optimizer, scaler)
    with pytest.raises(ValueError, match=r"^loss: got a tensor of shape \(2, 3\), must have one element"):
        cstorch.amp.optimizer_step(outputs, optimizer, scaler)
    cstorch.amp.optimizer_step(outputs.sum(), optimizer, scaler)  # nothing is left of the refused ones
