"""amp.optimizer_step: one call is one step of the loop written out."""

import copy

import pytest
import torch
from torch import nn

from golden.torch import precision
from golden.torch.amp import GradScaler, optimizer_step


def bits(model):
    return [each.detach().view(torch.int32).tolist() for each in model.parameters()]


@pytest.mark.parametrize("mode", [None, 1024.0, "dynamic"])
@pytest.mark.parametrize(
    "limits", [{}, {"max_gradient_norm": 0.1}, {"max_gradient_value": 0.01}, {"max_gradient_val": 0.01}]
)
def test_optimizer_step_equals_the_loop_written_out(mode, limits):
    model = nn.Linear(3, 2)
    twin = copy.deepcopy(model)
    ours, theirs = (torch.optim.SGD(each.parameters(), lr=1.0, momentum=0.9) for each in (model, twin))
    scaler, plain = GradScaler(mode), GradScaler(mode)
    for _ in range(3):
        batch = torch.randn(4, 3)
        optimizer_step(model(batch).square().mean(), ours, scaler, **limits)
        theirs.zero_grad()
        plain.scale(twin(batch).square().mean()).backward()
        plain.unscale_(theirs)
        if "max_gradient_norm" in limits:
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
        elif limits:
            torch.nn.utils.clip_grad_value_(twin.parameters(), 0.01)
        plain.step(theirs)
        plain.update()
        if "max_gradient_norm" in limits:  # torch takes the norm in fp32
            torch.testing.assert_close(model.weight, twin.weight, rtol=1e-6, atol=1e-8)
        else:
            assert bits(model) == bits(twin)
        assert all(each.grad is None for each in model.parameters())


def test_optimizer_step_after_accumulation_sees_all_batches():
    tensor = nn.Parameter(torch.zeros(1))
    optimizer, scaler = torch.optim.SGD([tensor], lr=1.0), GradScaler(8.0)
    scaler.scale(tensor.sum()).backward()
    optimizer_step((tensor * 2).sum(), optimizer, scaler)
    assert tensor.item() == -3.0


def test_optimizer_step_that_overflows_is_skipped_and_the_next_is_not():
    tensor = nn.Parameter(torch.zeros(1))
    optimizer, scaler = torch.optim.SGD([tensor], lr=1.0), GradScaler("dynamic", max_gradient_norm=10.0)
    optimizer_step((tensor * float("inf")).sum(), optimizer, scaler, max_gradient_value=1.0)
    assert (tensor.item(), scaler.get_num_skipped_steps()) == (0.0, 1)
    optimizer_step(tensor.sum(), optimizer, scaler)
    assert tensor.item() == -1.0


def before(kind, loss, scaler):
    """Make the backward pass that the reference of the original asks for."""
    if kind == "scaled":
        scaler.scale(loss).backward()
    elif kind == "scaled and retained":
        scaler.scale(loss).backward(retain_graph=True)
    elif kind != "left to optimizer_step":
        loss.backward(retain_graph=kind == "retained")


@pytest.mark.parametrize("mode", [None, 1024.0, "dynamic"])
@pytest.mark.parametrize("kind", ["left to optimizer_step", "plain", "retained", "scaled", "scaled and retained"])
def test_optimizer_step_after_either_backward_is_one_step(mode, kind):
    model = nn.Linear(3, 2)
    twin = copy.deepcopy(model)
    ours, theirs = (torch.optim.SGD(each.parameters(), lr=1.0, momentum=0.9) for each in (model, twin))
    scaler = GradScaler(mode)
    for _ in range(3):
        batch = torch.randn(4, 3)
        with precision(half="bfloat16", level=0):
            loss, expected = (each(batch).float().square().mean() for each in (model, twin))
        before(kind, loss, scaler)
        optimizer_step(loss, ours, scaler)
        theirs.zero_grad()
        expected.backward()
        theirs.step()
        # bfloat16 keeps powers of two: a scaled pass gives the same bits.
        assert bits(model) == bits(twin)
        assert all(each.grad is None for each in model.parameters())
    assert scaler.get_num_skipped_steps() == 0


def test_optimizer_step_after_backward_of_plain_pytorch_is_one_step():
    tensor = nn.Parameter(torch.tensor([2.0]))
    optimizer, scaler = torch.optim.SGD([tensor], lr=1.0), GradScaler(8.0)
    loss = (tensor * tensor).sum()
    loss.backward()
    optimizer_step(loss, optimizer, scaler)
    assert tensor.item() == -2.0
    loss = (tensor * tensor).sum()
    loss.backward(retain_graph=True)  # nothing in the graph tells
    optimizer_step(loss, optimizer, scaler, backward=False)
    assert tensor.item() == 2.0


def test_optimizer_step_after_unscaled_backward_says_so_once(caplog):
    tensor = nn.Parameter(torch.tensor([2.0]))
    optimizer, scaler = torch.optim.SGD([tensor], lr=0.5), GradScaler("dynamic")
    for _ in range(2):
        loss = (tensor * tensor).sum()
        loss.backward()
        optimizer_step(loss, optimizer, scaler)
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "optimizer_step: loss.backward() was called before, so that the loss scale has no effect"
    ]


def test_optimizer_step_takes_several_optimizers_and_clips_them_together():
    parameters = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
    optimizers = [torch.optim.SGD([each], lr=1.0) for each in parameters]
    loss = 3 * parameters[0].sum() + 4 * parameters[1].sum()
    optimizer_step(loss, optimizers, GradScaler("dynamic"), max_gradient_norm=1.0)
    assert [each.item() for each in parameters] == pytest.approx([-0.6, -0.8])


def test_optimizer_step_of_something_else_is_refused():
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    with pytest.raises(TypeError, match=r"^loss: got 1.0, must be a tensor"):
        optimizer_step(1.0, optimizer, GradScaler(None))
    with pytest.raises(TypeError, match=r"^grad_scaler: got None, must be a GradScaler"):
        optimizer_step(torch.zeros(()), optimizer, None)
