"""A training that is really observed, and the page about it: writer and reader agree about the file."""

import re
from contextlib import nullcontext

import pytest
import torch
import yaml
from torch import nn

import golden.torch as cstorch
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.instruments.report.advice import case_of
from golden.torch.instruments.report.page import page
from golden.torch.instruments.report.reading import read_run
from golden.torch.instruments.report.rules import advice


def train(folder, *, scaler, half="float16", level=2, steps=4, size=1.0):
    model = nn.Sequential(nn.Linear(128, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with cstorch.observe(model, every=2, folder=folder) as report:
        for _ in range(steps):
            optimizer.zero_grad()
            with cstorch.precision(half=half, level=level):
                loss = model(size * torch.rand(32, 128)).square().mean()
                scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return report


def test_what_is_observed_is_what_the_page_is_made_of(tmp_path):
    report = train(tmp_path, scaler=cstorch.amp.GradScaler(2.0**4))
    run = read_run(tmp_path, "run")
    assert (run.settings.model, run.settings.half, run.settings.level) == ("Sequential", "float16", 2)
    assert [(each.step, each.loss, each.observed) for each in run.steps] == [
        (each.step, each.loss, each.observed) for each in report.steps
    ]
    assert {each.module for each in run.layers} == {"0", "2"}
    for layer in run.layers:
        rows = [
            row
            for row in report.rows
            if (row.module, row.direction, row.operation) == (layer.module, layer.direction, layer.operation)
        ]
        assert layer.steps.tolist() == [row.step for row in rows]
        assert layer.products[:, 5].tolist() == [row.products.swamped for row in rows]
        assert layer.promotions[:, 0].tolist() == [row.promotions.steps for row in rows]
        assert layer.tensors["output"].total == sum(row.tensors.output.total for row in rows)
    assert "What to change" in page([run])


def test_gradient_that_comes_in_is_on_the_right_of_the_gradient_of_a_weight(tmp_path):
    # The window of loss scales reads it there. A loss scale moves it, and moves no activation.
    for exponent in (0, 8):
        torch.manual_seed(1)
        train(tmp_path / str(exponent), scaler=cstorch.amp.GradScaler(2.0**exponent), level=0, steps=1)
    one, other = (
        next(
            each
            for each in read_run(tmp_path / name, name).layers
            if (each.module, each.direction, each.operation) == ("2", "gradient_of_weight", "linear")
        )
        for name in ("0", "8")
    )
    assert {int(at) + 8: count for at, count in one.tensors["right"].exponents.items()} == {
        int(at): count for at, count in other.tensors["right"].exponents.items()
    }
    assert one.tensors["left"].exponents == other.tensors["left"].exponents


@pytest.mark.parametrize(("size", "rules"), [(2e5, ["invalid", "forward too large"]), (1.0, [])])
def test_input_beyond_its_format_is_advised_about_and_a_healthy_one_is_not(tmp_path, size, rules):
    train(tmp_path, scaler=cstorch.amp.GradScaler(2.0**12), level=1, size=size)
    assert [name for name, _ in advice(case_of(read_run(tmp_path, "run")))] == rules


class Weak(nn.Module):
    """A block of a GPT that multiplies its output by 2**-30."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return self.block(x) * 2.0**-30


def gpt(weak):
    torch.manual_seed(0)
    model = CharacterGpt(name="character_gpt", layers=4, width=32, heads=2, context=16).task().model
    model.blocks[2] = weak(model.blocks[2])
    return model


class WeakBranches(nn.Module):
    """A block of a GPT whose two branches add next to nothing to their input."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return x + (self.block(x) - x) * 2.0**-30


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(("weak", "off"), [(Weak, 0.04), (WeakBranches, 0.99)])
def test_gpt_with_a_block_times_2_to_minus_30_is_told_to_raise_its_loss_scale_and_gets_no_map(weak, off, level):
    model, codes = gpt(weak), torch.randint(100, (4, 17), generator=torch.Generator().manual_seed(1))

    def gradients(scale, half, look):
        optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.0), cstorch.amp.GradScaler(scale)
        optimizer.zero_grad()
        with look as report, half:
            loss = nn.functional.cross_entropy(model(codes[:, :-1]).flatten(0, 1), codes[:, 1:].flatten())
            if scale is None:
                loss.backward()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        return report, [each.grad.double() for each in model.parameters()]

    half = cstorch.precision("cbfloat16", level=level)
    report, lost = gradients(1.0, half, cstorch.observe(model))
    said = report.advice()[0]
    assert said.title == "The loss scale is too small: gradients underflow."
    assert report.new_levels() == {}
    assert f"1. {said.title}" in str(report)
    if weak is WeakBranches:
        assert len(report.advice()) == 1
        assert re.search(r"The gradient is all zero in blocks\.2\.block\.\S+", said.because)
    # Its proposal mends the lost gradients.
    proposed = yaml.safe_load(said.setting)["precision"]["initial_loss_scale"]
    _, mended = gradients(proposed, half, nullcontext())
    _, wanted = gradients(None, cstorch.precision(enabled=False), nullcontext())
    sizes = [each.norm() for each in wanted]
    assert max((one - other).norm() / size for one, other, size in zip(lost, wanted, sizes, strict=True)) > off
    assert max((one - other).norm() / size for one, other, size in zip(mended, wanted, sizes, strict=True)) < 0.02
