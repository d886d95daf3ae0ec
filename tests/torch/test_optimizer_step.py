"""amp.optimizer_step: one call is one step of the loop written out."""

import copy

import pytest
import torch
from torch import nn

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
