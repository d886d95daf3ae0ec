"""Observed steps and their reports; the training stays the same bit for bit."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden.torch.instruments.observe import observer
from golden.torch.settings.scopes import scopes

from ..oracle import normal
from .training import Mlp, train


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x.reshape(-1, 1, 2, 3).repeat(1, 1, 2, 2)[:, :, :4, :4])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.LSTM(2, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x.reshape(-1, 3, 2).transpose(0, 1))[0][-1])


@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("kind", [Mlp, Convolutions, Recurrent])
def test_observe_leaves_every_bit_of_the_training(kind, half):
    model = kind()
    twin = copy.deepcopy(model)
    _, without = train(model, 5, half=half)
    report, observed = train(twin, 5, every=2, half=half)
    assert observed == without
    assert len(report.rows) > 0


def test_observe_leaves_the_random_bits_of_stochastic_rounding():
    def run(every):
        torch.manual_seed(1)
        model, optimizer = Mlp(), None
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        precision = cstorch.precision("bfloat16", level=2, rounding="stochastic", seed=5)
        with cstorch.observe(model, every):
            for _ in range(3):
                optimizer.zero_grad()
                with precision:
                    model(normal(4, 6)).square().sum().backward()
                optimizer.step()
        return [each.tolist() for each in model.parameters()], precision.products

    assert run(1) == run(100)


def test_observe_on_the_accumulator_of_another_machine_counts_nothing_and_measures_the_distance():
    model = Mlp()
    with cstorch.observe(model, 1) as report:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with cstorch.precision("float16", reduction="nvidia_hopper"):
            model(normal(4, 6)).square().sum().backward()
        optimizer.step()
    products = [row for row in report.rows if row.operation == "linear"]  # a bias is summed in fp32, as ever
    assert {row.products.steps for row in products} == {0}
    assert all(row.distance is not None for row in products)


def test_observe_that_changed_a_result_would_be_noticed(monkeypatch):
    right = observer.Observer.matrix_product

    def changing(self, a, b, initial, reduction, result):
        right(self, a, b, initial, reduction, result)
        result += 1

    monkeypatch.setattr(observer.Observer, "matrix_product", changing)
    with pytest.raises(AssertionError):
        test_observe_leaves_every_bit_of_the_training(Mlp, "cbfloat16")


def test_observe_tells_loss_scale_and_skipped_steps_of_every_step():
    losses = []

    def loss_of(model):
        loss = model(normal(4, 6)).square().mean() * (1e30 if len(losses) == 1 else 1.0)
        losses.append(loss.item())
        return loss

    report, _ = train(Mlp(), 4, every=10, loss_of=loss_of, scale="dynamic")
    assert [row.loss for row in report.steps] == losses
    assert [row.step for row in report.steps] == [1, 2, 3, 4]
    assert [row.skipped for row in report.steps] == [False, True, False, False]
    assert [row.finite for row in report.steps] == [True, False, True, True]
    scales = [row.loss_scale for row in report.steps]
    assert scales[0] == scales[1] == 2 * scales[2] == 2 * scales[3]


def test_observe_looks_at_the_step_after_a_bad_one_out_of_turn_once_in_every_steps():
    report, _ = train(Mlp(), 9, every=4, loss_of=lambda model: model(normal(4, 6)).sum() * 1e36, scale="dynamic")
    assert all(row.skipped for row in report.steps)
    assert [row.step for row in report.steps if row.observed] == [1, 2, 5, 7, 9]


def test_observe_without_a_scaler_takes_the_step_of_the_optimizer_and_its_loss():
    model, other = Mlp(), nn.Linear(2, 2)
    mine, its = (torch.optim.SGD(each.parameters(), 0.1) for each in (model, other))
    with cstorch.observe(model, 2) as report, cstorch.precision("bfloat16"):
        for factor in (1.0, math.nan, 3.0):
            loss = model(normal(4, 6)).square().sum() * factor
            loss.backward()
            its.step()
            mine.step()
            mine.zero_grad()
    assert [row.loss is None for row in report.steps][:2] == [False, True]
    assert [row.finite for row in report.steps][:2] == [True, False]
    assert [row.loss_scale for row in report.steps] == [None] * 3
    assert [row.observed for row in report.steps] == [True, False, True]


def test_observe_takes_the_loss_of_a_checkpoint_once():
    model = Mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = normal(4, 6, grad=True)
    with cstorch.observe(model) as report, cstorch.precision("bfloat16"):
        loss = checkpoint(lambda given: model.eval()(given).square().sum(), x, use_reentrant=True)
        loss.backward()
        optimizer.step()
    assert [row.loss for row in report.steps] == [loss.item()]


def test_observe_adds_the_losses_of_accumulated_gradients():
    model = Mlp()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.0), cstorch.amp.GradScaler(8.0)
    with cstorch.observe(model) as report, cstorch.precision("cbfloat16"):
        losses = [model(normal(4, 6, seed=seed)).square().mean() / 2 for seed in (1, 2)]
        for each in losses:
            scaler.scale(each).backward()
        scaler.step(optimizer)
        scaler.update()
    assert [row.loss for row in report.steps] == [sum(each.item() for each in losses)]
    assert {row.calls for row in report.rows} == {2}


def test_observe_leaves_nothing_behind_when_the_training_fails():
    with pytest.raises(KeyError), cstorch.observe(Mlp()):
        raise KeyError
    assert scopes.observation is None
    assert scopes.observer is None


def test_observe_inside_another_one_is_an_error():
    with cstorch.observe(Mlp()), pytest.raises(RuntimeError, match="another observation is under way"):
        cstorch.observe(Mlp()).__enter__()


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"model": 3}, TypeError, "model: got 3"),
        ({"every": 0}, ValueError, "every: got 0"),
        ({"every": True}, TypeError, "every: got True"),
        ({"rows": -1}, ValueError, "rows: got -1"),
        ({"folder": 5}, TypeError, "folder: got 5"),
        ({"tensorboard": 1}, TypeError, "tensorboard: got 1"),
        ({"tensorboard": True}, ValueError, "folder: got None"),
    ],
)
def test_observe_of_a_wrong_argument_names_it(arguments, error, told):
    with pytest.raises(error, match=told):
        cstorch.observe(**{"model": Mlp(), **arguments})


def test_report_has_the_worst_places_first_and_prints_a_table():
    report, _ = train(Mlp(), 1, every=1, half="float16", scale=2.0**24)
    worst = report.worst(3)
    assert len(worst) == 3
    assert report.first_bad is not None
    assert (worst[0].module, worst[0].direction) == (report.first_bad.module, report.first_bad.direction)
    text = str(report)
    assert "1 steps, 1 observed" in text
    assert "step 1:" in text
    with pytest.raises(ValueError, match="n: got 0"):
        report.worst(0)
